#include "experiments/timeline_page/span_bars.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "trace/short_names.hpp"

namespace moeline {
namespace {

// Mangled templates run to thousands of characters.
constexpr std::size_t kLongestName = 160;

using StreamOfRank = std::pair<std::uint32_t, std::uint32_t>;

std::map<StreamOfRank, std::uint32_t> add_lanes(const std::vector<KernelSpan>& kernels, std::size_t count,
                                                const std::map<std::uint32_t, std::string>& stream_names,
                                                TimelineView& view) {
  std::map<StreamOfRank, std::uint32_t> lanes;
  for (std::size_t i = 0; i < count; ++i) lanes.try_emplace({kernels[i].rank, kernels[i].stream}, 0);
  for (auto& [stream, lane] : lanes) {
    lane = static_cast<std::uint32_t>(view.lanes.size());
    const auto named = stream_names.find(stream.second);
    view.lanes.push_back(
        {stream.first, named == stream_names.end() ? fmt::format("stream {}", stream.second) : named->second});
    if (view.ranks.empty() || view.ranks.back() != stream.first) view.ranks.push_back(stream.first);
  }
  return lanes;
}

Bar bar_of(const KernelSpan& kernel, ViewDraft& draft) {
  const std::string name = short_kernel_name(kernel.name);
  Bar bar{.start = kernel.start, .end = kernel.end};
  bar.kind =
      draft.kind({name, name_of(kernel.kernel_class), name == kernel.name ? "" : one_line(kernel.name, kLongestName), 0,
                  is_communication(kernel.kernel_class)});
  if (!kernel.phase.empty()) {
    bar.phase = draft.phase({short_phase_name(kernel.phase), kernel.place.layer, kernel.place.micro_batch, ""});
  }
  bar.alone = std::max(Time::zero(), kernel.end - kernel.start - kernel.contention);
  return bar;
}

}  // namespace

std::vector<std::size_t> add_spans(const std::vector<KernelSpan>& kernels, std::size_t most,
                                   const std::map<std::uint32_t, std::string>& stream_names, ViewDraft& draft) {
  const std::size_t count = std::min(kernels.size(), most);
  const auto lanes = add_lanes(kernels, count, stream_names, draft.view);
  std::vector<std::size_t> order(count);
  for (std::size_t i = 0; i < count; ++i) order[i] = i;
  const auto lane_of = [&](std::size_t i) { return lanes.at({kernels[i].rank, kernels[i].stream}); };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return kernels[a].start != kernels[b].start ? kernels[a].start < kernels[b].start : lane_of(a) < lane_of(b);
  });
  for (const std::size_t i : order) {
    Bar bar = bar_of(kernels[i], draft);
    bar.lane = lane_of(i);
    draft.view.bars.push_back(bar);
    draft.view.end = std::max(draft.view.end, bar.end);
  }
  if (count < kernels.size()) {
    draft.view.left_out.push_back(fmt::format(
        "The first {} of {} kernels are shown; of a trace --from, --to and --steps choose.", count, kernels.size()));
  }
  return order;
}

}  // namespace moeline
