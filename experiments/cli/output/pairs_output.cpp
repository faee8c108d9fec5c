#include <fmt/format.h>

#include "base/text_table.hpp"
#include "experiments/cli/output/validate_output.hpp"

namespace moeline {
namespace {

std::string kind_name(const PairErrors& errors) { return errors.kind ? name_of(*errors.kind) : "all"; }

std::string kinds_table(const ScoredPairs& scored) {
  TextTable table("lrrr");
  table.row({"what they differ in", "pairs", "right", "median |e| of the ratio"});
  for (const PairErrors& errors : scored.errors) {
    table.row({kind_name(errors), fmt::format("{}", errors.pairs), fmt::format("{}", errors.right),
               percent(errors.median_abs_error)});
  }
  table.row({"null: both are alike", "", "", percent(scored.null_median_abs_error)});
  return table.text("  ") +
         fmt::format(
             "  ahead by more than the others of their kind were off in the median: {} pairs, of which {} right\n",
             scored.sure, scored.sure_right);
}

std::string pairs_table(const ScoredPairs& scored) {
  TextTable table("llrrrlll");
  table.row({"pair, " + name_of(scored.study.status), "kind", "published", "predicted", "e", "", "A", "B"});
  for (const ScoredPair& each : scored.pairs) {
    const bool known = each.is_predicted();
    table.row({each.pair.id, name_of(each.pair.kind), fmt::format("{:.3f}", each.pair.ratio()),
               known ? fmt::format("{:.3f}", each.ratio()) : "-", known ? signed_percent(each.error()) : "-",
               !known            ? "refused"
               : each.is_right() ? "right"
                                 : "wrong",
               each.pair.a.name, each.pair.b.name});
  }
  return table.text("  ");
}

// What must be said of single pairs.
std::string pair_remarks(const ScoredPairs& scored) {
  std::string text;
  for (const ScoredPair& each : scored.pairs) {
    if (!each.is_predicted()) {
      text += fmt::format("  {}: {}\n", each.pair.id, each.refused());
    } else if (!each.is_right()) {
      text += fmt::format("  {}: {}\n", each.pair.id, each.pair.why_wrong);
    }
  }
  return text.empty() ? "" : "  why those are wrong or refused\n" + text;
}

Fields<PairErrors> pair_error_fields() {
  return Fields<PairErrors>()
      .add("kind", "what both sides differ in, or all", kind_name)
      .add("pairs", "that are predicted", &PairErrors::pairs)
      .add("right", "of which the faster side is named", &PairErrors::right)
      .add("median_abs_error", "of the ratio", &PairErrors::median_abs_error, {.decimals = 5});
}

Fields<ScoredPair> pair_fields() {
  const auto if_known = [](auto get) {
    return [=](const ScoredPair& p) { return or_null(only_if(p.is_predicted(), p.is_predicted() ? get(p) : 0.0)); };
  };
  const As ratio{.decimals = 5, .least = kAny};
  return Fields<ScoredPair>()
      .add("id", "of the pair", [](auto& p) { return p.pair.id; })
      .add("kind", "what both sides differ in", [](auto& p) { return name_of(p.pair.kind); })
      .add("a", "one side", [](auto& p) { return p.pair.a.name; })
      .add("b", "the other", [](auto& p) { return p.pair.b.name; })
      .add("by", "metric", [](auto& p) { return p.pair.by.name; })
      .add(
          "published", "B over A", [](auto& p) { return p.pair.ratio(); }, ratio)
      .add("predicted", "B over A; null where it is refused", if_known([](auto& p) { return p.ratio(); }), ratio)
      .add("error", "predicted over published - 1", if_known([](auto& p) { return p.error(); }), ratio)
      .add("right", "the faster side is named",
           [](auto& p) { return or_null(only_if(p.is_predicted(), p.is_predicted() && p.is_right())); })
      .add("predicted_a", "the metric of one side",
           [](auto& p) { return or_null(only_if(p.a.is_simulated(), p.a.value)); })
      .add("predicted_b", "and of the other", [](auto& p) { return or_null(only_if(p.b.is_simulated(), p.b.value)); })
      .add("published_a", "of what is proportional to it", [](auto& p) { return p.pair.a_value; })
      .add("published_b", "the same", [](auto& p) { return p.pair.b_value; })
      .add("refused", "why there is no prediction", [](auto& p) { return if_any(p.refused()); })
      .add("assumed", "what is not published and was chosen", [](auto& p) { return if_any(p.pair.assumed); })
      .add("why_wrong", "of a pair whose slower side is named",
           [](auto& p) {
             const bool wrong = p.is_predicted() && !p.is_right();
             return only_if(wrong && !p.pair.why_wrong.empty(), p.pair.why_wrong);
           })
      .add("source", "who published it", [](auto& p) { return p.pair.source; });
}

}  // namespace

std::string to_table(const ScoredPairs& scored) {
  return fmt::format("{}: {}\n", scored.study.name, scored.study.about) + kinds_table(scored) + pairs_table(scored) +
         pair_remarks(scored);
}

Fields<ScoredPairs> pairs_fields() {
  return Fields<ScoredPairs>()
      .add("study", "name", [](auto& s) { return s.study.name; })
      .add("about", "one line", [](auto& s) { return s.study.about; })
      .add("status", "what those who made the constants knew", [](auto& s) { return name_of(s.study.status); },
           {.words = words_to(FactStatus::blind)})
      .list("by_kind", "by what both sides differ in, all last", &ScoredPairs::errors, pair_error_fields())
      .add("sure", "pairs that are ahead by more than the others of their kind were off", &ScoredPairs::sure)
      .add("sure_right", "of these, those whose faster side is named", &ScoredPairs::sure_right)
      .add("null_median_abs_error", "of the ratio 1", &ScoredPairs::null_median_abs_error, {.decimals = 5})
      .list("pairs", "each pair", &ScoredPairs::pairs, pair_fields());
}

}  // namespace moeline
