// A workload of requests, read: ordinary keys by their rows (serve_keys.hpp), what depends on others here.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/csv.hpp"
#include "base/file.hpp"
#include "experiments/serve/serve_keys.hpp"
#include "schedules/scenario/keys.hpp"
#include "schedules/scenario/read_scenario.hpp"

namespace moeline {

namespace {

TracedRequest read_row(const CsvTable& table, std::size_t row, std::map<std::string, int>& prefixes) {
  static const auto kLongest = static_cast<int>(keys::serve().at("input_len").type.most);
  const auto tokens = [&](const char* column, int least, int most) {
    return table.has(column) ? table.integer(row, column, least, most) : 0;
  };
  TracedRequest request;
  if (table.has("arrival_s")) request.arrival_ms = 1e3 * table.number(row, "arrival_s");
  Asked& asked = request.asked;
  asked.input_len = table.integer(row, "input_len", 1, kLongest);
  asked.output_len = table.integer(row, "output_len", 1, kLongest);
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

std::vector<TracedRequest> read_trace(const Spec& spec) {
  if (!spec.has("trace")) return {};
  const std::filesystem::path path = beside(spec.file(), spec.text("trace"));
  if (!std::filesystem::exists(path)) throw spec.error("trace", fmt::format("'{}': no such file", path.string()));
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

// A number, or two that it is drawn between.
Length read_length(const Spec& spec, const std::string& key) {
  const keys::Row& row = keys::serve().at(key);
  const std::string spread = key + "_spread";
  Length length;
  if (!spec.is_list(key)) {
    length.mean = row.integer(spec);
    if (spec.has(spread)) length.spread = spec.number(spread, 0, 4.0 * length.mean);
    return length;
  }
  const std::vector<int> ends = row.integers(spec);
  if (ends.size() != 2 || ends[0] > ends[1]) {
    throw spec.error(key, "has two numbers as a list, the least and the most: lengths are drawn evenly between them");
  }
  if (spec.has(spread)) throw spec.error(spread, fmt::format("does not apply: {} says how lengths are spread", key));
  length.least = ends[0];
  length.most = ends[1];
  length.mean = (ends[0] + ends[1]) / 2;
  return length;
}

void read_rates(const Spec& spec, ServeWorkload& w) {
  const keys::Row& rate = keys::serve().at("rate");
  if (!spec.is_list("rate")) {
    w.rates = {rate.real(spec)};
    return;
  }
  w.rates = spec.numbers("rate", 0, rate.type.most);
  const auto is_none = [&](double each) { return each < rate.type.least; };
  if (std::all_of(w.rates.begin(), w.rates.end(), is_none)) throw spec.error("rate", "needs one above 0");
}

// When requests come: one of three ways, of which a table is also a way to say how long they are.
void read_arrivals(const Spec& spec, ServeWorkload& w) {
  const bool closed = spec.stands("concurrency"), open = spec.stands("rate");
  if (closed && open) throw spec.error("rate", "says when requests come, and so does concurrency: one of them");
  if (!closed && !open && !w.trace_has_times) {
    const char* why =
        w.trace.empty() ? "or rate is needed: when requests come" : "or rate is needed: the trace has no arrival_s";
    throw spec.error("concurrency", why);
  }
  if (closed) w.concurrency = keys::serve().at("concurrency").integer(spec);
  if (open) read_rates(spec, w);
  if (spec.has("rate_s") && w.rates.size() < 2) throw spec.error("rate_s", "is of a list of rates: so long for each");
  if (spec.has("burstiness") && !open) throw spec.error("burstiness", "is of requests that come at a rate");
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
  if (w.prefixes.count == 0) return;
  if (w.cached_len > 0) throw spec.error("prefixes", "does not apply: cached_len says what is in the cache");
  w.prefixes.len = spec.map("prefixes").integer("len", 1, w.input.mean - 1);
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

void check_prefill_pool(const Spec& spec) {
  if (!spec.has("prefill")) return;
  for (const char* key : {"prompts", "schedule_conservativeness", "prefill_delay"}) {
    if (spec.has(key)) throw spec.error(key, "does not apply: prefill has replicas of its own");
  }
  if (spec.text_or("kv_room", "") == word_of(KvRoom::share)) {
    throw spec.error("kv_room", "share is a rule of replicas that compute prompts; prefill has replicas of its own");
  }
}

Outage read_outage(const Spec& spec, const ServeWorkload& w) {
  spec.expect(keys::outage().names());
  Outage outage;
  keys::outage().read_all(spec, outage);
  if (outage.of_prefill && w.prefill.replicas == 0) throw spec.error("of_prefill", "needs prefill with its replicas");
  outage.replica = spec.integer("replica", 0, (outage.of_prefill ? w.prefill.replicas : w.replicas) - 1);
  outage.until_ms = outage.at_ms + 1e3 * keys::outage().at("for_s").real(spec);
  return outage;
}

void read_outages(const Spec& spec, ServeWorkload& w) {
  if (!spec.has("outages")) return;
  for (const Spec& each : spec.maps("outages")) {
    const Outage outage = read_outage(each, w);
    const bool overlaps = std::any_of(w.outages.begin(), w.outages.end(), [&](const Outage& other) {
      return other.replica == outage.replica && other.of_prefill == outage.of_prefill &&
             other.at_ms <= outage.until_ms && outage.at_ms <= other.until_ms;
    });
    if (overlaps) throw each.error("replica", fmt::format("{} is out already at that time", outage.replica));
    w.outages.push_back(outage);
  }
}

void read_least_replicas(const Spec& spec, ServeWorkload& w) {
  if (!spec.has("scaling")) return;
  const Spec scaling = spec.map("scaling");
  w.scaling.least = scaling.integer("least", 1, w.replicas);
  if (w.scaling.off_below >= w.scaling.on_above) throw scaling.error("off_below", "must be below on_above");
}

void check_loads(const Spec& spec, const LoadCourse& course) {
  if (course.moves_beside && course.rebalance_every == 0) {
    throw spec.map("loads").error("moves_beside", "does not apply: without rebalance_every nothing moves");
  }
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

// By order of magnitude: profiles of vLLM, SGLang and TensorRT-LLM have 0.6 to 2.5 ms a step and 4 to 15 us a request
// (vLLM issues 6854 and 10634, pull requests 46112 and 57628; SGLang issue 5593; TensorRT-LLM issue 13957).
constexpr StepHost kUsualHost = {.step_ms = 1, .request_ms = 8e-3};

ServeWorkload read_serve(const Spec& workload) {
  std::vector<std::string> names = keys::serve().names();
  names.insert(names.begin(), "phase");
  workload.expect(names);
  ServeWorkload w;
  w.trace = read_trace(workload);
  w.trace_has_times = !w.trace.empty() && w.trace.back().arrival_ms > 0;
  keys::serve().read_all(workload, w);
  if (!w.overlapped && !workload.has("host")) w.host = kUsualHost;
  read_arrivals(workload, w);
  read_lengths(workload, w);
  if (!workload.has("requests")) {
    if (w.trace.empty()) keys::serve().need(workload, "requests", w);
    w.requests = static_cast<int>(w.trace.size());
  }
  read_drafted(workload, w);
  read_graphs(workload, w);
  check_prefill_pool(workload);
  read_outages(workload, w);
  read_least_replicas(workload, w);
  check_loads(workload, w.loads);
  return w;
}

}  // namespace moeline
