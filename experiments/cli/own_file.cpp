#include "experiments/cli/own_file.hpp"

#include <array>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "experiments/cli/output/baseline_output.hpp"
#include "experiments/timeline_page/svg.hpp"
#include "hardware/profile.hpp"
#include "measured/replay.hpp"
#include "timeline/chakra.hpp"
#include "timeline/write_trace.hpp"
#include "trace/gzip_stream.hpp"

namespace moeline {
namespace {

// What the beginning of a file begins with, and holds besides.
struct Mark {
  const char* name;
  std::string_view begins, holds;
};

constexpr std::array<Mark, 11> kMarks = {{
    {"a trace", "{\n\"distributedInfo\": ", kTraceMark},
    {"a page", "<!DOCTYPE html>\n", "\n<meta name=\"generator\" content=\"moeline\">\n"},
    {"a picture", kSvgStart, ""},
    {"a task graph", kGraphJsonStart, ""},
    {"a Graphviz file", kGraphvizStart, ""},
    {"a profile", "name: ", kProfileMark},
    {"a run's manifest", "{\n \"schema_version\": ", "\n \"program\": \"moeline "},
    {"a run's metrics", "{\n \"schema_version\": ", "\n \"scenario\": {"},
    {"an overlap plan", "# Found by `moeline search` for ", ""},
    {"a Chakra trace", kChakraStart, ""},
    {"a baseline", "{\n \"schema_version\": ", kBaselineMark},
}};

const Mark& mark_of(FileKind kind) { return kMarks[static_cast<std::size_t>(kind)]; }

std::string beginning_of(const std::filesystem::path& file) {
  constexpr std::size_t kEnough = std::size_t{1} << 14U;  // a profile's mark stands behind its facts
  std::string text;
  try {
    for (GzipStream stream(file); !stream.at_end() && text.size() < kEnough;) text += stream.Take();
  } catch (const SpecError&) {  // damaged: what came so far tells nothing
    return "";
  }
  return text;
}

}  // namespace

const char* name_of(FileKind kind) { return mark_of(kind).name; }

bool is_own(const std::filesystem::path& file, FileKind kind) {
  const Mark& mark = mark_of(kind);
  const std::string text = beginning_of(file);
  return text.starts_with(mark.begins) && text.find(mark.holds) != std::string::npos;
}

}  // namespace moeline
