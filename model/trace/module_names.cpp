#include "trace/module_names.hpp"

#include <re2/re2.h>

namespace moeline {
namespace {

re2::StringPiece piece(std::string_view text) { return {text.data(), text.size()}; }

// What a marker says of shapes and parameters differs from layer to layer and step to step.
std::string_view module_of(std::string_view annotation) {
  constexpr std::string_view kMarker = "{'Module': '";
  if (!annotation.starts_with(kMarker)) return annotation;
  annotation.remove_prefix(kMarker.size());
  return annotation.substr(0, annotation.find('\''));
}

}  // namespace

std::string phase_of_module(std::string_view annotation) {
  static const RE2 inside(R"((?:^|\.)layers?\.\d+\.(.+)$)");
  static const RE2 whole(R"((?i)^(.*?(?:^|[^a-z])layers?)[._ #:=]*\d+$)");
  const std::string_view module = module_of(annotation);
  std::string phase;
  if (RE2::PartialMatch(piece(module), inside, &phase) || RE2::FullMatch(piece(module), whole, &phase)) return phase;
  return std::string(module);
}

}  // namespace moeline
