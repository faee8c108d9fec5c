#include "hardware/learnt.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/precision.hpp"
#include "base/spec.hpp"
#include "hardware/price.hpp"

namespace moeline {
namespace {

// Beyond so many times what was seen, or below its inverse, a factor is a guess.
constexpr double kFar = 2;

// What a step has more or less of with its tokens and keys; the other dimensions are the model's.
bool goes_by_load(Dimension dimension) {
  switch (dimension) {
    case Dimension::m:
    case Dimension::batch:
    case Dimension::rows:
    case Dimension::query_len:
    case Dimension::kv_len:
    case Dimension::cached:
    case Dimension::bytes:
    case Dimension::items:
    case Dimension::tokens:
      return true;
    default:
      return false;
  }
}

MeasuredRange widened(const MeasuredRange& range) {
  MeasuredRange wide = range;
  for (auto& [dimension, bounds] : wide) bounds = {bounds.low / kFar, bounds.high * kFar};
  return wide;
}

// What lies far from where the factor was seen, of the load or of the model's widths.
std::vector<Outside> far_from(const LearntFactor& learnt, const Dimensions& at, bool of_load) {
  Dimensions asked;
  for (const auto& [dimension, value] : at) {
    if (goes_by_load(dimension) == of_load && learnt.range.contains(dimension)) asked[dimension] = value;
  }
  MeasuredRange range = widened(learnt.range);
  std::erase_if(range, [&](const auto& bounds) { return !asked.contains(bounds.first); });
  return outside(range, asked);
}

// Null where nothing like it was seen.
const LearntFactor* found_for(const LearntKernels& learnt, const Operator& op, const Dimensions& at,
                              const std::string& family) {
  const auto own = learnt.operators.find(learnt_name(op));
  if (own != learnt.operators.end()) {
    const bool same_family = own->second.family.empty() || own->second.family == family;
    if (same_family && far_from(own->second, at, false).empty()) return &own->second;
  }
  const auto of_class = learnt.classes.find(learnt_class(op));
  return of_class == learnt.classes.end() ? nullptr : &of_class->second;
}

// Bytes are what they were, in another time; links that are full stay so.
void scale(double factor, Price& price) {
  price.solo_us *= factor;
  price.gap *= factor;
  if (factor == 0) {  // nothing of its own runs
    price.hold = Hold::nothing;
    price.sms = 0;
    price.hbm_GBps = price.nvlink_GBps = price.nic_GBps = price.host_GBps = 0;
    return;
  }
  const double slower = std::max(factor, 1.0);
  for (double* rate : {&price.hbm_GBps, &price.nvlink_GBps, &price.nic_GBps, &price.host_GBps}) *rate /= slower;
}

std::string factor_yaml(const std::string& name, const LearntFactor& learnt, int indent) {
  const std::string range = to_yaml(learnt.range);
  return fmt::format("{:{}}\"{}\": {{factor: {:.4g}, kernels: {}{}{}}}\n", "", indent, name, learnt.factor,
                     learnt.kernels, learnt.family.empty() ? "" : ", family: " + learnt.family,
                     range.empty() ? "" : ", range: " + range);
}

std::map<std::string, LearntFactor> read_factors(const Spec& spec) {
  std::map<std::string, LearntFactor> factors;
  for (const std::string& name : spec.keys()) {
    const Spec written = spec.map(name);
    written.expect({"factor", "kernels", "range", "family"});
    factors[name] = {written.number("factor", 0, 1e6), written.integer("kernels", 1, 1 << 30),
                     read_measured_range(written.map_or_empty("range")), written.text_or("family", "")};
  }
  return factors;
}

}  // namespace

Dimensions learnt_dimensions(const Operator& op) {
  const bool experts = op.experts.role != ExpertRole::none;
  Dimensions at = experts ? measured_dimensions_of(op, 1) : dimensions_of(op, 1);
  at.erase(Dimension::sms);
  return at;
}

std::string learnt_name(const Operator& op) {
  switch (op.traffic.stage) {
    case Stage::issue:
      return op.name + " issue";
    case Stage::wire:
      return op.name + " on the wire";
    case Stage::receive:
      return op.name + " receive";
    case Stage::whole:
      break;
  }
  return op.name;
}

std::string learnt_class(const Operator& op) {
  const Precision format = op.experts.role != ExpertRole::none ? op.experts.weights
                           : is_attention(op.family)           ? op.attention.cache
                                                               : precision_of(op);
  const std::string& name = row_of(op.family).task_class;
  return format == Precision::bf16 ? name : name + " " + name_of(format);
}

void apply_learnt(const LearntKernels& learnt, const std::string& kernel_set, const Operator& op, Price& price) {
  const Dimensions at = learnt_dimensions(op);
  const LearntFactor* found = found_for(learnt, op, at, price.family);
  if (found == nullptr) return;
  scale(found->factor, price);
  price.kernel_set = kernel_set;
  price.note = {};
  price.provenance = Provenance::learnt;
  for (const Outside& far : far_from(*found, at, true)) {
    price.provenance = Provenance::extrapolated;
    price.note.add(far);
  }
}

bool is_fused_away(const Price& price) { return price.provenance == Provenance::learnt && price.solo_us == 0; }

std::string to_yaml(const LearntKernels& learnt, int indent) {
  std::string text = fmt::format("{:{}}phase: {}\n", "", indent, learnt.phase);
  if (learnt.clock != 1) text += fmt::format("{:{}}clock: {:.8g}\n", "", indent, learnt.clock);
  if (learnt.host_us_per_kernel > 0) {
    text += fmt::format("{:{}}host_us_per_kernel: {:.4g}\n", "", indent, learnt.host_us_per_kernel);
  }
  for (const auto& [key, factors] :
       {std::pair("classes", &learnt.classes), std::pair("operators", &learnt.operators)}) {
    text += fmt::format("{:{}}{}:{}\n", "", indent, key, factors->empty() ? " {}" : "");
    for (const auto& [name, factor] : *factors) text += factor_yaml(name, factor, indent + 2);
  }
  return text;
}

LearntKernels read_learnt(const Spec& spec) {
  spec.expect({"phase", "clock", "host_us_per_kernel", "classes", "operators"});
  LearntKernels learnt;
  learnt.phase = spec.choice("phase", {"decode", "prefill", "mixed", "train"});
  if (spec.has("clock")) learnt.clock = spec.number("clock", 0.1, 1);
  if (spec.has("host_us_per_kernel")) learnt.host_us_per_kernel = spec.number("host_us_per_kernel", 0, 1e6);
  learnt.classes = read_factors(spec.map_or_empty("classes"));
  learnt.operators = read_factors(spec.map_or_empty("operators"));
  return learnt;
}

}  // namespace moeline
