#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

#include "experiments/cli/program.hpp"
#include "experiments/packaging/describe/commands.hpp"

namespace moeline {
namespace {

// Hyphens that can be typed, no escapes, and no line that roff takes for a request.
std::string roff(const std::string& text) {
  std::string result;
  bool begins = true;
  for (const char c : text) {
    if (begins && (c == '.' || c == '\'')) result += "\\&";
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else {
      result += c;
    }
    begins = c == '\n';
  }
  return result;
}

std::string upper(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

std::string head(const std::string& name, const std::string& about, const std::string& version) {
  return fmt::format(".TH {} 1 \"\" \"{}\" \"moeline\"\n.ad l\n.SH NAME\n{} \\- {}\n", upper(roff(name)), roff(version),
                     roff(name), roff(about));
}

// Each line of the help as it stands: some are lists.
std::string body(const std::string& text) {
  return text.empty() ? "" : ".SH DESCRIPTION\n.nf\n" + roff(text) + "\n.fi\n";
}

std::string value_of(const DescribedOption& option) { return option.type == ValueType::flag ? "" : " \\fIVALUE\\fR"; }

std::string about(const DescribedOption& option) {
  const std::string choices = option.choices.empty() ? "" : fmt::format("One of {}.", fmt::join(option.choices, ", "));
  const std::string text = option.about + (option.about.empty() || choices.empty() ? "" : ". ") + choices;
  return text.empty() ? "\\&" : roff(text);
}

std::string item(const DescribedOption& option, bool is_argument) {
  const std::string letter = option.letter.empty() ? "" : "\\fB" + roff("-" + option.letter) + "\\fR, ";
  const std::string name = is_argument ? "\\fI" + roff(option.name) + "\\fR"
                                       : letter + "\\fB" + roff(option.dashed()) + "\\fR" + value_of(option);
  return fmt::format(".TP\n{}\n{}\n", name, about(option));
}

std::string synopsis(const DescribedCommand& command) {
  std::string line = fmt::format(".SH SYNOPSIS\n.B moeline {}\n", roff(command.name));
  for (const DescribedOption& argument : command.arguments) {
    const std::string name = roff(argument.name) + (argument.is_list ? "..." : "");
    line += argument.is_required ? fmt::format("\\fI{}\\fR\n", name) : fmt::format("[\\fI{}\\fR]\n", name);
  }
  return line + "[\\fIoptions\\fR]\n";
}

}  // namespace

std::string man_page(const DescribedCommand& command, const std::string& version) {
  std::string page = head("moeline-" + command.name, command.about, version) + synopsis(command);
  page += ".SH OPTIONS\n";
  for (const DescribedOption& argument : command.arguments) page += item(argument, true);
  for (const DescribedOption& option : command.options) page += item(option, false);
  return page + body(command.text) + ".SH SEE ALSO\n.BR moeline (1)\n";
}

std::string man_page_of_program(const std::vector<DescribedCommand>& commands, const std::string& version) {
  std::string page = head("moeline", kProgramAbout, version);
  page += ".SH SYNOPSIS\n.B moeline\n\\fIcommand\\fR [\\fIarguments\\fR]\n.SH COMMANDS\n";
  for (const DescribedCommand& command : commands) {
    page += fmt::format(".TP\n.BR moeline\\-{} (1)\n{}\n", roff(command.name), roff(command.about));
  }
  return page + body(kProgramFooter);
}

}  // namespace moeline
