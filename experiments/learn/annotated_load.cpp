#include "experiments/learn/annotated_load.hpp"

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.hpp"

namespace moeline {
namespace {

// Where each number of an annotation goes.
enum class Goes { decoding, decode_tokens, decode_keys, prompts, prompt_tokens, prompt_keys, squared_tokens };

struct LoadPattern {
  RE2 pattern;
  std::vector<Goes> numbers;
  const char* server;
};

// To know another server, add a line; steps.cpp knows which annotations are steps.
const auto& load_patterns() {
  using enum Goes;
  static const std::array<LoadPattern, 8> patterns = {{
      // per-phase sums of query tokens (sq) and of keys (sk), as detailed annotations have them
      {R"(context_(\d+)\(sq(\d+)sk(\d+)\w*\)_generation_(\d+)\(sq(\d+)sk(\d+)\w*\))",
       {prompts, prompt_tokens, prompt_keys, decoding, decode_tokens, decode_keys},
       ""},
      // vLLM: tokens, and of prompts the sum of their squares
      {R"(^execute_context_(\d+)\((\d+)(?:_(\d+))?\)_generation_(\d+)\((\d+)(?:_\d+)?\))",
       {prompts, prompt_tokens, squared_tokens, decoding, decode_tokens},
       "vllm"},
      {R"(^execute_new_(\d+)_cached_(\d+)$)", {prompts, decoding}, "vllm"},
      {R"(^step\[DECODE(?: raw_bs=\d+)? bs=(\d+))", {decoding}, "sglang"},
      {R"(^step\[EXTEND(?: raw_bs=\d+)? bs=(\d+)(?: toks=(\d+))?)", {prompts, prompt_tokens}, "sglang"},
      {R"(^decode\[bs=(\d+))", {decoding}, ""},
      {R"(^prefill\[bs=(\d+)(?: tok=(\d+))?)", {prompts, prompt_tokens}, ""},
      {R"(_forward_step(?: \d+)?: (\d+) ctx reqs, (?:(\d+) ctx tokens, )?(\d+) gen reqs)",
       {prompts, prompt_tokens, decoding},
       "trtllm"},
  }};
  return patterns;
}

// The numbers of an annotation that the pattern finds; an optional one that is not there is empty.
std::optional<std::vector<std::string>> numbers_in(const std::string& annotation, const LoadPattern& known) {
  const auto groups = static_cast<std::size_t>(known.pattern.NumberOfCapturingGroups());
  std::vector<re2::StringPiece> found(groups + 1);
  const bool met = known.pattern.Match(annotation, 0, annotation.size(), RE2::UNANCHORED, found.data(),
                                       static_cast<int>(found.size()));
  if (!met) return std::nullopt;
  std::vector<std::string> numbers;
  for (std::size_t i = 1; i < found.size(); ++i) numbers.push_back(found[i].as_string());
  return numbers;
}

template <class Number>
void add(const std::string& text, std::optional<Number>& into) {
  const auto number = as_number<Number>(text);
  if (number && *number >= 0) into = number;
}

void add(Goes where, const std::string& text, AnnotatedLoad& load) {
  switch (where) {
    case Goes::decoding:
      return add(text, load.decoding);
    case Goes::decode_tokens:
      return add(text, load.decode_tokens);
    case Goes::decode_keys:
      return add(text, load.decode_keys);
    case Goes::prompts:
      return add(text, load.prompts);
    case Goes::prompt_tokens:
      return add(text, load.prompt_tokens);
    case Goes::prompt_keys:
      return add(text, load.prompt_keys);
    case Goes::squared_tokens:  // of prompts from their first token on as many queries as keys
      if (load.prompts && load.prompt_tokens && !load.prompt_keys) load.prompt_keys = *load.prompt_tokens;
      return;
  }
}

std::optional<AnnotatedLoad> load_said_by(const std::string& annotation) {
  for (const LoadPattern& known : load_patterns()) {
    const auto numbers = numbers_in(annotation, known);
    if (!numbers) continue;
    AnnotatedLoad load;
    for (std::size_t i = 0; i < numbers->size(); ++i) add(known.numbers[i], (*numbers)[i], load);
    if (load.decoding.value_or(0) + load.prompts.value_or(0) == 0) return std::nullopt;  // of no request
    load.server = known.server;
    load.annotation = annotation;
    return load;
  }
  return std::nullopt;
}

// Neither says what the other denies.
bool agree(const AnnotatedLoad& one, const AnnotatedLoad& other) {
  const auto same = [](const auto& a, const auto& b) { return !a || !b || *a == *b; };
  return same(one.decoding, other.decoding) && same(one.prompts, other.prompts) &&
         same(one.prompt_tokens, other.prompt_tokens);
}

template <class Number>
void take(const std::optional<Number>& more, std::optional<Number>& into) {
  if (!into) into = more;
}

void add(const AnnotatedLoad& more, AnnotatedLoad& load) {
  take(more.decoding, load.decoding);
  take(more.decode_tokens, load.decode_tokens);
  take(more.decode_keys, load.decode_keys);
  take(more.prompts, load.prompts);
  take(more.prompt_tokens, load.prompt_tokens);
  take(more.prompt_keys, load.prompt_keys);
  if (load.server.empty()) load.server = more.server;
  if (more.annotation.size() > load.annotation.size()) load.annotation = more.annotation;
}

}  // namespace

std::optional<AnnotatedLoad> load_of_step(const std::vector<std::string>& annotations) {
  AnnotatedLoad load;
  for (const std::string& annotation : annotations) {
    const std::optional<AnnotatedLoad> said = load_said_by(annotation);
    if (said && agree(load, *said)) add(*said, load);
  }
  return load.annotation.empty() ? std::nullopt : std::optional(load);
}

}  // namespace moeline
