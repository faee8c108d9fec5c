#include "experiments/timeline_page/page.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <map>

#include "base/error.hpp"
#include "experiments/page/page_json.hpp"
#include "timeline/critical_path.hpp"

namespace moeline {
namespace {

// Numbers that grow are written as differences: most of a page's bytes are its bars'.
class Ascending {
 public:
  std::int64_t operator()(std::int64_t value) { return value - std::exchange(last_, value); }

 private:
  std::int64_t last_ = 0;
};

std::int64_t ns(Time time) { return (time.count() + (time.count() < 0 ? -500 : 500)) / 1000; }

// Each text once; others name it by its position.
class Texts {
 public:
  std::int64_t operator()(const std::string& text) {
    const auto [found, added] = ids_.try_emplace(text, ids_.size());
    if (added) list_.push_back(text);
    return static_cast<std::int64_t>(found->second);
  }
  [[nodiscard]] const std::vector<std::string>& list() const { return list_; }

 private:
  std::map<std::string, std::size_t> ids_;
  std::vector<std::string> list_;
};

template <class Of>
void column(PageJson& json, std::string_view name, const std::vector<Bar>& bars, Of of) {
  json.key(name);
  json.open_list();
  for (std::size_t i = 0; i < bars.size(); ++i) json.whole(of(bars[i], static_cast<std::int64_t>(i)));
  json.close_list();
}

// 0: none; 1: elsewhere, whose text follows in a list of its own; else twice how many bars before, odd for a start.
std::int64_t code_of(const BarEvent& event, std::int64_t bar) {
  if (event.of == BarEvent::Of::nothing) return 0;
  if (event.of == BarEvent::Of::elsewhere) return 1;
  return 2 * (bar - event.index) + (event.of == BarEvent::Of::start ? 1 : 0);
}

void write_elsewhere(PageJson& json, std::string_view name, const std::vector<Bar>& bars, BarEvent Bar::*event) {
  json.key(name);
  json.open_list();
  for (const Bar& bar : bars) {
    if ((bar.*event).of == BarEvent::Of::elsewhere) json.whole((bar.*event).index);
  }
  json.close_list();
}

void write_bars(PageJson& json, const std::vector<Bar>& bars) {
  json.key("bars");
  json.open();
  column(json, "start", bars, [last = Ascending()](const Bar& b, auto) mutable { return last(ns(b.start)); });
  column(json, "length", bars, [](const Bar& b, auto) { return ns(b.end) - ns(b.start); });
  column(json, "lane", bars, [](const Bar& b, auto) { return b.lane; });
  column(json, "kind", bars, [](const Bar& b, auto) { return b.kind; });
  column(json, "phase", bars, [last = Ascending()](const Bar& b, auto) mutable { return last(b.phase); });
  column(json, "slowed", bars, [](const Bar& b, auto) { return ns(b.end - b.start - b.alone); });
  column(json, "delay", bars, [](const Bar& b, auto) { return ns(b.delay); });
  column(json, "sms_wait", bars, [](const Bar& b, auto) { return ns(b.sms_wait); });
  column(json, "released", bars, [](const Bar& b, std::int64_t i) { return code_of(b.released, i); });
  column(json, "held", bars, [](const Bar& b, std::int64_t i) { return code_of(b.held, i); });
  write_elsewhere(json, "released_elsewhere", bars, &Bar::released);
  write_elsewhere(json, "held_elsewhere", bars, &Bar::held);
  json.close();
}

void write_path(PageJson& json, const std::vector<PathStretch>& path) {
  json.key("path");
  json.open();
  json.list("bar", path, [&](const PathStretch& s) { json.whole(s.bar); });
  json.list("reason", path, [&](const PathStretch& s) { json.whole(s.reason == kManyReasons ? -1 : s.reason); });
  json.list("start", path, [&, last = Ascending()](const PathStretch& s) mutable { json.whole(last(ns(s.start))); });
  json.list("length", path, [&](const PathStretch& s) { json.whole(ns(s.end) - ns(s.start)); });
  json.close();
}

void write_use(PageJson& json, const ResourceUse& use) {
  json.open();
  json.key("rank");
  json.whole(use.rank);
  json.entry("name", use.name);
  json.key("capacity");
  json.number(use.capacity);
  json.list("at", use.taken, [&, last = Ascending()](const auto& step) mutable { json.whole(last(ns(step.first))); });
  json.list("taken", use.taken,
            [&](const auto& step) { json.whole(std::llround(kUseUnits * step.second / use.capacity)); });
  json.close();
}

void write_kinds(PageJson& json, const std::vector<BarKind>& kinds, Texts& texts) {
  json.list("kinds", kinds, [&](const BarKind& kind) {
    json.open_list();
    for (const std::string* text : {&kind.name, &kind.task_class, &kind.detail}) json.whole(texts(*text));
    json.whole(kind.sms);
    json.whole(kind.communicates ? 1 : 0);
    json.close_list();
  });
}

void write_phases(PageJson& json, const std::vector<BarPhase>& phases, Texts& texts) {
  json.list("phases", phases, [&](const BarPhase& phase) {
    json.open_list();
    json.whole(texts(phase.name));
    json.whole(phase.layer);
    json.whole(phase.micro_batch);
    if (!phase.note.empty()) json.whole(texts(phase.note));
    json.close_list();
  });
}

void write_view(PageJson& json, const TimelineView& view) {
  Texts texts;
  json.open();
  json.entry("name", view.name);
  json.flag("measured", view.measured);
  json.key("start");
  json.whole(ns(view.start));
  json.key("end");
  json.whole(ns(view.end));
  json.key("window");
  json.open();
  json.entry("name", view.window_name);
  json.key("from");
  json.whole(ns(view.window.start));
  json.key("until");
  json.whole(ns(view.window.end));
  json.close();
  json.wholes("ranks", view.ranks);
  json.list("lanes", view.lanes, [&](const Lane& lane) {
    json.open_list();
    json.whole(lane.rank);
    json.text(lane.name);
    json.close_list();
  });
  write_kinds(json, view.kinds, texts);
  write_phases(json, view.phases, texts);
  json.texts("texts", texts.list());
  json.texts("elsewhere", view.texts);
  write_bars(json, view.bars);
  write_path(json, view.path);
  json.list("uses", view.uses, [&](const ResourceUse& use) { write_use(json, use); });
  json.texts("left_out", view.left_out);
  json.close();
}

void write_table(PageJson& json, const PageTable& table) {
  json.open();
  json.entry("title", table.title);
  json.entry("alignment", table.alignment);
  json.texts("header", table.header);
  json.key("rows");
  json.open_list();
  for (const std::vector<std::string>& row : table.rows) {
    json.open_list();
    for (const std::string& cell : row) json.text(cell);
    json.close_list();
  }
  json.close_list();
  json.close();
}

void check_consistent(const TimelineView& view) {
  for (const Bar& bar : view.bars) {
    MOELINE_CHECK(bar.lane < view.lanes.size() && bar.kind < view.kinds.size(), view.name);
    MOELINE_CHECK(bar.phase < static_cast<std::int32_t>(view.phases.size()), view.name);
  }
}

std::string data_of(const TimelinePage& page) {
  PageJson json;
  json.open();
  json.entry("version", MOELINE_VERSION);
  json.entry("title", page.title);
  json.texts("summary", page.summary);
  std::vector<std::string> reasons;
  for (std::size_t i = 0; i < kPathReasons; ++i) reasons.push_back(name_of(static_cast<PathReason>(i)));
  json.texts("reasons", reasons);
  json.list("views", page.views, [&](const TimelineView& view) { write_view(json, view); });
  json.list("tables", page.tables, [&](const PageTable& table) { write_table(json, table); });
  json.list("sources", page.sources, [&](const PageSource& source) {
    json.open();
    json.entry("title", source.title);
    json.entry("text", source.text);
    json.close();
  });
  json.close();
  return json.for_script();
}

}  // namespace

PageTemplate load_timeline_template() { return load_page_template("timeline_page"); }

std::string to_html(const TimelinePage& page, const PageTemplate& page_template) {
  for (const TimelineView& view : page.views) check_consistent(view);
  return filled(page_template, page.title, data_of(page));
}

namespace {

std::vector<std::string> row(const std::string& what, Time time, Time span) {
  return {what, fmt::format("{:.1f}", to_us(time)), fmt::format("{:.1f}", 100 * ratio(time, span))};
}

PageTable table(const char* title, const char* what) { return {title, "lrr", {what, "us", "% of span"}, {}}; }

PageTable reasons(const Explanation& e) {
  std::array<Time, kPathReasons> times{};
  for (const PathStep& step : e.path) times[static_cast<std::size_t>(step.reason)] += step.end - step.start;
  PageTable reasons = table("What the end waited for", "reason");
  for (std::size_t i = 0; i < kPathReasons; ++i) {
    if (times[i] > Time::zero()) reasons.rows.push_back(row(name_of(static_cast<PathReason>(i)), times[i], e.span));
  }
  return reasons;
}

PageTable largest(PageTable table, const std::vector<Blame>& blames, Time span) {
  constexpr std::size_t kMost = 20;
  Time rest{};
  for (const Blame& blame : blames) {
    if (table.rows.size() < kMost) {
      table.rows.push_back(row(title_of(blame), blame.time, span));
    } else {
      rest += blame.time;
    }
  }
  if (blames.size() > kMost) table.rows.push_back(row(fmt::format("{} more", blames.size() - kMost), rest, span));
  return table;
}

PageTable blames(const Explanation& e) {
  return largest(table("Blame: the same, by class, phase and reason", "what"), e.blame, e.span);
}

PageTable idle(const Explanation& e) {
  const std::string title =
      fmt::format("Why {} is not all it takes: time without such work, while the end waits for", e.idle_of);
  return largest(table(title.c_str(), "what"), e.idle, e.span);
}

PageTable sensitivities(const Explanation& e) {
  return {"What would shorten it: share of the span saved with so much less of its time", "lrrrrrl", sensitivity_head(),
          sensitivity_rows(e.sensitivities)};
}

PageTable bounds(const Explanation& e) {
  PageTable bounds = table("With these kernels in this order it takes no less than", "bound");
  for (const Bound& bound : e.bounds) bounds.rows.push_back(row(bound.what, bound.time, e.span));
  return bounds;
}

}  // namespace

std::vector<PageTable> tables_of(const Explanation& explanation) {
  std::vector<PageTable> tables = {reasons(explanation), blames(explanation), sensitivities(explanation),
                                   bounds(explanation)};
  if (!explanation.idle_of.empty()) tables.push_back(idle(explanation));
  return tables;
}

}  // namespace moeline
