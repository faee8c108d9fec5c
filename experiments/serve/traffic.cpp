#include "experiments/serve/traffic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/csv.hpp"
#include "base/file.hpp"
#include "schedules/scenario/keys.hpp"
#include "schedules/scenario/read_scenario.hpp"

namespace moeline {

template <>
inline constexpr std::array kWords<PromptOrder> = {"mixed", "first"};
template <>
inline constexpr std::array kWords<KvRoom> = {"whole", "prompt"};
template <>
inline constexpr std::array kWords<RouterRule> = {"least_loaded", "round_robin", "cache_aware"};

namespace {

constexpr int kMostRequests = 1'000'000, kMostLength = 1 << 22, kMostTogether = 1 << 20, kMostReplicas = 4096;

const std::vector<std::string> kKeys = {"phase",        "concurrency",       "rate",        "burstiness",
                                        "trace",        "requests",          "input_len",   "input_len_spread",
                                        "output_len",   "output_len_spread", "tokens",      "batch_size",
                                        "cached_len",   "prompts",           "prefixes",    "replicas",
                                        "router",       "prefill",           "kv_room",     "query_len",
                                        "draft_layers", "mtp_acceptance",    "graph_batch", "overlap_scheduler",
                                        "rate_s",       "outages",           "scaling",     "loads",
                                        "limits"};

// A number, or two that it is drawn between.
Length read_length(const Spec& spec, const std::string& key) {
  const std::string spread = key + "_spread";
  Length length;
  if (!spec.is_list(key)) {
    length.mean = spec.integer(key, 1, kMostLength);
    if (spec.has(spread)) length.spread = spec.number(spread, 0, 4.0 * length.mean);
    return length;
  }
  const std::vector<int> ends = spec.integers(key, 1, kMostLength);
  if (ends.size() != 2 || ends[0] > ends[1]) {
    throw spec.error(key, "has two numbers as a list, the least and the most: lengths are drawn evenly between them");
  }
  if (spec.has(spread)) throw spec.error(spread, fmt::format("does not apply: {} says how lengths are spread", key));
  length.least = ends[0];
  length.most = ends[1];
  length.mean = (ends[0] + ends[1]) / 2;
  return length;
}

TracedRequest read_row(const CsvTable& table, std::size_t row, std::map<std::string, int>& prefixes) {
  const auto tokens = [&](const char* column, int least, int most) {
    return table.has(column) ? table.integer(row, column, least, most) : 0;
  };
  TracedRequest request;
  if (table.has("arrival_s")) request.arrival_ms = 1e3 * table.number(row, "arrival_s");
  Asked& asked = request.asked;
  asked.input_len = table.integer(row, "input_len", 1, kMostLength);
  asked.output_len = table.integer(row, "output_len", 1, kMostLength);
  asked.cached_len = tokens("cached_len", 0, asked.input_len - 1);
  asked.prefix_len = tokens("prefix_len", 0, asked.input_len - 1);
  if (asked.prefix_len > 0) {
    if (asked.cached_len > 0) {
      throw SpecError(table.file(), table.line(row),
                      "cached_len and prefix_len: one of them says what is in the cache");
    }
    asked.prefix = prefixes.try_emplace(table.text(row, "prefix"), static_cast<int>(prefixes.size())).first->second;
  }
  return request;
}

std::vector<TracedRequest> read_requests(const std::filesystem::path& path) {
  const CsvTable table(path);
  table.expect({"arrival_s", "input_len", "output_len", "cached_len", "prefix", "prefix_len"});
  if (table.rows() == 0) throw SpecError(table.file(), 0, "has no rows");
  if (table.has("prefix") != table.has("prefix_len")) {
    throw SpecError(table.file(), 1, "prefix and prefix_len go together");
  }
  std::vector<TracedRequest> trace;
  std::map<std::string, int> prefixes;
  double last = 0;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const double at = trace.emplace_back(read_row(table, row, prefixes)).arrival_ms;
    if (at < last) throw SpecError(table.file(), table.line(row), "arrival_s is before that of the row above, or 0");
    last = at;
  }
  return trace;
}

void read_rates(const Spec& spec, ServeWorkload& w) {
  constexpr double kSlowest = 1e-4, kFastest = 1e6, kLongest_s = 1e9;
  if (!spec.is_list("rate")) {
    w.rates = {spec.number("rate", kSlowest, kFastest)};
    return;
  }
  w.rates = spec.numbers("rate", 0, kFastest);
  if (std::all_of(w.rates.begin(), w.rates.end(), [](double rate) { return rate < kSlowest; })) {
    throw spec.error("rate", "needs one above 0");
  }
  if (spec.has("rate_s")) w.rate_ms = 1e3 * spec.number("rate_s", 1, kLongest_s);
}

// When requests come: one of three ways, of which a table is also a way to say how long they are.
void read_arrivals(const Spec& spec, ServeWorkload& w) {
  constexpr double kMostBursty = 1e-2, kLeastBursty = 1e3;
  const bool closed = spec.stands("concurrency"), open = spec.stands("rate");
  if (closed && open) throw spec.error("rate", "says when requests come, and so does concurrency: one of them");
  if (!closed && !open && !w.trace_has_times) {
    const char* why =
        w.trace.empty() ? "or rate is needed: when requests come" : "or rate is needed: the trace has no arrival_s";
    throw spec.error("concurrency", why);
  }
  if (closed) w.concurrency = spec.integer("concurrency", 1, kMostTogether);
  if (open) read_rates(spec, w);
  if (spec.has("rate_s") && w.rates.size() < 2) throw spec.error("rate_s", "is of a list of rates: so long for each");
  if (!spec.has("burstiness")) return;
  if (!open) throw spec.error("burstiness", "is of requests that come at a rate");
  w.burstiness = spec.number("burstiness", kMostBursty, kLeastBursty);
}

void read_lengths(const Spec& spec, ServeWorkload& w) {
  if (!w.trace.empty()) {
    for (const char* key : {"input_len", "output_len", "cached_len", "prefixes"}) {
      if (spec.has(key)) throw spec.error(key, "does not apply: the trace says how long requests are");
    }
    return;
  }
  w.input = read_length(spec, "input_len");
  w.output = read_length(spec, "output_len");
  w.cached_len = spec.integer_or("cached_len", 0, w.input.mean - 1, 0);
  if (!spec.has("prefixes")) return;
  constexpr double kSteepest = 8;
  const Spec prefixes = spec.map("prefixes");
  prefixes.expect({"count", "len", "zipf"});
  if (w.cached_len > 0) throw spec.error("prefixes", "does not apply: cached_len says what is in the cache");
  w.prefixes.count = prefixes.integer("count", 1, kMostRequests);
  w.prefixes.len = prefixes.integer("len", 1, w.input.mean - 1);
  if (prefixes.has("zipf")) w.prefixes.zipf = prefixes.number("zipf", 0, kSteepest);
}

// As of a step of decode, whose last acceptance holds for all behind it.
void read_drafted(const Spec& spec, ServeWorkload& w) {
  DecodeWorkload decode;
  keys::decode().read(spec, "query_len", decode);
  read_drafts(spec, decode);
  w.query_len = decode.query_len;
  w.draft_layers = decode.draft_layers;
  w.acceptance = std::move(decode.mtp_acceptance);
  w.acceptance.resize(static_cast<std::size_t>(w.query_len - 1), w.acceptance.back());
}

// As of a step of decode. A number is one for all of them.
void read_graphs(const Spec& spec, ServeWorkload& w) {
  DecodeWorkload decode;
  read_graph_batch(spec, decode);
  w.graph_choice = decode.graph_choice;
  w.graph_batch = decode.graph_batch;
  if (w.graph_choice != GraphBatch::given || (w.batch_size > 0 && w.batch_size <= w.graph_batch)) return;
  throw spec.error("graph_batch", fmt::format("{}: needs a batch_size that it holds", w.graph_batch));
}

void read_prefill_pool(const Spec& spec, ServeWorkload& w) {
  if (!spec.has("prefill")) return;
  for (const char* key : {"prompts", "kv_room"}) {
    if (spec.has(key)) throw spec.error(key, "does not apply: prefill has replicas of its own");
  }
  const Spec prefill = spec.map("prefill");
  prefill.expect({"replicas", "set"});
  w.prefill.replicas = prefill.integer("replicas", 1, kMostReplicas);
  if (prefill.has("set")) w.prefill.set = prefill.texts("set");
}

void read_outages(const Spec& spec, ServeWorkload& w) {
  constexpr double kLongest_s = 1e9;
  if (!spec.has("outages")) return;
  for (const Spec& each : spec.maps("outages")) {
    each.expect({"replica", "of_prefill", "at_s", "for_s", "drains"});
    Outage outage;
    outage.of_prefill = each.has("of_prefill") && each.flag("of_prefill");
    if (outage.of_prefill && w.prefill.replicas == 0) throw each.error("of_prefill", "needs prefill with its replicas");
    outage.replica = each.integer("replica", 0, (outage.of_prefill ? w.prefill.replicas : w.replicas) - 1);
    outage.at_ms = 1e3 * each.number("at_s", 0, kLongest_s);
    outage.until_ms = outage.at_ms + 1e3 * each.number("for_s", 0, kLongest_s);
    outage.drains = each.has("drains") && each.flag("drains");
    const bool overlaps = std::any_of(w.outages.begin(), w.outages.end(), [&](const Outage& other) {
      return other.replica == outage.replica && other.of_prefill == outage.of_prefill &&
             other.at_ms <= outage.until_ms && outage.at_ms <= other.until_ms;
    });
    if (overlaps) throw each.error("replica", fmt::format("{} is out already at that time", outage.replica));
    w.outages.push_back(outage);
  }
}

void read_scaling(const Spec& spec, ServeWorkload& w) {
  constexpr double kMostRequestsOfGroup = 1e6, kLongest_s = 1e6;
  if (!spec.has("scaling")) return;
  const Spec scaling = spec.map("scaling");
  scaling.expect({"least", "on_above", "off_below", "start_s"});
  w.scaling.least = scaling.integer("least", 1, w.replicas);
  w.scaling.on_above = scaling.number("on_above", 0, kMostRequestsOfGroup);
  w.scaling.off_below = scaling.number("off_below", 0, kMostRequestsOfGroup);
  if (w.scaling.off_below >= w.scaling.on_above) throw scaling.error("off_below", "must be below on_above");
  w.scaling.start_ms = 1e3 * scaling.number("start_s", 0, kLongest_s);
}

void read_load_course(const Spec& spec, LoadCourse& course) {
  constexpr double kLongest_s = 1e9;
  constexpr int kMostSteps = 1'000'000;
  if (!spec.has("loads")) return;
  const Spec loads = spec.map("loads");
  loads.expect({"step_s", "rebalance_every", "moves_beside"});
  course.step_ms = 1e3 * loads.number("step_s", 0.001, kLongest_s);
  course.rebalance_every = loads.integer_or("rebalance_every", 0, kMostSteps, 0);
  course.moves_beside = loads.has("moves_beside") && loads.flag("moves_beside");
  if (course.moves_beside && course.rebalance_every == 0) {
    throw loads.error("moves_beside", "does not apply: without rebalance_every nothing moves");
  }
}

void read_limits(const Spec& spec, ServeWorkload& w) {
  constexpr double kLongest_ms = 1e9;
  const Spec limits = spec.map_or_empty("limits");
  limits.expect({"ttft_ms", "tpot_ms"});
  if (limits.has("ttft_ms")) w.limits.ttft_ms = limits.number("ttft_ms", 0, kLongest_ms);
  if (limits.has("tpot_ms")) w.limits.tpot_ms = limits.number("tpot_ms", 0, kLongest_ms);
}

}  // namespace

bool is_served(const Spec& scenario) {
  if (!scenario.has("workload")) return false;
  const Spec workload = scenario.map("workload");
  if (!workload.has("phase")) return false;
  std::vector<std::string> phases = words_of<WorkloadPhase>();
  phases.emplace_back(kServePhase);
  return workload.choice("phase", phases) == kServePhase;
}

ServeWorkload read_serve(const Spec& workload) {
  workload.expect(kKeys);
  ServeWorkload w;
  if (workload.has("trace")) {
    const std::filesystem::path trace = beside(workload.file(), workload.text("trace"));
    if (!std::filesystem::exists(trace))
      throw workload.error("trace", fmt::format("'{}': no such file", trace.string()));
    w.trace = read_requests(trace);
  }
  w.trace_has_times = !w.trace.empty() && w.trace.back().arrival_ms > 0;
  read_arrivals(workload, w);
  read_lengths(workload, w);
  const bool counts_itself = !w.trace.empty() && !workload.has("requests");
  w.requests = counts_itself ? static_cast<int>(w.trace.size()) : workload.integer("requests", 1, kMostRequests);
  w.tokens = workload.integer_or("tokens", 64, kMostTogether, 8192);
  w.batch_size = workload.integer_or("batch_size", 1, kMostTogether, 0);
  w.replicas = workload.integer_or("replicas", 1, kMostReplicas, 1);
  w.router = read_choice(workload, "router", RouterRule::least_loaded);
  w.order = read_choice(workload, "prompts", PromptOrder::mixed);
  w.room = read_choice(workload, "kv_room", KvRoom::whole);
  w.overlapped = !workload.has("overlap_scheduler") || workload.flag("overlap_scheduler");
  read_drafted(workload, w);
  read_graphs(workload, w);
  read_prefill_pool(workload, w);
  read_outages(workload, w);
  read_scaling(workload, w);
  read_load_course(workload, w.loads);
  read_limits(workload, w);
  return w;
}

namespace {

int drawn_length(const Length& length, Random& random) {
  constexpr double kLongest = 8;
  if (length.most > 0) {
    return length.least + static_cast<int>(random.uniform() * (length.most - length.least + 1));
  }
  if (length.spread == 0) return length.mean;
  const double variance = std::log1p(std::pow(length.spread / length.mean, 2));
  const double drawn = length.mean * std::exp(std::sqrt(variance) * random.normal() - variance / 2);
  return static_cast<int>(std::lround(std::clamp(drawn, 1.0, kLongest * length.mean)));
}

// Gamma distribution of mean 1 (Marsaglia and Tsang, 2000); below shape 1 by way of shape + 1.
double drawn_gamma(double shape, Random& random) {
  if (shape == 1) return -std::log1p(-random.uniform());
  const double raised = shape < 1 ? shape + 1 : shape;
  const double d = raised - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = random.normal(), v = std::pow(1 + c * x, 3);
    if (v <= 0 || std::log1p(-random.uniform()) >= x * x / 2 + d - d * v + d * std::log(v)) continue;
    const double drawn = shape < 1 ? d * v * std::pow(1 - random.uniform(), 1 / shape) : d * v;
    return drawn / shape;
  }
}

std::vector<double> summed_popularity(const Prefixes& prefixes) {
  std::vector<double> sums;
  double sum = 0;
  for (int k = 1; k <= prefixes.count; ++k) sums.push_back(sum += std::pow(k, -prefixes.zipf));
  return sums;
}

}  // namespace

RequestSource::RequestSource(const ServeWorkload& workload, int seed)
    : workload_(workload),
      arrivals_(static_cast<std::uint64_t>(seed), 0),
      lengths_(static_cast<std::uint64_t>(seed), 1),
      prefixes_(static_cast<std::uint64_t>(seed), 2),
      popularity_(summed_popularity(workload.prefixes)) {
  if (workload.rates.empty() && workload.concurrency == 0) next_ms_ = workload.trace.front().arrival_ms;
}

// A trace that begins again does so as long after its last request as these come on average.
double RequestSource::until_next_ms() {
  if (!workload_.rates.empty()) return time_of_arrivals(drawn_gamma(workload_.burstiness, arrivals_));
  const auto& trace = workload_.trace;
  const std::size_t at = static_cast<std::size_t>(taken_) % trace.size();
  if (at > 0) return trace[at].arrival_ms - trace[at - 1].arrival_ms;
  const double all_ms = trace.back().arrival_ms - trace.front().arrival_ms;
  return all_ms / std::max<double>(1, static_cast<double>(trace.size()) - 1);
}

// In which so many come from now on, as rates go.
double RequestSource::time_of_arrivals(double count) const {
  const std::vector<double>& rates = workload_.rates;
  if (rates.size() == 1) return count * 1e3 / rates.front();
  double at_ms = next_ms_;
  while (true) {
    const double slot = std::floor(at_ms / workload_.rate_ms), end_ms = (slot + 1) * workload_.rate_ms;
    const double per_ms = rates[static_cast<std::size_t>(std::fmod(slot, static_cast<double>(rates.size())))] / 1e3;
    const double come = per_ms * (end_ms - at_ms);
    if (come >= count) return at_ms + count / per_ms - next_ms_;
    count -= come;
    at_ms = end_ms;
  }
}

int RequestSource::drawn_prefix() {
  const double at = prefixes_.uniform() * popularity_.back();
  return static_cast<int>(std::upper_bound(popularity_.begin(), popularity_.end(), at) - popularity_.begin());
}

Asked RequestSource::drawn() {
  Asked asked;
  asked.input_len = drawn_length(workload_.input, lengths_);
  asked.output_len = drawn_length(workload_.output, lengths_);
  asked.cached_len = std::min(workload_.cached_len, asked.input_len - 1);
  if (workload_.prefixes.count == 0) return asked;
  asked.prefix = drawn_prefix();
  asked.prefix_len = std::min(workload_.prefixes.len, asked.input_len - 1);
  return asked;
}

Asked RequestSource::take() {
  const auto& trace = workload_.trace;
  const Asked asked = trace.empty() ? drawn() : trace[static_cast<std::size_t>(taken_) % trace.size()].asked;
  ++taken_;
  if (workload_.concurrency == 0 && more()) next_ms_ += until_next_ms();
  return asked;
}

}  // namespace moeline
