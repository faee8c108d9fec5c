#include "experiments/timeline_page/picture.hpp"

#include <fmt/format.h>
#include <algorithm>

#include "trace/short_names.hpp"

namespace moeline {
namespace {

bool same_phase(const KernelSpan& a, const KernelSpan& b) {
  return a.phase == b.phase && a.place.layer == b.place.layer && a.place.micro_batch == b.place.micro_batch;
}

// Kernels in a row that are one bar.
struct PhaseRun {
  const KernelSpan* first = nullptr;
  Time end{}, computes{}, communicates{};

  void add(const KernelSpan& kernel) {
    end = std::max(end, kernel.end);
    (is_communication(kernel.kernel_class) ? communicates : computes) += kernel.end - kernel.start;
  }
  [[nodiscard]] PictureBar bar() const {
    const std::string name = short_phase_name(first->phase.empty() ? short_kernel_name(first->name) : first->phase);
    const std::string title = fmt::format("{}, layer {}, micro-batch {}: {:.1f} us", name, first->place.layer,
                                          first->place.micro_batch, to_us(end - first->start));
    return {name, title, tint_of(first->phase, first->place.micro_batch), communicates > computes, first->start, end};
  }
};

}  // namespace

std::vector<PictureLane> lanes_of_phases(const std::vector<KernelSpan>& kernels,
                                         const std::map<std::uint32_t, std::string>& stream_names) {
  std::map<std::uint32_t, std::vector<PhaseRun>> streams;
  for (const KernelSpan& kernel : kernels) {
    std::vector<PhaseRun>& runs = streams[kernel.stream];
    if (runs.empty() || !same_phase(*runs.back().first, kernel)) runs.push_back({.first = &kernel});
    runs.back().add(kernel);
  }
  std::vector<PictureLane> lanes;
  for (const auto& [stream, runs] : streams) {
    const auto named = stream_names.find(stream);
    PictureLane& lane = lanes.emplace_back();
    lane.name = named == stream_names.end() ? fmt::format("stream {}", stream) : named->second;
    for (const PhaseRun& run : runs) lane.bars.push_back(run.bar());
  }
  return lanes;
}

}  // namespace moeline
