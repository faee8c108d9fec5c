#include "calib/fit/trace_observations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>

#include "moe/training.hpp"

namespace moeline {
namespace {

constexpr int kEp = 64;                      // of the profile
constexpr TileSet kTiles = TileSet::narrow;  // of the kernels that ran in it
constexpr int kSeqLen = 4096;
constexpr int kCommunicationStream = 27;
constexpr int kComputeStream = 7;
constexpr double kLongestGapUs = 5;  // longer ones wait for something

struct Kernel {
  std::string name;
  std::string phase;
  int layer = 0, stream = 0, sms = 0;
  int index = 0;  // position in its phase; -1 of a kernel that only some layers have
  double start = 0, end = 0, launch = 0, rows = 0;
  int line = 0;  // of the table

  [[nodiscard]] double us() const { return end - start; }
  [[nodiscard]] bool is_transfer() const { return name.starts_with("internode::"); }
  [[nodiscard]] bool is_barrier() const { return name.find("notify") != std::string::npos; }
};

std::vector<Kernel> read_kernels(const CsvTable& table) {
  std::vector<Kernel> kernels;
  constexpr int kMost = 1 << 20;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    Kernel k;
    k.index = table.integer(row, "idx", -1, kMost);
    k.name = table.text(row, "name");
    k.phase = table.text(row, "phase");
    k.layer = table.integer(row, "layer", 0, kMost);
    k.stream = table.integer(row, "stream", 0, kMost);
    k.sms = table.text(row, "ctas").empty() ? 0 : table.integer(row, "ctas", 0, kMost);
    k.start = table.number(row, "start_us");
    k.end = table.number(row, "end_us");
    k.launch = table.number(row, "launch_us");
    k.rows = table.text(row, "M").empty() ? 0 : table.number(row, "M");
    k.line = table.line(row);
    kernels.push_back(k);
  }
  return kernels;
}

class Chunk {
 public:
  Chunk(const CsvTable& table, const Architecture& model, const MachineFacts& machine)
      : file_(table.file()), kernels_(read_kernels(table)), machine_(machine) {
    work_.model = model;
    work_.seq_len = kSeqLen;
    work_.ep = kEp;
    work_.gpus_per_node = static_cast<int>(machine.gpus_per_node);
    work_.spread = expected_spread(model, kEp, work_.gpus_per_node);
    for (std::size_t i = 0; i < kernels_.size(); ++i) {
      const Kernel& k = kernels_[i];
      if (k.index >= 0 && !at_.emplace(std::tuple{k.phase, k.layer, k.index}, i).second) {
        throw SpecError(file_, k.line, fmt::format("{} {} of layer {} is repeated", k.phase, k.index, k.layer));
      }
    }
  }

  [[nodiscard]] const std::vector<Kernel>& kernels() const { return kernels_; }
  [[nodiscard]] const std::string& file() const { return file_; }

  [[nodiscard]] const Kernel& at(const std::string& phase, int layer, int index) const {
    const auto found = at_.find(std::tuple{phase, layer, index});
    if (found == at_.end()) {
      throw SpecError(file_, 0, fmt::format("has no kernel {} of {} in layer {}", index, phase, layer));
    }
    return kernels_[found->second];
  }

  // Our operators of a phase, for the rows that this layer really had.
  [[nodiscard]] std::vector<Operator> operators(const std::string& phase, int layer) const {
    LayerWork work = work_;
    const bool forward = phase.ends_with("(F)");
    const double rows = forward ? at("mlp(F)", layer, 7).rows : at("mlp(B)", layer, 10).rows;
    work.load = given_load(work.model, rows, kEp, work.spread);
    return training_phase(phase, work);
  }

  // The time this kernel would have taken alone.
  [[nodiscard]] double solo_us(const Operator& op, const Kernel& kernel) const {
    if (row_of(op.family).is_resident || op.blocks > 0) return kernel.us();
    const bool attention = op.family == Family::attention_forward || op.family == Family::attention_backward;
    double lost = 0;
    for (const Kernel& other : kernels_) {
      if (other.stream != kCommunicationStream) continue;
      if (!other.is_transfer() && !(attention && other.is_barrier())) continue;
      const double together = std::min(kernel.end, other.end) - std::max(kernel.start, other.start);
      if (together > 0) lost += together * other.sms / machine_.sms;
    }
    return kernel.us() - lost;
  }

  // For how long of this kernel compute kernels run, on either stream.
  [[nodiscard]] double computing_us(const Kernel& kernel) const {
    std::vector<std::pair<double, double>> beside;
    for (const Kernel& other : kernels_) {
      const double from = std::max(kernel.start, other.start), until = std::min(kernel.end, other.end);
      if (other.stream != kCommunicationStream && from < until) beside.emplace_back(from, until);
    }
    std::sort(beside.begin(), beside.end());
    double sum = 0, counted_until = kernel.start;
    for (const auto& [from, until] : beside) {
      sum += std::max(0.0, until - std::max(from, counted_until));
      counted_until = std::max(counted_until, until);
    }
    return sum;
  }

 private:
  std::string file_;
  std::vector<Kernel> kernels_;
  std::map<std::tuple<std::string, int, int>, std::size_t> at_;
  LayerWork work_;
  MachineFacts machine_;
};

// The kernel's name in the trace, where one name stands for the family: proof that lists and trace are aligned.
std::string expected_name(Family family) {
  switch (family) {
    case Family::gemm_fp8:
      return "fp8_ptp128c";
    case Family::gemm_fp8_wgrad:
      return "fp8_dptp128c_acc";
    case Family::gemm_fp8_grouped:
      return "m_grouped_fp8_ptp128c";
    case Family::gemm_bf16:
      return "cublas_bf16_gemm";
    case Family::attention_forward:
      return "flash::compute_attn_ws";
    case Family::attention_backward:
      return "FlashAttnBwd";
    case Family::notify:
      return "notify";
    case Family::dispatch:
    case Family::dispatch_cached:
      return "internode::dispatch";
    case Family::combine:
      return "internode::combine";
    default:
      return "";
  }
}

std::string place(const Kernel& kernel) {
  return fmt::format("{} {}, layer {}", kernel.phase, kernel.index, kernel.layer);
}

// While nothing computes beside it a transfer goes at its speed alone; the rest of the time is its copies'.
void observe_stretch(const Chunk& chunk, const Curve& curve, Constant stretch, const Kernel& kernel,
                     const Constants& alone, Observation& observation) {
  const double alone_us = evaluate(curve, alone).us;
  const double start_us = copying_us(curve, 0, alone);
  const double copies_us = copying_us(curve, 1, alone) - start_us;
  if (std::isnan(alone_us + copies_us)) {
    throw SpecError(chunk.file(), kernel.line,
                    "needs DeepEP's tables beside it: transfers' copies are measured in multiples of their time alone");
  }
  const double undisturbed_us = kernel.us() - chunk.computing_us(kernel);
  const double disturbed_share = 1 - undisturbed_us / alone_us;
  observation.curves = {{{{stretch, disturbed_share * copies_us}}, {}, undisturbed_us + disturbed_share * start_us}};
}

Observation observe(const Chunk& chunk, const Operator& op, const Kernel& kernel, const MachineFacts& machine,
                    const Constants& alone) {
  const int sms = row_of(op.family).is_resident ? kernel.sms : static_cast<int>(machine.sms);
  Observation observation;
  observation.family = name_of(op.family);
  observation.dimensions = dimensions_of(op, sms);
  observation.where = place(kernel);
  observation.measured_us = chunk.solo_us(op, kernel);
  if (is_all_to_all(op.family)) {
    const Curve curve = transfer_curve(op, kernel.sms, machine);
    observe_stretch(chunk, curve, copy_stretch(op.family), kernel, alone, observation);
  } else {
    observation.curves = {compute_curve(op, sms, machine, kTiles)};
    if (op.family == Family::attention_forward) keep_branch(observation.curves[0], "compute");  // no host in this clock
  }
  return observation;
}

// Independent GEMMs on two streams: their own times overlap (the start of a waiting kernel is recorded before it has
// its SMs), so the group counts as one.
void merge(Observation& group, const Observation& next, double measured_us) {
  Curve& both = group.curves[0];
  const Curve& added = next.curves[0];
  for (std::size_t i = 0; i < both.branches.size(); ++i) {
    std::vector<Term>& terms = both.branches[i].terms;
    const std::vector<Term>& more = added.branches[i].terms;
    terms.insert(terms.end(), more.begin(), more.end());
  }
  both.always.insert(both.always.end(), added.always.begin(), added.always.end());
  group.measured_us = measured_us;
}

void observe_phase(const Chunk& chunk, const std::string& phase, int layer, const MachineFacts& machine,
                   const Constants& alone, std::vector<Observation>& observations) {
  const std::vector<Operator> ops = chunk.operators(phase, layer);
  double group_start = 0;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const Operator& op = ops[i];
    const Kernel& kernel = chunk.at(phase, layer, static_cast<int>(i));
    if (kernel.name.find(expected_name(op.family)) == std::string::npos) {
      throw SpecError(chunk.file(), kernel.line,
                      fmt::format("name: {} is '{}', where our list has '{}' ({})", place(kernel), kernel.name, op.name,
                                  name_of(op.family)));
    }
    const bool squeezed = kernel.stream == kCommunicationStream && op.family == Family::rowwise;
    const bool predicted = op.family == Family::gemm_bf16;  // by the FP8 curve
    if (op.family == Family::notify || squeezed || predicted) continue;
    const Observation observation = observe(chunk, op, kernel, machine, alone);
    if (op.parallel && i > 0 && ops[i - 1].name == op.name) {
      merge(observations.back(), observation, kernel.end - group_start);
    } else {
      group_start = kernel.start;
      observations.push_back(observation);
    }
  }
}

void observe_launches(const Chunk& chunk, const std::vector<int>& layers, std::vector<Observation>& observations) {
  const auto add = [&](std::vector<Term> terms, double us, std::string where) {
    observations.push_back({"launch", us, {Curve{std::move(terms), {}}}, {}, std::move(where)});
  };
  std::vector<const Kernel*> compute;
  for (const Kernel& kernel : chunk.kernels()) {
    if (kernel.stream == kComputeStream) compute.push_back(&kernel);
  }
  std::sort(compute.begin(), compute.end(), [](const Kernel* a, const Kernel* b) { return a->start < b->start; });
  for (std::size_t i = 1; i < compute.size(); ++i) {
    const double gap = compute[i]->start - compute[i - 1]->end;
    const bool wanted = std::find(layers.begin(), layers.end(), compute[i]->layer) != layers.end();
    if (wanted && gap >= 0 && gap <= kLongestGapUs) add({{Constant::kernel_gap, 1}}, gap, place(*compute[i]));
  }
  for (const int layer : layers) {
    const Kernel& notify = chunk.at("dispatch(F)", layer, 1);
    const Kernel& dispatch = chunk.at("dispatch(F)", layer, 2);
    const Kernel& weights = chunk.at("mlp(W)", layer, 0);
    add({{Constant::read_counts, 1}, {Constant::kernel_gap, 1}}, dispatch.start - notify.end, place(dispatch));
    add({{Constant::host_launch, 1}}, weights.launch - notify.end, place(weights));
  }
}

// The host launches one kernel of an eager program after the other; longer pauses are something else.
void observe_host(const Chunk& chunk, const std::vector<int>& layers, std::vector<Observation>& observations) {
  constexpr double kLongestPauseUs = 100;
  const Kernel* previous = nullptr;
  for (const Kernel& kernel : chunk.kernels()) {
    const bool wanted = std::find(layers.begin(), layers.end(), kernel.layer) != layers.end();
    const bool follows = previous != nullptr && previous->phase == kernel.phase && previous->layer == kernel.layer &&
                         previous->index + 1 == kernel.index;
    const double pause = follows ? kernel.launch - previous->launch : -1;
    previous = &kernel;
    if (!wanted || kernel.phase != "attn(F)" || pause < 0 || pause > kLongestPauseUs) continue;
    observations.push_back({"launch", pause, {Curve{{{Constant::host_per_kernel, 1}}, {}}}, {}, place(kernel)});
  }
}

// The same kernel in two layers: two draws. Their difference is sqrt(2) deviations, its absolute value 2 / sqrt(pi) on
// average.
void observe_jitter(const Chunk& chunk, int layer, int other, std::vector<Observation>& observations) {
  constexpr double kShortest = 50;  // us: below, rounding to whole us is no longer small
  for (const std::string& phase : training_phase_names()) {
    const std::vector<Operator> ops = chunk.operators(phase, layer);
    const std::vector<Operator> others = chunk.operators(phase, other);
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const Kernel& a = chunk.at(phase, layer, static_cast<int>(i));
      const Kernel& b = chunk.at(phase, other, static_cast<int>(i));
      const double mean = (chunk.solo_us(ops[i], a) + chunk.solo_us(ops[i], b)) / 2;
      const bool equal_work =
          dimensions_of(ops[i], 1) == dimensions_of(others[i], 1) && a.sms == b.sms && !ops[i].parallel;
      if (!equal_work || is_communication(ops[i].family) || a.stream == kCommunicationStream || mean < kShortest)
        continue;
      const double difference = std::abs(chunk.solo_us(ops[i], a) - chunk.solo_us(ops[i], b));
      observations.push_back({"jitter",
                              difference,
                              {Curve{{{Constant::jitter, mean * 2 / std::sqrt(std::numbers::pi)}}, {}}},
                              {},
                              place(a)});
      observations.back().varies = name_of(ops[i].family);
    }
  }
}

}  // namespace

std::vector<Observation> trace_observations(const CsvTable& kernels, const std::vector<int>& layers,
                                            const Architecture& model, const MachineFacts& machine,
                                            const Constants& alone) {
  const Chunk chunk(kernels, model, machine);
  std::vector<Observation> observations;
  for (const int layer : layers) {
    for (const std::string& phase : training_phase_names())
      observe_phase(chunk, phase, layer, machine, alone, observations);
  }
  observe_launches(chunk, layers, observations);
  observe_host(chunk, layers, observations);
  for (std::size_t i = 1; i < layers.size(); ++i) observe_jitter(chunk, layers[i - 1], layers[i], observations);
  return observations;
}

}  // namespace moeline
