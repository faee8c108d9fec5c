#include "schedules/scenario/overlap_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "base/file.hpp"
#include "base/memo.hpp"
#include "base/spec.hpp"

namespace moeline {
namespace {

constexpr int kNotNamed = -1;

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::string name_of(const PlanEntry& entry, const PlanContents& contents) {
  const char* part = entry.part == PlanEntry::Part::issue     ? "issue "
                     : entry.part == PlanEntry::Part::receive ? "receive "
                                                              : "";
  const std::string micro_batch = contents.micro_batches > 1 ? fmt::format(" {}", entry.micro_batch) : "";
  return part + entry.phase + micro_batch;
}

// As a plan writes them, of all micro-batches.
std::vector<std::string> names_of(const std::vector<std::string>& phases, const PlanContents& contents) {
  std::vector<std::string> names;
  for (int micro_batch = 0; micro_batch < contents.micro_batches; ++micro_batch) {
    for (const std::string& phase : phases) {
      PlanEntry entry{phase, micro_batch};
      if (contains(contents.halved, phase)) {
        entry.part = PlanEntry::Part::issue;
        names.push_back(name_of(entry, contents));
        entry.part = PlanEntry::Part::receive;
      }
      names.push_back(name_of(entry, contents));
    }
  }
  return names;
}

// A word that stands where it cannot, or twice, becomes a part of the phase's name, which nobody knows then. So does a
// micro-batch that is not named where there are several.
PlanEntry parse(const std::string& text, int micro_batches) {
  PlanEntry entry;
  if (micro_batches > 1) entry.micro_batch = kNotNamed;
  bool numbered = false;
  std::istringstream words(text);
  std::string word;
  while (words >> word) {
    const bool first = entry.phase.empty();
    const bool whole = entry.part == PlanEntry::Part::whole;
    if ((word == "previous" || word == "next") && first && whole && entry.layer_offset == 0) {
      entry.layer_offset = word == "next" ? 1 : -1;
    } else if ((word == "issue" || word == "receive") && first && whole) {
      entry.part = word == "issue" ? PlanEntry::Part::issue : PlanEntry::Part::receive;
    } else if (word.size() == 1 && word[0] >= '0' && word[0] <= '9' && !first && !numbered) {
      entry.micro_batch = word[0] - '0';
      numbered = true;
    } else {
      entry.phase += entry.phase.empty() ? word : " " + word;
    }
  }
  return entry;
}

// What a known phase may still not do in this place.
void check_place(const Spec& spec, const std::string& key, const PlanEntry& entry, const PlanContents& contents) {
  const std::string name = name_of(entry, contents);
  if (entry.bracket > 0 && !contains(contents.cut, entry.phase)) {
    throw spec.error(
        key, fmt::format("has '{}' in brackets, which are for what has pieces: {}", name,
                         contents.cut.empty() ? "nothing here" : fmt::format("{}", fmt::join(contents.cut, ", "))));
  }
  if (entry.layer_offset != 0 && contents.micro_batches == 1) {
    throw spec.error(key, fmt::format("has '{}' of another layer: that is for two micro-batches", name));
  }
  if (entry.part != PlanEntry::Part::whole && key != "compute") {
    throw spec.error(key, fmt::format("has '{}', whose kernels run on the compute stream", name));
  }
}

// Phases listed at `key`; `placed` says where each of them stands so far.
std::vector<PlanEntry> read_stream(const Spec& spec, const std::string& key, const PlanContents& contents,
                                   std::map<std::string, std::string>& placed) {
  std::vector<std::string> known = names_of(contents.phases, contents);
  const std::vector<std::string> absent = names_of(contents.absent, contents);
  known.insert(known.end(), absent.begin(), absent.end());
  std::vector<PlanEntry> entries;
  const auto add = [&](const std::string& text, int bracket) {
    PlanEntry entry = parse(text, contents.micro_batches);
    entry.bracket = bracket;
    const std::string name = name_of(entry, contents);
    if (!contains(known, name) || entry.micro_batch >= contents.micro_batches) {
      throw spec.error(key, "names an " + unknown_name("phase", text, known));
    }
    check_place(spec, key, entry, contents);
    if (const auto [at, first] = placed.emplace(name, key); !first) {
      throw spec.error(key, fmt::format("repeats phase '{}', which stands in {}", name, at->second));
    }
    if (!contains(absent, name)) entries.push_back(entry);
  };
  int brackets = 0;
  for (const std::vector<std::string>& texts : spec.text_lists(key)) {
    const int bracket = texts.size() > 1 ? ++brackets : 0;
    for (const std::string& text : texts) add(text, bracket);
  }
  return entries;
}

// A turn of the plan appends its entries in order; what is of the next layer comes a turn earlier.
void check_receives(const Spec& spec, const OverlapPlan& plan, const PlanContents& contents) {
  for (auto receive = plan.compute.begin(); receive != plan.compute.end(); ++receive) {
    if (receive->part != PlanEntry::Part::receive) continue;
    const auto issue = std::find_if(plan.compute.begin(), plan.compute.end(), [&](const PlanEntry& other) {
      return other.part == PlanEntry::Part::issue && other.phase == receive->phase &&
             other.micro_batch == receive->micro_batch;
    });
    const bool same_turn = receive->layer_offset == issue->layer_offset;
    if (same_turn ? issue < receive : issue->layer_offset > receive->layer_offset) continue;
    throw spec.error("compute",
                     fmt::format("has '{}' before '{}'", name_of(*receive, contents), name_of(*issue, contents)));
  }
}

// Phases whose independent GEMMs may use the side stream too.
std::vector<std::string> read_side(const Spec& spec, const PlanContents& contents,
                                   const std::map<std::string, std::string>& placed) {
  std::vector<std::string> side;
  for (const std::string& phase : spec.texts("side")) {
    if (!contains(contents.phases, phase)) {
      throw spec.error("side", "names an " + unknown_name("phase", phase, contents.phases));
    }
    if (contains(side, phase)) {
      throw spec.error("side", fmt::format("repeats phase '{}', which stands in side", phase));
    }
    if (!phase.ends_with("(W)")) {
      throw spec.error("side", fmt::format("has '{}': only weight gradients are independent kernels", phase));
    }
    if (placed.at(phase) != "compute") {
      throw spec.error("side", fmt::format("has '{}', which is not in compute", phase));
    }
    side.push_back(phase);
  }
  return side;
}

void read_pieces(const Spec& spec, const PlanContents& contents, OverlapPlan& plan) {
  constexpr int kMost = 64;
  plan.pieces = spec.integer_or("pieces", 1, kMost, 1);
  if (spec.has("pieces_by") && !spec.has("pieces")) throw spec.error("pieces_by", "needs the key 'pieces'");
  plan.pieces_by = read_choice(spec, "pieces_by", plan.pieces_by);
  if (plan.pieces_by == PiecesBy::expert && contents.halved.empty()) {
    throw spec.error("pieces_by", "expert, is for the low-latency all-to-all, which sends each expert's tokens apart");
  }
}

void read_sms(const Spec& spec, const PlanContents& contents, OverlapPlan& plan) {
  constexpr const char* kKey = "sms";
  constexpr int kMost = 4096;
  if (!spec.has(kKey)) return;
  if (!contents.halved.empty()) {
    throw spec.error(kKey, "are of the normal all-to-all: the low-latency one is issued by all");
  }
  const Spec sms = spec.map(kKey);
  sms.expect(contents.phases);
  for (const std::string& phase : sms.keys()) plan.sms[phase] = sms.integer(phase.c_str(), 1, kMost);
}

// Where micro-batches, and attention, are cut.
void read_cuts(const Spec& spec, const PlanContents& contents, OverlapPlan& plan) {
  constexpr double kLeast = 0.01;
  if (spec.has("split")) {
    if (contents.micro_batches == 1) throw spec.error("split", "is for two micro-batches");
    plan.split = spec.number("split", kLeast, 1 - kLeast);
  }
  if (spec.has("attention_cut") && !contains(contents.phases, "attn-0")) {
    throw spec.error("attention_cut", "is for decode, which has attn-0 and attn-1");
  }
  plan.attention_cut = read_choice(spec, "attention_cut", plan.attention_cut);
}

OverlapPlan read_plan(const std::filesystem::path& file, const PlanContents& contents) {
  const Spec spec = Spec::load(file);
  spec.expect({"compute", "communication", "side", "sms", "pieces", "pieces_by", "split", "attention_cut"});
  OverlapPlan plan;
  plan.file = spec.file();
  read_pieces(spec, contents, plan);
  read_cuts(spec, contents, plan);
  read_sms(spec, contents, plan);
  std::map<std::string, std::string> placed;
  plan.compute = read_stream(spec, "compute", contents, placed);
  if (spec.has("communication")) plan.communication = read_stream(spec, "communication", contents, placed);
  for (const std::string& name : names_of(contents.phases, contents)) {
    if (!placed.contains(name)) throw spec.error("compute", fmt::format("and communication lack phase '{}'", name));
  }
  check_receives(spec, plan, contents);
  if (spec.has("side")) plan.side = read_side(spec, contents, placed);
  return plan;
}

std::string written(const PlanEntry& entry, const PlanContents& contents) {
  const char* layer = entry.layer_offset < 0 ? "previous " : entry.layer_offset > 0 ? "next " : "";
  return layer + name_of(entry, contents);
}

std::string list_of(const std::vector<PlanEntry>& entries, const PlanContents& contents) {
  std::vector<std::string> names;
  for (const Bracket& bracket : brackets_of(entries)) {
    std::vector<std::string> together;
    for (const PlanEntry& entry : bracket) together.push_back(written(entry, contents));
    const std::string text = fmt::format("{}", fmt::join(together, ", "));
    names.push_back(bracket.size() > 1 ? "[" + text + "]" : text);
  }
  return fmt::format("[{}]", fmt::join(names, ", "));
}

}  // namespace

int OverlapPlan::transfer_sms(const std::string& phase, int usual) const {
  const auto found = sms.find(phase);
  return found == sms.end() ? usual : found->second;
}

int OverlapPlan::most_transfer_sms(int usual) const {
  int most = 0;
  for (const PlanEntry& entry : communication) most = std::max(most, transfer_sms(entry.phase, usual));
  return communication.empty() ? usual : most;
}

bool is_cut(const PlanEntry& entry, const PlanContents& contents) {
  return contains(contents.cut, entry.phase) && (entry.bracket > 0 || !entry.phase.ends_with("(W)"));
}

std::vector<Bracket> brackets_of(const std::vector<PlanEntry>& entries) {
  std::vector<Bracket> brackets;
  for (auto first = entries.begin(); first != entries.end();) {
    const auto next = std::find_if(first + 1, entries.end(), [&](const PlanEntry& other) {
      return first->bracket == 0 || other.bracket != first->bracket;
    });
    brackets.emplace_back(first, next);
    first = next;
  }
  return brackets;
}

std::string plan_text(const OverlapPlan& plan, const PlanContents& contents, const std::string& head) {
  std::string text = head;
  if (plan.pieces > 1) text += fmt::format("pieces: {}\n", plan.pieces);
  if (plan.pieces_by == PiecesBy::expert) text += "pieces_by: expert\n";
  const OverlapPlan usual;
  if (plan.split != usual.split) text += fmt::format("split: {}\n", plan.split);
  if (plan.attention_cut != usual.attention_cut)
    text += fmt::format("attention_cut: {}\n", word_of(plan.attention_cut));
  text += "compute: " + list_of(plan.compute, contents) + "\n";
  if (!plan.communication.empty()) text += "communication: " + list_of(plan.communication, contents) + "\n";
  if (!plan.side.empty()) text += fmt::format("side: [{}]\n", fmt::join(plan.side, ", "));
  std::vector<std::string> sms;
  for (const auto& [phase, count] : plan.sms) sms.push_back(fmt::format("{}: {}", phase, count));
  if (!sms.empty()) text += fmt::format("sms: {{{}}}\n", fmt::join(sms, ", "));
  return text;
}

OverlapPlan load_overlap_plan(const std::string& schedule, const std::string& overlap, const PlanContents& contents) {
  static FileMemo<OverlapPlan> known;
  const std::filesystem::path file =
      overlap == "default" ? home() / "schedules" / (schedule + ".yaml") : std::filesystem::path(overlap);
  const std::string variant =
      fmt::format("{} | {} | {} | {}", fmt::join(names_of(contents.phases, contents), ", "),
                  fmt::join(contents.halved, ", "), fmt::join(contents.absent, ", "), fmt::join(contents.cut, ", "));
  return *known.get(
      file, [&] { return read_plan(file, contents); }, variant);
}

}  // namespace moeline
