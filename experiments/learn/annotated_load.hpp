// What the annotations of a server say of a step: how many requests and tokens were in it.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace moeline {

/// Of one step; what an annotation does not say is absent.
struct AnnotatedLoad {
  std::optional<int> decoding;        ///< requests
  std::optional<int> decode_tokens;   ///< of all of them: more where tokens are drafted
  std::optional<double> decode_keys;  ///< in the cache, of all of them
  std::optional<int> prompts;
  std::optional<int> prompt_tokens;  ///< new ones, of all prompts
  std::optional<double> prompt_keys;
  std::string server;      ///< "sglang", "vllm", "trtllm"; empty: the annotation is of no one server
  std::string annotation;  ///< the longest of those that said it
};

/// Of all annotations together, the step's own first: a later one adds what earlier ones do not say, unless it
/// contradicts them, as that of the step before does. Nothing where none is of a server's step.
[[nodiscard]] std::optional<AnnotatedLoad> load_of_step(const std::vector<std::string>& annotations);

}  // namespace moeline
