#include "trace/step_names.hpp"

#include <re2/re2.h>

#include <algorithm>
#include <array>

#include "trace/trace_numbers.hpp"

namespace moeline {
namespace {

struct StepName {
  RE2 pattern;
  const char* kind;  // \1, \2, ... are the pattern's groups
};

// To know another server, add a line. Numbers that differ from step to step of the same work stay out of the kind.
const auto& known_steps() {
  static const std::array<StepName, 8> names = {{
      // SGLang: step[DECODE bs=32], step[EXTEND bs=1 toks=888]; detailed annotations add lengths of requests
      {R"(^step\[(\w+)(?: raw_bs=\d+)?( bs=\d+)( toks=\d+)?[^\]]*\]$)", R"(\1\2\3)"},
      // vLLM: requests and tokens of prefill and decode
      {R"(^execute_(context_\d+\(\d+\)_generation_\d+\(\d+\))$)", R"(\1)"},
      {R"(^execute_(new_\d+_cached_\d+)$)", R"(\1)"},
      // vLLM with detailed annotations, which have lengths of requests in their brackets
      {R"(^execute_(?:model )?(context_\d+)\([^)]*\)[_ ](generation_\d+)\([^)]*\)$)", R"(\1 \2)"},
      // ATOM: prefill[bs=2 tok=16384], decode[bs=64]
      {R"(^(prefill|decode)\[(bs=\d+)( tok=\d+)?[^\]]*\]$)", R"(\1 \2\3)"},
      // TensorRT-LLM's executor, which annotates by NVTX
      {R"(^\[Executor\] _forward_step(?: \d+)?: (\d+ ctx reqs, (?:\d+ ctx tokens, )?\d+ gen reqs)$)", R"(\1)"},
      // training loops
      {R"((?i)^((?:train|training|eval)?[ _]?(?:step|iteration|iter))[ _#:=]*\d+$)", R"(\1)"},
      {R"((?i)^((?:global|batch)[ _]step)[ _#:=]*\d+$)", R"(\1)"},
  }};
  return names;
}

re2::StringPiece piece(std::string_view text) { return {text.data(), text.size()}; }

}  // namespace

std::optional<std::string> kind_of_step(std::string_view name) {
  for (const StepName& known : known_steps()) {
    std::string kind;
    if (RE2::Extract(piece(name), known.pattern, known.kind, &kind)) return kind;
  }
  return std::nullopt;
}

std::optional<std::uint32_t> profiler_step(std::string_view name) {
  constexpr std::string_view kPrefix = "ProfilerStep";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  return whole_number<std::uint32_t>(name.substr(std::min(name.size(), name.find_first_of("0123456789"))));
}

std::string without_number(std::string_view name) {
  const std::size_t end = name.find_last_not_of("0123456789");
  if (end == std::string_view::npos || end + 1 == name.size()) return std::string(name);
  const std::size_t word_end = name.find_last_not_of(" _#:=", end);
  return std::string(word_end == std::string_view::npos ? name : name.substr(0, word_end + 1));
}

bool is_of_framework(std::string_view name) {
  constexpr std::array<std::string_view, 12> kPrefixes = {"ProfilerStep", "nccl:", "Optimizer.", "enumerate(DataLoader",
                                                          "## Call Compiled", "Torch-Compiled",
                                                          // operators, which PyTorch's emit_nvtx makes ranges
                                                          "aten::", "autograd::", "c10d::",
                                                          // vLLM's scopes inside and around its steps
                                                          "gpu_model_runner:", "llm_engine step:", "schedule:"};
  return std::any_of(kPrefixes.begin(), kPrefixes.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

}  // namespace moeline
