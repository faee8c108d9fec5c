#include "experiments/plan_training/search_layouts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "base/parallel.hpp"
#include "hardware/profile.hpp"
#include "schedules/scenario/scenario.hpp"

namespace moeline {
namespace {

constexpr std::size_t kSplits = 24;     // whose orders are all tried
constexpr std::size_t kConfirmed = 10;  // operator by operator

class Search {
 public:
  Search(const TrainingJob& job, LayoutPoints& points, std::size_t workers, const Progress& progress)
      : job_(job),
        points_(points),
        workers_(workers),
        progress_(progress),
        model_(load_architecture(job.model, job.file.string())) {}

  TrainingAnswer run() {
    std::vector<Layout> first;
    for (std::size_t machine = 0; machine < job_.hardware.size(); ++machine) {
      for (const Layout& split : splits_of(job_, model_, machine)) append(first_orders_of(split, job_, model_), first);
    }
    savings_ = savings_of(job_, model_, by_megatron(first));
    each("splits", first, [&](const Layout& layout) { add_first_that_fits(layout); });
    if (!any_ran()) throw no_layout(first.size());
    std::vector<Layout> orders;
    for (const Layout& split : best_splits()) {
      for (const Layout& order : orders_of(split, job_, model_)) append(with_savings(order), orders);
    }
    each("orders", orders, [&](const Layout& layout) { (void)add(points_.quick(layout)); });
    sort();
    confirm();
    return std::move(answer_);
  }

 private:
  // Whose operators train the model, which is the scenario's business: by the first layout that is one.
  [[nodiscard]] bool by_megatron(const std::vector<Layout>& layouts) const {
    for (const Layout& layout : layouts) {
      try {
        return setup_of(layout, job_).scenario.training.by_megatron();
      } catch (const SpecError&) {
        continue;
      }
    }
    return true;
  }

  static void append(std::vector<Layout> more, std::vector<Layout>& layouts) {
    layouts.insert(layouts.end(), more.begin(), more.end());
  }

  [[nodiscard]] std::vector<Layout> with_savings(Layout layout) const {
    std::vector<Layout> layouts;
    for (const MemorySaving& saving : savings_) {
      layout.saving = saving;
      layouts.push_back(layout);
    }
    return layouts;
  }

  template <class Body>
  void each(const char* what, const std::vector<Layout>& layouts, const Body& body) {
    std::size_t done = 0;
    parallel_for(layouts.size(), workers_, [&](std::size_t i) {
      body(layouts[i]);
      const std::scoped_lock lock(mutex_);
      progress_(what, ++done, layouts.size());
    });
  }

  // Whether it fits.
  bool add(const LayoutPoint& point) {
    const std::scoped_lock lock(mutex_);
    if (!point.is_scenario()) {
      ++answer_.refused[point.refused];
      return false;
    }
    std::vector<LayoutPoint>& list = point.fits ? answer_.searched : answer_.too_large;
    const auto same = [&](const LayoutPoint& other) { return other.layout == point.layout; };
    if (std::none_of(list.begin(), list.end(), same)) list.push_back(point);
    return point.fits;
  }

  void add_first_that_fits(const Layout& order) {
    for (const Layout& layout : with_savings(order)) {
      const LayoutPoint point = points_.quick(layout);
      if (add(point) || !point.is_scenario()) return;
    }
  }

  [[nodiscard]] bool any_ran() const { return !answer_.searched.empty() || !answer_.too_large.empty(); }

  [[nodiscard]] SpecError no_layout(std::size_t tried) const {
    const Spec spec = Spec::load(job_.file);
    if (tried == 0) return spec.error("search", "leaves no way to split the GPUs: nothing that is listed divides them");
    const auto most = std::max_element(answer_.refused.begin(), answer_.refused.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    return spec.error("search", fmt::format("made no scenario of any of {} layouts: {}", tried, most->first));
  }

  // Threads finish in any order: equal prices by their description.
  void sort() {
    const auto before = [&](const LayoutPoint& a, const LayoutPoint& b) {
      const double one = price_of(a, job_), other = price_of(b, job_);
      return one != other ? one < other : describe(a.layout) < describe(b.layout);
    };
    std::sort(answer_.searched.begin(), answer_.searched.end(), before);
    std::sort(answer_.best.begin(), answer_.best.end(), before);
    std::sort(answer_.too_large.begin(), answer_.too_large.end(), [](const LayoutPoint& a, const LayoutPoint& b) {
      return a.memory_gib != b.memory_gib ? a.memory_gib < b.memory_gib : describe(a.layout) < describe(b.layout);
    });
  }

  // As they were before an order was chosen.
  [[nodiscard]] std::vector<Layout> best_splits() {
    sort();
    std::vector<Layout> splits;
    for (const LayoutPoint& point : answer_.searched) {
      Layout split{.machine = point.layout.machine,
                   .split = point.layout.split,
                   .micro_batch_size = point.layout.micro_batch_size};
      split.split.virtual_pp = 1;
      if (std::find(splits.begin(), splits.end(), split) == splits.end()) splits.push_back(split);
      if (splits.size() == kSplits) break;
    }
    return splits;
  }

  void confirm() {
    std::vector<Layout> layouts;
    for (const LayoutPoint& point : answer_.searched) {
      if (layouts.size() < kConfirmed) layouts.push_back(point.layout);
    }
    std::vector<LayoutPoint> confirmed(layouts.size());
    std::size_t done = 0;
    parallel_for(layouts.size(), workers_, [&](std::size_t i) {
      confirmed[i] = points_.confirmed(layouts[i]);
      const std::scoped_lock lock(mutex_);
      progress_("operators", ++done, layouts.size());
    });
    for (const LayoutPoint& point : confirmed) {
      if (point.fits) answer_.best.push_back(point);
    }
    sort();
  }

  const TrainingJob& job_;
  LayoutPoints& points_;
  std::size_t workers_;
  const Progress& progress_;
  Architecture model_;
  std::vector<MemorySaving> savings_;
  std::mutex mutex_;
  TrainingAnswer answer_;
};

struct Assumption {
  std::string name;
  std::vector<std::string> changes;
};

std::vector<Assumption> assumptions_of(const TrainingJob& job, const Layout& answer) {
  const PlanHardware& machine = job.hardware[answer.machine];
  const MachineFacts facts = known_profile(machine.name, machine.set, job.file.string())->facts;
  const auto fact = [](const char* name, double value) { return fmt::format("hardware.{}={:.6g}", name, value); };
  const auto batch = [&](std::int64_t sequences) { return fmt::format("workload.global_batch_size={}", sequences); };
  return {{"NICs half as fast", {fact("nic_GBps", facts.nic_GBps / 2)}},
          {"NVLink half as fast", {fact("nvlink_GBps", facts.nvlink_GBps / 2)}},
          {"batch twice as large", {batch(2 * job.global_batch_size)}},
          {"batch half as large", {batch(job.global_batch_size / 2)}},
          {"kernels as on rested GPUs", {"clock=burst"}}};
}

}  // namespace

TrainingAnswer search_layouts(const TrainingJob& job, LayoutPoints& points, std::size_t workers,
                              const Progress& progress) {
  return Search(job, points, workers, progress).run();
}

std::vector<LayoutSensitivity> layout_sensitivities(const TrainingJob& job, const TrainingAnswer& answer,
                                                    LayoutPoints& points, std::size_t workers,
                                                    const Progress& progress) {
  constexpr std::size_t kPool = 24;
  std::vector<LayoutSensitivity> found;
  if (answer.best.empty()) return found;
  const Layout& chosen = answer.best.front().layout;
  std::vector<Layout> pool = {chosen};
  for (const LayoutPoint& point : answer.searched) {
    if (pool.size() < kPool && point.layout.machine == chosen.machine && !(point.layout == chosen)) {
      pool.push_back(point.layout);
    }
  }
  const std::vector<Assumption> assumptions = assumptions_of(job, chosen);
  ProgressCount one_more(progress, "assumptions", assumptions.size());
  for (const Assumption& assumption : assumptions) {
    std::vector<LayoutPoint> then(pool.size());
    parallel_for(pool.size(), workers, [&](std::size_t i) { then[i] = points.quick(pool[i], assumption.changes); });
    one_more();
    if (!then.front().ran()) continue;  // the answer is no layout then: the batch does not divide
    const LayoutPoint* best = &then.front();
    for (const LayoutPoint& point : then) {
      if (point.ran() && point.fits && point.step_ms < best->step_ms) best = &point;
    }
    found.push_back({assumption.name, *best, then.front()});
  }
  return found;
}

}  // namespace moeline
