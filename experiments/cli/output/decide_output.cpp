#include "experiments/cli/output/decide_output.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/text.hpp"
#include "base/text_table.hpp"
#include "experiments/cli/output/decide_texts.hpp"
#include "experiments/cli/output/provenance.hpp"
#include "experiments/report/fields.hpp"

namespace moeline {
namespace {

constexpr const char *kTie = "a tie", *kNobody = "none";

std::string winner_text(const Decision& d, const Winner& winner) {
  if (winner.setting) return d.name_of_setting(*winner.setting);
  return winner.is_tie ? kTie : kNobody;
}

std::string ahead(const DecidePoint& point) {
  return point.winner.second && !point.winner.is_tie ? fmt::format("{:.1f} %", 100 * (point.winner.ratio - 1)) : "-";
}

std::string remark(const Decision& d, const DecidePoint& point) {
  return point.winner.setting && !d.is_sure(point) ? "too close to call" : "";
}

std::string value_cell(const SettingOutcome& outcome) {
  if (!outcome.is_simulated()) return "refused";
  return fmt::format("{:.5g}{}", outcome.value, outcome.against.empty() ? "" : " (!)");
}

std::string points_table(const Decision& d) {
  const DecideQuestion& q = d.question;
  TextTable table(std::string(q.beside ? 1 : 0, 'r') + "r" + std::string(q.settings.size(), 'r') + "lrl");
  std::vector<std::string> head;
  if (q.beside) head.push_back(q.beside->key);
  head.push_back(q.along ? q.along->key : "");
  for (const DecideSetting& setting : q.settings) head.push_back(setting.name);
  head.insert(head.end(), {"winner", "ahead by", ""});
  table.row(head);
  for (const DecideCourse& course : d.courses) {
    for (std::size_t i = 0; i < course.points.size(); ++i) {
      const DecidePoint& point = course.points[i];
      const auto is_there = [&](const Turn& turn) { return turn.at == i || turn.before == i; };
      if (!point.is_asked && std::ranges::none_of(course.turns, is_there)) continue;
      std::vector<std::string> row;
      if (q.beside) row.push_back(point.beside);
      row.push_back(point.at);
      for (const SettingOutcome& outcome : point.outcomes) row.push_back(value_cell(outcome));
      row.insert(row.end(), {winner_text(d, point.winner), ahead(point), remark(d, point)});
      table.row(std::move(row));
    }
  }
  return table.text("  ");
}

// Each reason once, with where it first holds.
std::string refusals(const Decision& d) {
  std::string text;
  std::set<std::pair<std::size_t, std::string>> told;
  for (const DecideCourse& course : d.courses) {
    for (const DecidePoint& point : course.points) {
      for (std::size_t i = 0; i < point.outcomes.size(); ++i) {
        const SettingOutcome& outcome = point.outcomes[i];
        const std::string& why = outcome.is_simulated() ? outcome.against : outcome.refused;
        if (why.empty()) continue;
        const std::string kind = outcome.is_simulated() ? why.substr(0, why.find_first_of("0123456789")) : why;
        if (!told.emplace(i, kind).second) continue;
        text += fmt::format("  {}: {} {}{}\n", place_of(d, point), d.name_of_setting(i),
                            outcome.is_simulated() ? "cannot win (!): " : "is refused: ", why);
      }
    }
  }
  return text.empty() ? "" : "\nwhat is not among the winners, where it is so first\n" + text;
}

std::string part_table(const Decision& d, const WinReason& reason) {
  TextTable table("lrrr");
  table.row({time_unit_of(d.by), d.name_of_setting(reason.from), d.name_of_setting(reason.to), "difference"});
  double from = 0, to = 0;
  for (const PartDifference& part : reason.parts) {
    table.row({part.what, fmt::format("{:.2f}", part.from_us), fmt::format("{:.2f}", part.to_us),
               fmt::format("{:+.2f}", part.us())});
    from += part.from_us;
    to += part.to_us;
  }
  table.row({"all", fmt::format("{:.2f}", from), fmt::format("{:.2f}", to), fmt::format("{:+.2f}", to - from)});
  return table.text("    ");
}

std::string reasons(const Decision& d) {
  if (d.reasons.empty()) return "";
  std::string text = "\nwhy\n";
  for (const WinReason& reason : d.reasons) {
    text += "  " + reason_line(d, reason) + "\n";
    if (reason.band) text += "    " + band_line(*reason.band, d.question.samples) + "\n";
    if (!reason.parts.empty()) text += part_table(d, reason);
  }
  return text;
}

// Of each setting the share at the point where it is largest.
std::string extrapolations(const Decision& d) {
  std::string text;
  for (std::size_t i = 0; i < d.question.settings.size(); ++i) {
    const DecidePoint* most = nullptr;
    for (const DecideCourse& course : d.courses) {
      for (const DecidePoint& point : course.points) {
        const bool more = most == nullptr || point.outcomes[i].known.share(0) > most->outcomes[i].known.share(0);
        if (point.is_asked && point.outcomes[i].is_simulated() && more) most = &point;
      }
    }
    if (most == nullptr || most->outcomes[i].known.share(0) < 5e-4) continue;
    const SettingOutcome& outcome = most->outcomes[i];
    const std::string names =
        outcome.extrapolated.empty() ? "" : fmt::format(" ({})", fmt::join(outcome.extrapolated, ", "));
    text += fmt::format("  {}: {:.1f} % of its kernels' time is extrapolated {}{}\n", d.name_of_setting(i),
                        100 * outcome.known.share(0), place_of(d, *most), names);
  }
  return text;
}

std::string csv_row(const std::vector<std::string>& cells) {
  std::string line;
  for (const std::string& cell : cells) {
    const bool quoted = cell.find_first_of(",\"\n") != std::string::npos;
    line += (line.empty() ? "" : ",") + (quoted ? in_quotes(cell) : cell);
  }
  return line + "\n";
}

}  // namespace

std::string decide_table(const Decision& d) {
  std::string text = title_of(d) + "\n\n" + points_table(d);
  const std::vector<std::string> turns = turn_lines(d);
  text += "\n";
  for (const std::string& line : turns) text += line + "\n";
  text += refusals(d) + reasons(d) + "\nhow sure\n";
  for (const std::string& line : sure_lines(d)) text += "  " + line + "\n";
  return text + extrapolations(d);
}

std::string decide_csv(const Decision& d) {
  const DecideQuestion& q = d.question;
  std::vector<std::string> head;
  if (q.beside) head.push_back(q.beside->key);
  if (q.along) head.push_back(q.along->key);
  for (const DecideSetting& setting : q.settings) head.push_back(setting.name);
  head.insert(head.end(), {"winner", "ratio", "sure"});
  std::string text = csv_row(head);
  for (const DecideCourse& course : d.courses) {
    for (const DecidePoint& point : course.points) {
      std::vector<std::string> row;
      if (q.beside) row.push_back(point.beside);
      if (q.along) row.push_back(point.at);
      for (const SettingOutcome& o : point.outcomes) row.push_back(o.is_simulated() ? fmt::format("{:.9g}", o.value) : "");
      const bool has_ratio = point.winner.second.has_value();
      row.insert(row.end(),
                 {point.winner.setting ? winner_text(d, point.winner) : "",
                  has_ratio ? fmt::format("{:.6g}", point.winner.ratio) : "", d.is_sure(point) ? "true" : "false"});
      text += csv_row(row);
    }
  }
  return text;
}

namespace {

// A part of a decision, with all of it.
template <class Part>
struct Of {
  const Decision& d;
  Part part;
};
using OfPoint = Of<const DecidePoint*>;
using OfTurn = Of<std::pair<const DecideCourse*, const Turn*>>;
using OfReason = Of<const WinReason*>;
using OfSetting = Of<std::size_t>;

std::vector<OfPoint> points_of(const Decision& d) {
  std::vector<OfPoint> points;
  for (const DecideCourse& course : d.courses) {
    for (const DecidePoint& point : course.points) points.push_back({d, &point});
  }
  return points;
}

std::vector<OfTurn> turns_of(const Decision& d) {
  std::vector<OfTurn> turns;
  for (const DecideCourse& course : d.courses) {
    for (const Turn& turn : course.turns) turns.push_back({d, {&course, &turn}});
  }
  return turns;
}

std::vector<OfReason> reasons_of(const Decision& d) {
  std::vector<OfReason> reasons;
  for (const WinReason& reason : d.reasons) reasons.push_back({d, &reason});
  return reasons;
}

std::vector<OfSetting> settings_of(const Decision& d) {
  std::vector<OfSetting> settings;
  for (std::size_t i = 0; i < d.question.settings.size(); ++i) settings.push_back({d, i});
  return settings;
}

std::optional<std::string> name_if(const Decision& d, const std::optional<std::size_t>& setting) {
  return setting ? std::optional(d.name_of_setting(*setting)) : std::nullopt;
}

// Where a point is: its number, or its word.
report::Value at_of(const std::string& at) {
  if (const auto whole = as_number<std::int64_t>(at)) return *whole;
  if (const auto number = as_number<double>(at)) return *number;
  return at;
}

void write_at(Json& json, const std::string& key, const std::string& at) {
  report::write(json, key, at_of(at), {.decimals = kByAmount, .least = kAny});
}

template <class T>
Fields<T> place_fields(std::function<const DecidePoint&(const T&)> point) {
  const auto describe = [](Json& json) { json.add("type", std::vector<std::string>{"number", "string"}); };
  return Fields<T>()
      .written(
          "at", "value of the axis", [=](Json& json, const T& t) { write_at(json, "at", point(t).at); }, describe)
      .add("beside", "value of the second axis",
           [=](const T& t) { return only_if(t.d.question.beside.has_value(), point(t).beside); });
}

std::vector<double> nan_values(const OfPoint& p) {
  std::vector<double> values;
  for (const SettingOutcome& outcome : p.part->outcomes) values.push_back(outcome.is_simulated() ? outcome.value : NAN);
  return values;
}

void write_values(Json& json, const OfPoint& p) {
  json.open_list("values");
  for (const double value : nan_values(p)) std::isnan(value) ? json.null_item() : json.number_item(value, 6);
  json.close_list();
}

std::vector<std::string> whys(const OfPoint& p) {
  std::vector<std::string> texts;
  for (const SettingOutcome& outcome : p.part->outcomes) {
    texts.push_back(outcome.is_simulated() ? outcome.against : outcome.refused);
  }
  return texts;
}

Fields<OfPoint> point_fields() {
  return place_fields<OfPoint>([](const OfPoint& p) -> const DecidePoint& { return *p.part; })
      .written("values", "by setting the metric, null where it is refused", write_values,
               [](Json& json) {
                 report::describe_list(json, [](Json& item) {
                   item.add("type", std::vector<std::string>{"number", "null"});
                 });
               })
      .add("not_winning", "by setting why it is refused or cannot win, else empty", whys)
      .add("winner", "the setting; null: a tie, or none may win",
           [](const OfPoint& p) { return or_null(name_if(p.d, p.part->winner.setting)); })
      .add("tie", "the best two are alike", [](const OfPoint& p) { return p.part->winner.is_tie; })
      .add("asked", "one of the axis' own values; others were tried to find a turn",
           [](const OfPoint& p) { return p.part->is_asked; });
}

Fields<OfPoint> margin_fields() {
  return place_fields<OfPoint>([](const OfPoint& p) -> const DecidePoint& { return *p.part; })
      .add("ratio", "how much better the winner is than the second: 1.1 is a tenth; null where nobody else may win",
           [](const OfPoint& p) { return or_null(only_if(p.part->winner.second.has_value(), p.part->winner.ratio)); },
           {.decimals = 6})
      .add("sure", "whether that is more than such comparisons were off by",
           [](const OfPoint& p) { return p.d.is_sure(*p.part); });
}

Fields<OfTurn> turn_fields() {
  const auto setting = [](auto which) {
    return [=](const OfTurn& t) {
      return or_null(name_if(t.d, t.part.first->points[t.part.second->*which].winner.setting));
    };
  };
  return place_fields<OfTurn>(
             [](const OfTurn& t) -> const DecidePoint& { return t.part.first->points[t.part.second->at]; })
      .add("from", "who wins before; null: a tie, or nobody", setting(&Turn::before))
      .add("to", "who wins from there on", setting(&Turn::at))
      .written(
          "before", "the last value before that was simulated",
          [](Json& json, const OfTurn& t) { write_at(json, "before", t.part.first->points[t.part.second->before].at); },
          [](Json& json) {
            json.add("type", std::vector<std::string>{"number", "string"});
          })
      .add("exact", "there is nothing between the two", [](const OfTurn& t) { return t.part.second->is_exact; });
}

Fields<OfReason> reason_fields() {
  const As us{.decimals = 6, .least = kAny};
  const auto part = Fields<PartDifference>()
                        .add("what", "what the time goes by", &PartDifference::what)
                        .add(
                            "us", "of `to` less that of `from`", [](auto& p) { return p.us(); }, us)
                        .add("from_us", "of `from`", &PartDifference::from_us, us)
                        .add("to_us", "of `to`", &PartDifference::to_us, us);
  const As ratio{.decimals = 6};
  const auto band = Fields<Band>()
                        .add("median", "median", &Band::median, ratio)
                        .add("p5", "5 % quantile", &Band::p5, ratio)
                        .add("p95", "95 % quantile", &Band::p95, ratio);
  return place_fields<OfReason>([](const OfReason& r) -> const DecidePoint& { return r.d.point_of(*r.part); })
      .add("from", "the setting that loses", [](const OfReason& r) { return r.d.name_of_setting(r.part->from); })
      .add("to", "the one that wins", [](const OfReason& r) { return r.d.name_of_setting(r.part->to); })
      .add("says", "in a sentence", [](const OfReason& r) { return reason_line(r.d, *r.part); })
      .add("because", "why `from` cannot win, where it is not slower",
           [](const OfReason& r) { return if_any(r.part->because); })
      .list(
          "parts", "what `to` pays and, below 0, saves; sums to the difference",
          [](const OfReason& r) -> auto& { return r.part->parts; }, part)
      .object(
          "band", "of how much better `to` is, over equal draws of both",
          [](const OfReason& r) { return r.part->band; }, band);
}

Fields<PairErrors> error_fields() {
  return Fields<PairErrors>()
      .add("kind", "what such settings differ in; null: anything",
           [](auto& e) { return or_null(e.kind ? std::optional(name_of(*e.kind)) : std::nullopt); })
      .add("pairs", "published pairs", &PairErrors::pairs)
      .add("right", "of which the faster one is named", &PairErrors::right)
      .add("median_abs_error", "of the ratio", &PairErrors::median_abs_error, {.decimals = 4});
}

Fields<OfSetting> setting_fields() {
  return Fields<OfSetting>()
      .add("name", "as it is called", [](const OfSetting& s) { return s.d.name_of_setting(s.part); })
      .add("scenario", "file", [](const OfSetting& s) { return s.d.question.settings[s.part].file; })
      .add("set", "changes of it", [](const OfSetting& s) { return s.d.question.settings[s.part].assignments; });
}

std::vector<PairErrors> errors_of(const Decision& d) {
  std::vector<PairErrors> errors;
  for (const DecideCourse& course : d.courses) {
    for (const DecidePoint& point : course.points) {
      if (!point.winner.setting || !point.winner.second) continue;
      const PairErrors at = d.errors_at(point);
      if (std::ranges::none_of(errors, [&](const PairErrors& e) { return e.kind == at.kind; })) errors.push_back(at);
    }
  }
  return errors;
}

Fields<Decision> decide_fields() {
  return output_fields<Decision>()
      .add("along", "key of the axis; null: one point",
           [](auto& d) { return or_null(d.question.along ? std::optional(d.question.along->key) : std::nullopt); })
      .add("beside", "key of the second axis",
           [](auto& d) { return d.question.beside ? std::optional(d.question.beside->key) : std::nullopt; })
      .add("by", "metric", [](auto& d) { return d.by.name; })
      .add("unit", "of it", [](auto& d) { return d.by.unit; })
      .add("better", "which of its values win",
           [](auto& d) { return d.by.better == Better::lower ? "lower" : "higher"; }, {.words = {"lower", "higher"}})
      .add("where", "limits that a winner keeps",
           [](auto& d) {
             std::vector<std::string> limits;
             for (const Condition& limit : d.question.limits) limits.push_back(limit.text());
             return limits;
           })
      .list("options", "the settings", settings_of, setting_fields())
      .list("points", "the curves, in the axis' order", points_of, point_fields())
      .list("turns", "where another one wins", turns_of, turn_fields())
      .list("why", "at the ends and at each turn", reasons_of, reason_fields())
      .add("parts_are", "what the us of parts are", [](auto& d) { return time_unit_of(d.by); })
      .list("margin", "of every point", points_of, margin_fields())
      .list("errors", "of such comparisons, held against published pairs", errors_of, error_fields());
}

}  // namespace

std::string decide_json(const Decision& decision) { return decide_fields().json(decision); }

std::string decide_schema() {
  return output_schema("decide", "`moeline decide SCENARIO... --format json`: which setting, from where on, how sure",
                       decide_fields().described());
}

}  // namespace moeline
