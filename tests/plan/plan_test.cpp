// Plans: the answer keeps to what was asked, and more of anything that helps never takes more GPUs.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <rapidjson/document.h>

#include <algorithm>
#include <sstream>
#include <tuple>

#include "base/file.hpp"
#include "experiments/plan/solve.hpp"
#include "tests/support/capture.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/data.hpp"
#include "tests/support/sanitized.hpp"

TEST_SUITE("plan/plan") {

using namespace moeline;
using namespace moeline::testing;

namespace {

const std::string kPlan =
    "schema: 1\n"                                                                    // 1
    "model: deepseek-v3\n"                                                           // 2
    "hardware: {h800: {usd_per_gpu_hour: 2}}\n"                                      // 3
    "traffic:\n"                                                                     // 4
    "  requests_per_s: 100\n"                                                        // 5
    "  input: {mean: 3000, spread: 2000}\n"                                          // 6
    "  output: {mean: 500, spread: 300}\n"                                           // 7
    "  cache_hit_share: 0.3\n"                                                       // 8
    "limits: {ttft_ms: 3000, tpot_ms: 60, percentile: 95}\n"                         // 9
    "serving: [disaggregated, colocated]\n"                                          // 10
    "prefill: {ep: [16, 32], tokens: [4096], comm_sms: [16]}\n"                      // 11
    "decode: {ep: [32], batch_size: [8, 32, 64, 100], two_batch: [true, false]}\n";  // 12

std::string changed(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

struct Solved {
  TemporaryFolder folder;
  Plan plan;
  KnownSteps known;
  Answer answer;
  explicit Solved(const std::string& text)
      : plan(load_plan(folder.write("plan.yaml", text))), answer(solve(plan, known, 2)) {}
  [[nodiscard]] const Deployment& best() const {
    REQUIRE(!answer.deployments.empty());
    return answer.deployments.front();
  }
};

/// One node of B200, alone or split.
const std::string kNode =
    "schema: 1\n"
    "model: deepseek-v3\n"
    "hardware: {b200: {kernels: trtllm}}\n"
    "traffic: {requests_per_s: 1, input: {mean: 2000}, output: {mean: 500}}\n"
    "limits: {ttft_ms: 2000, tpot_ms: 20}\n"
    "serving: [colocated]\n"
    "prefill: {ep: [8], tp: [1, 8], tokens: [2048], two_batch: [false], set: [precision.experts=nvfp4]}\n"
    "decode: {ep: [8], tp: [1, 8], batch_size: [4, 16, 64], two_batch: [false], set: [precision.experts=nvfp4]}\n";

int gpus(const std::string& from, const std::string& to) { return Solved(changed(kPlan, from, to)).best().gpus; }

}  // namespace

TEST_CASE("no answer goes by the order of a list, and a wider search is never worse" *
          doctest::skip(kSanitized)) {  // ten minutes there
  // What decides between two deployments.
  const auto promise = [](const Deployment& d) {
    return std::make_tuple(d.price(), d.tpot_ms, d.ttft_ms, describe(d.prefill_choice), describe(d.decode_choice));
  };
  std::string lists = changed(kPlan, "prefill: {ep: [16, 32], tokens: [4096], comm_sms: [16]}",
                              "prefill: {ep: [16, 32], tokens: [2048, 4096, 8192], comm_sms: [12, 16, 24]}");
  const auto wide = promise(Solved(lists).best());
  const std::pair<const char*, const char*> orders[] = {
      {"[16, 32]", "[32, 16]"},           {"[2048, 4096, 8192]", "[8192, 2048, 4096]"},
      {"[12, 16, 24]", "[24, 12, 16]"},   {"[8, 32, 64, 100]", "[100, 64, 8, 32]"},
      {"[true, false]", "[false, true]"}, {"[disaggregated, colocated]", "[colocated, disaggregated]"}};
  for (const auto& order : orders) {
    CAPTURE(order.first);
    lists = changed(lists, order.first, order.second);
    CHECK(promise(Solved(lists).best()) == wide);
  }
  for (const char* narrow : {"[2048]", "[8192]", "[4096, 8192]"}) {
    CAPTURE(narrow);
    CHECK(promise(Solved(changed(lists, "[8192, 2048, 4096]", narrow)).best()) >= wide);
  }
}

void check_deployments(const char* serving) {
  const Solved solved(changed(kPlan, "[disaggregated, colocated]", serving));
  REQUIRE(!solved.answer.deployments.empty());
  for (const Deployment& d : solved.answer.deployments) {
    CHECK(d.ttft_ms <= 3000);
    CHECK(d.tpot_ms <= 60);
    for (const Side& side : {d.prefill, d.decode}) {
      CHECK(side.memory.fits());
      CHECK(gib(side.memory.held.total()) <= 0.9 * 80);
    }
    CHECK(d.decode_choice.batch_size <= d.decode.fits_requests);
    CHECK(d.prefill.utilization < 1);
    CHECK(d.decode.utilization < 1);
    CHECK(d.gpus == (d.colocated ? d.decode.gpus : d.prefill.gpus + d.decode.gpus));
    CHECK(d.nodes * 8 == d.gpus);
    // Little's law: requests in flight have a slot each.
    CHECK(d.decode.gpus * d.decode_choice.batch_size >= 100 * 500 * d.decode.step_ms / 1e3);
    CHECK(d.tokens_per_s_per_gpu == doctest::Approx(100.0 * 500 / d.gpus));
    CHECK(d.cost_per_million_tokens == doctest::Approx(2.0 * d.gpus / 3600 / (100 * 500) * 1e6));
  }
}

TEST_CASE("every deployment is within the limits, fits into memory, and serves the load") {
  for (const char* serving : {"[disaggregated]", "[colocated]"}) check_deployments(serving);
}

TEST_CASE("nodes are rented whole: units that leave a part of one over pay for it, and a spare is a unit more") {
  CHECK(rented_gpus(4, 8) == 4);
  CHECK(rented_gpus(7, 8) == 8);
  CHECK(rented_gpus(3, 8) == 4);
  CHECK(rented_gpus(12, 8) == 16);
  const Solved one(kNode);
  CHECK(one.best().nodes == 1);
  const Solved spare(changed(kNode, "batch_size: [4, 16, 64]", "batch_size: [4, 16, 64], spare_units: 1"));
  CHECK(spare.best().decode.units == one.best().decode.units);
  CHECK(spare.best().gpus == 2 * one.best().gpus);
  CHECK(spare.best().nodes == 2);
}

TEST_CASE("deployments are cheapest first, and the others say why not") {
  const Solved solved(kPlan);
  const std::vector<Deployment>& all = solved.answer.deployments;
  for (std::size_t i = 1; i < all.size(); ++i) {
    CHECK(all[i - 1].usd_per_hour <= all[i].usd_per_hour);
    CHECK(!all[i].loses.empty());
  }
}

TEST_CASE("more requests, longer answers, tighter limits and fewer cache hits never take fewer GPUs") {
  const int now = Solved(kPlan).best().gpus;
  CHECK(gpus("requests_per_s: 100", "requests_per_s: 400") >= now);
  CHECK(gpus("requests_per_s: 100", "requests_per_s: 400") <= 4 * now);
  CHECK(gpus("output: {mean: 500", "output: {mean: 1500") >= now);
  CHECK(gpus("tpot_ms: 60", "tpot_ms: 45") >= now);
  CHECK(gpus("ttft_ms: 3000", "ttft_ms: 1500") >= now);
  CHECK(gpus("cache_hit_share: 0.3", "cache_hit_share: 0") >= now);
}

TEST_CASE("a deployment's numbers are those of simulate") {
  const Solved solved(kPlan);
  const Deployment& best = solved.best();
  const CachedTokens cached = cached_tokens(solved.plan.traffic.input, solved.plan.traffic.output);
  const std::string scenario = fmt::format(
      "schema: 1\nmodel: deepseek-v3\nhardware: h800\nschedule: {}\nparallelism: {{ep: 32, dp: 32}}\n"
      "workload: {{phase: decode, batch_size: {}, kv_len: {:.0f}, kv_len_spread: {:.0f}}}\nranks: folded\n",
      best.decode_choice.schedule, best.decode_choice.batch_size, cached.mean, cached.deviation);
  const Outcome outcome = run_moeline({"simulate", solved.folder.write("scenario.yaml", scenario), "--format", "json"});
  rapidjson::Document json;
  json.Parse(outcome.out.c_str());
  REQUIRE(!json.HasParseError());
  CHECK(best.decode.step_ms == doctest::Approx(json["metrics"]["step_ms"].GetDouble()).epsilon(1e-4));
}

TEST_CASE("few requests that must be fast share a node's GPUs, many that may be slower have one each") {
  const Solved fast(kNode);
  CHECK(fast.best().gpus == 8);
  CHECK(short_name(fast.best().decode_choice.unit).starts_with("TP8"));
  CHECK(fast.best().decode_choice.mode == CommMode::all_reduce);
  const std::string slow =
      changed(changed(kNode, "tpot_ms: 20", "tpot_ms: 60"), "requests_per_s: 1", "requests_per_s: 12");
  const Solved many(slow);
  CHECK(many.best().gpus == 8);
  CHECK(short_name(many.best().decode_choice.unit) == "EP8");
}

TEST_CASE("a unit that prefills in mixed steps has its tokens within the limit, and no sooner than decode alone") {
  const Solved solved(kNode);
  const Deployment& best = solved.best();
  CHECK(best.mixed);
  CHECK(best.tpot_ms >= best.decode.step_ms);
  CHECK(best.tpot_ms <= 20);
  CHECK(best.prefill.step_ms > best.decode.step_ms);
}

TEST_CASE("a dense model is served by attention groups") {
  const std::string dense = changed(kNode, "model: deepseek-v3", "model: qwen-2.5-72b");
  const std::string sizes =
      changed(changed(dense, "ep: [8], tp: [1, 8]", "ep: [4, 8]"), "ep: [8], tp: [1, 8]", "ep: [4, 8]");
  const Solved solved(
      changed(changed(sizes, ", set: [precision.experts=nvfp4]", ""), ", set: [precision.experts=nvfp4]", ""));
  for (const Deployment& d : solved.answer.deployments) {
    CHECK(d.decode_choice.unit.tp == d.decode_choice.gpus());
    CHECK(d.decode_choice.unit.ep == 1);
  }
  CHECK(solved.answer.deployments.size() == 2);
}

TEST_CASE("the front has no point that another is better than in both, and misses none") {
  const std::vector<TradeOff> all = Solved(kPlan).answer.trade_offs;
  const std::vector<TradeOff> front = pareto_front(all);
  const auto dominated = [&](const TradeOff& point) {
    return std::any_of(all.begin(), all.end(), [&](const TradeOff& other) {
      return other.tokens_per_s_per_user >= point.tokens_per_s_per_user &&
             other.tokens_per_s_per_gpu >= point.tokens_per_s_per_gpu &&
             (other.tokens_per_s_per_user > point.tokens_per_s_per_user ||
              other.tokens_per_s_per_gpu > point.tokens_per_s_per_gpu);
    });
  };
  for (const TradeOff& point : front) CHECK(!dominated(point));
  const auto count = std::count_if(all.begin(), all.end(), [&](const TradeOff& point) { return !dominated(point); });
  CHECK(count == static_cast<std::ptrdiff_t>(front.size()));
}

TEST_CASE("what does not fit into memory is said before anything is simulated") {
  const Solved solved(changed(kPlan, "decode: {ep: [32]", "decode: {ep: [8]"));
  CHECK(solved.answer.deployments.empty());
  REQUIRE(solved.answer.impossible.size() == 1);
  CHECK(solved.answer.impossible[0].what == "decode EP8 on h800");
  CHECK(solved.answer.impossible[0].why == "no request fits into memory");
}

TEST_CASE("where nothing is within the limits, the nearest that is says how far off they are, exit code 1") {
  TemporaryFolder folder;
  const Outcome outcome =
      run_moeline({"plan", folder.write("plan.yaml", changed(kPlan, "tpot_ms: 60", "tpot_ms: 1")), "--format", "json"});
  CHECK(outcome.exit_code == 1);
  rapidjson::Document json;
  json.Parse(outcome.out.c_str());
  REQUIRE(!json.HasParseError());
  CHECK(json["deployments"].Size() == 0);
  CHECK(json["nearest_limits"]["tpot_ms"].GetDouble() > 1);
  CHECK(json["nearest"]["tpot_ms"].GetDouble() <= json["nearest_limits"]["tpot_ms"].GetDouble());
}

TEST_CASE("one batch overlaps with itself only where the plan asks for it") {
  const auto has = [](const std::string& plan, const char* schedule) {
    const Solved solved(plan);
    const std::vector<Deployment>& all = solved.answer.deployments;
    return std::any_of(all.begin(), all.end(),
                       [&](const Deployment& d) { return d.decode_choice.schedule == schedule; });
  };
  CHECK_FALSE(has(kPlan, "single-batch"));
  const std::string single =
      changed(kPlan, "100], two_batch: [true, false]", "100], two_batch: [false], single_batch: [true]");
  CHECK(has(single, "single-batch"));
  CHECK_FALSE(has(single, "sequential"));
}

TEST_CASE("the table is no wider than a screen") {
  TemporaryFolder folder;
  const Outcome outcome = run_moeline({"plan", folder.write("plan.yaml", kPlan), "--no-sensitivity"});
  std::istringstream lines(outcome.out);
  for (std::string line; std::getline(lines, line);) {
    CAPTURE(line);
    CHECK(line.size() <= 140);
  }
}

TEST_CASE("a list that leaves nothing to search is said") {
  const Solved copies(changed(kPlan, "decode: {ep: [32]", "decode: {redundant_experts: [7], ep: [32]"));
  REQUIRE(copies.answer.impossible.size() == 1);
  CHECK(copies.answer.impossible[0].what == "decode on h800");
  const Solved batches(changed(kPlan, "[8, 32, 64, 100], two_batch: [true, false]", "[1], two_batch: [true]"));
  REQUIRE(batches.answer.impossible.size() == 1);
  CHECK(batches.answer.impossible[0].why.find("no listed batch_size") != std::string::npos);
}

TEST_CASE("the longest request fits into memory, in prefill all of it, whatever a step holds") {
  const std::string text = changed(kPlan, "input: {mean: 3000, spread: 2000}", "input: {mean: 40000}");
  const Solved solved(changed(text, "ttft_ms: 3000", "ttft_ms: 1000000"));
  const double prompt = gib(40000 * 70272.0);  // bytes per token of DeepSeek-V3
  CHECK(gib(solved.best().prefill.memory.held.kv_cache) == doctest::Approx(prompt).epsilon(0.01));
  const Solved tail(
      changed(kPlan, "input: {mean: 3000, spread: 2000}", "input: {lengths: [100, 700000], shares: [0.99, 0.01]}"));
  CHECK(tail.answer.deployments.empty());
}

TEST_CASE("of the longest request a GPU keeps its heads' share, and colocated it decodes where it was computed") {
  const Solved solved(
      "{schema: 1, model: qwen-2.5-72b, hardware: {h100: {}},\n"
      " traffic: {requests_per_s: 0.1, input: {lengths: [2000, 250000], shares: [0.9, 0.1]}, output: {mean: 200}},\n"
      " limits: {ttft_ms: 1000000, tpot_ms: 200}, serving: [colocated],\n"
      " prefill: {tp: [8], tokens: [8192]}, decode: {tp: [8], batch_size: [2]}}\n");
  const double token = 80 * 2 * 128 * 2;  // one head of keys and one of values in each of 80 layers, BF16
  CHECK(gib(solved.best().decode.memory.held.kv_cache) == doctest::Approx(gib(250200 * token)).epsilon(0.01));
}

TEST_CASE("bound by tpot: slower tokens would take fewer GPUs, by memory: no larger batch fits") {
  const std::string text =
      changed(kPlan, "batch_size: [8, 32, 64, 100], two_batch: [true, false]", "two_batch: [false]");
  const Solved tight(changed(text, "tpot_ms: 60", "tpot_ms: 40"));
  CHECK(tight.best().decode.bound_by == "tpot");
  const Solved loose(changed(text, "tpot_ms: 60", "tpot_ms: 1000"));
  CHECK(loose.best().decode.gpus < tight.best().decode.gpus);
  const Solved many(
      changed(changed(text, "tpot_ms: 60", "tpot_ms: 1000"), "requests_per_s: 100", "requests_per_s: 2000"));
  CHECK(many.best().decode.bound_by == "memory");
}

TEST_CASE("colocated: prompts take time from answers, and prefill counts its partly filled steps") {
  const std::string text =
      changed(changed(kPlan, "[disaggregated, colocated]", "[colocated]"), "ttft_ms: 3000", "ttft_ms: 8000");
  const Deployment best = Solved(text).best();
  REQUIRE(best.colocated);
  CHECK(best.tpot_ms <= 60);
  CHECK(best.tpot_ms > best.decode.step_ms / (1 - best.prefill.utilization) - 1e-9);  // which is the mean
  CHECK(best.prefill.utilization >= 100 * 3000 * 0.7 / (best.prefill.tokens_per_s_per_gpu * best.gpus));
  int before = 1 << 30;
  for (const int ttft_ms : {4000, 8000, 30000}) {
    const int now = Solved(changed(text, "ttft_ms: 8000", fmt::format("ttft_ms: {}", ttft_ms))).best().gpus;
    CHECK(now <= before);
    before = now;
  }
}

TEST_CASE("there is a nearest deployment whichever limit is missed, and however it is served") {
  for (const char* serving : {"[disaggregated]", "[colocated]", "[disaggregated, colocated]"}) {
    for (const auto& [from, to] : {std::pair{"ttft_ms: 3000", "ttft_ms: 50"}, std::pair{"tpot_ms: 60", "tpot_ms: 1"}}) {
      CAPTURE(serving);
      MOELINE_CAPTURE_BINDING(to);
      const Solved solved(changed(changed(kPlan, "[disaggregated, colocated]", serving), from, to));
      CHECK(solved.answer.deployments.empty());
      REQUIRE(solved.answer.nearest.has_value());
      CHECK(solved.answer.nearest->ttft_ms <= solved.answer.nearest_limits->ttft_ms);
      CHECK(solved.answer.nearest->tpot_ms <= solved.answer.nearest_limits->tpot_ms);
    }
  }
}

TEST_CASE("JSON has the keys of the contract, and is the same on one thread and on three") {
  TemporaryFolder folder;
  const std::string file = folder.write("plan.yaml", kPlan);
  const Outcome one = run_moeline({"plan", file, "--format", "json", "--workers", "1", "--no-sensitivity"});
  const Outcome three = run_moeline({"plan", file, "--format", "json", "--workers", "3", "--no-sensitivity"});
  CHECK(one.out == three.out);
  rapidjson::Document json;
  json.Parse(one.out.c_str());
  REQUIRE(json["deployments"].Size() > 0);
  for (const char* key : {"gpus", "prefill", "decode", "tokens_per_s_per_gpu", "tpot_ms", "ttft_ms",
                          "cost_per_million_tokens", "bound_by"}) {
    CAPTURE(key);
    CHECK(json["deployments"][0].HasMember(key));
  }
}

TEST_CASE("bad plans are refused by line and key") {
  struct Bad {
    const char *from, *to, *message;
  };
  TemporaryFolder folder;
  for (const Bad& bad : {
           Bad{"model: deepseek-v3", "model: deepseek-v4", ":2: model names an unknown"},
           {"h800: {usd", "h801: {usd", ":3: hardware.h801 names an unknown"},
           {"{h800: {usd_per_gpu_hour: 2}}", "{h800: {}, h200: {}}", "needs its usd_per_gpu_hour"},
           {"usd_per_gpu_hour: 2", "usd_per_gpu_hour: -2", "usd_per_gpu_hour must be from"},
           {"usd_per_gpu_hour: 2", "kernels: open-2052", "names an unknown kernel set"},
           {"  requests_per_s: 100\n", "", "requests_per_s or input_tokens_per_s"},
           {"  requests_per_s: 100\n", "  requests_per_s: 100\n  input_tokens_per_s: 5\n", "is a second rate"},
           {"cache_hit_share: 0.3", "cache_hit_share: 1.3", ":8: traffic.cache_hit_share must be from 0 to 0.99"},
           {"tpot_ms: 60", "tpot_ms: 60, tokens_per_s_per_user: 30", "they say the same"},
           {"percentile: 95", "percentile: 100", "percentile must be from 50 to 99.9"},
           {"[disaggregated, colocated]", "[disagregated]", "did you mean 'disaggregated'?"},
           {"prefill: {ep: [16, 32]", "prefill: {ep: []", "prefill.ep has no values"},
           {"two_batch: [true, false]", "two_batch: [yes]", "must be a list of true and false"},
           {"decode: {ep", "decode: {mtp: [0], epp", "did you mean 'decode.ep'?"},
           {"prefill: {ep: [16, 32]", "prefill: {ep: [16, 16]", ":11: prefill.ep has a value twice"},
           {"decode: {ep", "decode: {set: [workload.batch_size=4], ep", "which the plan itself decides"},
           {"decode: {ep", "decode: {set: [jiter=4], ep", ":12: decode.set is refused: "},
           {"usd_per_gpu_hour: 2", "set: [nic_GBsp=4]", ":3: hardware.h800.set is refused: "},
           {"requests_per_s: 100", "requests_per_s: 1e11", "is more than 1e+09 tokens/s"},
           {"mean: 3000, spread: 2000", "lengths: [1, 1e7], shares: [0.9999, 0.0001]", "too far apart"},
           {"mean: 500, spread: 300", "lengths: [1, 2], shares: [0.5, 0.6]", "shares sum to 1.1, not 1"},
       }) {
    const Outcome outcome = run_moeline({"plan", folder.write("plan.yaml", changed(kPlan, bad.from, bad.to))});
    CAPTURE(bad.to);
    CAPTURE(outcome.err);
    CHECK(outcome.exit_code == 3);
    CHECK(outcome.out.empty());
    CHECK(outcome.err.find(bad.message) != std::string::npos);
  }
}

TEST_CASE("the plan of the published service is the table beside it, 2 % below what the service used") {
  const std::string folder = "experiments/studies/serve_deepseek_v3_h800/";
  const Outcome outcome =
      run_moeline({"plan", source(folder + "plan.yaml").string(), "--no-sensitivity", "--format", "csv"});
  CHECK(outcome.out == read_text(source(folder + "expected.csv")));
  const Plan plan = load_plan(source(folder + "plan.yaml"));
  KnownSteps known;
  const Answer answer = solve(plan, known, 2);
  REQUIRE(!answer.deployments.empty());
  CHECK(answer.deployments.front().gpus / 8.0 == doctest::Approx(0.979 * 226.75).epsilon(0.005));
}

TEST_CASE("a page that has no folder is refused before anything is simulated") {
  TemporaryFolder folder;
  const std::string nowhere = folder / "no/such/page.html";
  const Outcome outcome = run_moeline({"plan", folder.write("plan.yaml", kPlan), "--html", nowhere});
  CHECK(outcome.exit_code == 3);
  CHECK(outcome.err == "moeline: " + nowhere + ": there is no folder for it\n");
}

}  // TEST_SUITE("plan/plan")
