#include "trace/module_names.hpp"

#include <re2/re2.h>

namespace moeline {
namespace {

// What a marker says of shapes and parameters differs from layer to layer and step to step.
std::string_view module_of(std::string_view annotation) {
  constexpr std::string_view kMarker = "{'Module': '";
  if (!annotation.starts_with(kMarker)) return annotation;
  annotation.remove_prefix(kMarker.size());
  return annotation.substr(0, annotation.find('\''));
}

// Most names are none of a layer: operators of PyTorch as ranges, by the million.
bool may_be_of_layer(std::string_view module) {
  return module.find("ayer") != std::string_view::npos || module.find("AYER") != std::string_view::npos;
}

// A stack beside others, as "decoder" or "visual", stays in the name; the model itself does not.
std::string in_stack(const std::string& stack, const std::string& inside) {
  const bool is_model = stack.empty() || stack == "model" || stack.ends_with(".model");
  return is_model ? inside : stack + "." + inside;
}

}  // namespace

std::string phase_of_module(std::string_view annotation) {
  static const RE2 in_layer(R"((?:(.*?)\.)?layers?\.\d+\.(.+))");
  static const RE2 whole_layer(R"((?i)(.*?(?:^|[^a-z])layers?)[._ #:]*\d+)");
  const std::string module(module_of(annotation));
  std::string stack, phase;
  if (!may_be_of_layer(module)) return module;
  if (RE2::FullMatch(module, in_layer, &stack, &phase)) return in_stack(stack, phase);
  return RE2::FullMatch(module, whole_layer, &phase) ? phase : module;
}

}  // namespace moeline
