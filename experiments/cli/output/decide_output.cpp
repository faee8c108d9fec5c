#include "experiments/cli/output/decide_output.hpp"

#include <cmath>
#include <cstdint>

#include "base/text.hpp"
#include "experiments/cli/output/decide_texts.hpp"
#include "experiments/report/fields.hpp"

namespace moeline {
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
      .add("ratio",
           "how much better the winner is than the second: 1.1 is a tenth; null where nobody else may win, or one of "
           "both is 0",
           [](const OfPoint& p) { return or_null(p.part->winner.ratio); }, {.decimals = 6})
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
      .add("exact", "of all whole numbers between the two none can be simulated",
           [](const OfTurn& t) { return t.part.second->is_exact; });
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
          "parts",
          "what `to` pays and, below 0, saves; sums to the difference of the metric, or where that is no such time of "
          "the step or request",
          [](const OfReason& r) -> auto& { return r.part->parts; }, part)
      .add("no_band", "why there is no band though it was asked for",
           [](const OfReason& r) { return if_any(r.part->no_band); })
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
      .add("set", "changes of it", [](const OfSetting& s) { return s.d.question.settings[s.part].assignments; })
      .add("extrapolated_share", "of its kernels' time, at the point of the axis where it is largest",
           [](const OfSetting& s) {
             const DecidePoint* most = most_extrapolated(s.d, s.part);
             return most == nullptr ? std::nullopt : std::optional(most->outcomes[s.part].known.share(0));
           },
           {.decimals = 5, .most = 1})
      .add("extrapolated_kernels", "the longest of them there", [](const OfSetting& s) {
        const DecidePoint* most = most_extrapolated(s.d, s.part);
        return most == nullptr ? std::nullopt : std::optional(most->outcomes[s.part].extrapolated);
      });
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
      .add("parts_are", "what the us of parts are", [](auto& d) { return time_unit_of(d.by, d.serves_requests()); })
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
