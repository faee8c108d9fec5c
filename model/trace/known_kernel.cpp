#include "trace/known_kernel.hpp"

#include <string>

#include "trace/name_regex.hpp"

namespace moeline {
namespace {

// A mangled name writes the length of the part that follows where the other spelling has "::".
std::string of_both_spellings(std::string_view pattern) {
  constexpr std::string_view kSeparator = "::";
  std::string both(pattern);
  const std::string either = "(?:::|[0-9]+)";
  for (std::size_t at = both.find(kSeparator); at != std::string::npos; at = both.find(kSeparator, at)) {
    both.replace(at, kSeparator.size(), either);
    at += either.size();
  }
  return both;
}

struct CompiledRow {
  const KernelNameRow* row;
  NameRegex regex;
};
using CompiledRows = std::vector<CompiledRow>;

CompiledRows compiled(std::span<const KernelNameRow> rows) {
  CompiledRows all;
  all.reserve(rows.size());
  for (const KernelNameRow& row : rows) all.push_back({&row, NameRegex(of_both_spellings(row.pattern))});
  return all;
}

const CompiledRows& compiled_names() {
  static const CompiledRows rows = compiled(kernel_name_rows());
  return rows;
}

const CompiledRows& compiled_words() {
  static const CompiledRows rows = compiled(kernel_word_rows());
  return rows;
}

// A name with its subject, which takes a pass over it to find.
struct SearchedName {
  std::string_view whole;
  std::string_view subject;

  [[nodiscard]] bool meets(const CompiledRow& each) const {
    return each.regex.found_in(each.row->searched == SearchedPart::whole ? whole : subject);
  }
};

SearchedName searched(std::string_view name) { return {name, subject_of(name)}; }

const KernelNameRow* first_met(const CompiledRows& rows, const SearchedName& name) {
  for (const CompiledRow& each : rows) {
    if (name.meets(each)) return each.row;
  }
  return nullptr;
}

std::vector<const KernelNameRow*> all_met(const CompiledRows& rows, const SearchedName& name) {
  std::vector<const KernelNameRow*> met;
  for (const CompiledRow& each : rows) {
    if (name.meets(each)) met.push_back(each.row);
  }
  return met;
}

}  // namespace

KnownKernel known_kernel(std::string_view name) {
  const SearchedName parts = searched(name);
  if (const KernelNameRow* row = first_met(compiled_names(), parts)) return {row, false};
  const KernelNameRow* word = first_met(compiled_words(), parts);
  return {word, word != nullptr};
}

std::vector<const KernelNameRow*> name_rows_met(std::string_view name) {
  return all_met(compiled_names(), searched(name));
}

std::vector<const KernelNameRow*> word_rows_met(std::string_view name) {
  return all_met(compiled_words(), searched(name));
}

}  // namespace moeline
