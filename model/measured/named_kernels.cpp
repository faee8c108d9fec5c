#include "measured/named_kernels.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "measured/breakdown.hpp"

namespace moeline {

std::vector<NamedKernel> kernels_by_name(const Measured& m) {
  std::map<std::uint32_t, NamedKernel> by_name;
  Time all{};
  for (const GpuEvent& event : m.trace.gpu_events) {
    if (event.kind != GpuEventKind::kernel) continue;
    NamedKernel& kernel = by_name[event.name];
    ++kernel.count;
    kernel.sum += length_of(event);
    all += length_of(event);
  }
  std::vector<NamedKernel> kernels;
  for (auto& [name, kernel] : by_name) {
    kernel.name = m.trace.names[name].name;
    kernel.meaning = m.meaning.names[name];
    kernel.share = ratio(kernel.sum, all);
    kernels.push_back(std::move(kernel));
  }
  const auto place = [](const NamedKernel& k) { return std::tuple(k.meaning.known_by != KnownBy::nothing, -k.sum); };
  std::stable_sort(kernels.begin(), kernels.end(),
                   [&](const NamedKernel& a, const NamedKernel& b) { return place(a) < place(b); });
  return kernels;
}

}  // namespace moeline
