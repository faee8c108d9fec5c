#include "trace/trace_categories.hpp"

#include <algorithm>

namespace moeline {
namespace {

struct Named {
  std::string_view name;
  TraceCategory category;
};

// The most frequent first.
constexpr Named kNames[] = {
    {"cpu_op", TraceCategory::cpu_operator},    {"kernel", TraceCategory::kernel},
    {"cuda_runtime", TraceCategory::call},      {"user_annotation", TraceCategory::annotation},
    {"mtia_ccp_events", TraceCategory::kernel}, {"Operator", TraceCategory::cpu_operator},
    {"Kernel", TraceCategory::kernel},          {"Memcpy", TraceCategory::memcpy},
    {"Memset", TraceCategory::memset},          {"Runtime", TraceCategory::call},
};

constexpr Named kEndings[] = {
    {"_runtime", TraceCategory::call},
    {"_driver", TraceCategory::call},
    {"_memcpy", TraceCategory::memcpy},
    {"_memset", TraceCategory::memset},
    {"_user_annotation", TraceCategory::gpu_annotation},
    {"_sync", TraceCategory::synchronisation},
};

}  // namespace

TraceCategory trace_category(std::string_view cat) {
  const auto* const name =
      std::find_if(std::begin(kNames), std::end(kNames), [&](const Named& known) { return cat == known.name; });
  if (name != std::end(kNames)) return name->category;
  const auto* const ending = std::find_if(std::begin(kEndings), std::end(kEndings),
                                          [&](const Named& known) { return cat.ends_with(known.name); });
  return ending != std::end(kEndings) ? ending->category : TraceCategory::other;
}

bool is_gpu_of_rocprof(std::string_view process) {
  const std::size_t digits = process.find_last_not_of("0123456789");
  if (digits == std::string_view::npos || digits + 1 == process.size()) return false;
  const std::string_view word = process.substr(0, digits + 1);
  return word == "GPU" || word.ends_with(" GPU");
}

}  // namespace moeline
