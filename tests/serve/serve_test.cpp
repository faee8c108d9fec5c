// Serving on simulated steps: it is what its steps are, Little's law holds, and what it cannot do is refused by name.
#include <doctest/doctest.h>

#include <fmt/format.h>

#include "base/file.hpp"
#include "experiments/run/run_metrics.hpp"
#include "experiments/serve/serve.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/data.hpp"
#include "tests/support/inference.hpp"
#include "tests/support/process.hpp"
#include "tests/support/sanitized.hpp"

TEST_SUITE("serve/serve") {

using namespace moeline;
using namespace moeline::testing;

namespace {

const std::string kHead =
    "schema: 1\nmodel: deepseek-v3\nhardware: h200\nkernels: sglang\nschedule: sequential\n"
    "parallelism: {tp: 8, ep: 8}\n";
const std::string kServed = kHead +
                            "workload: {phase: serve, concurrency: 64, requests: 400, input_len: 1024, output_len: "
                            "256, output_len_spread: 80}\n";

ServeResult served(const std::vector<std::string>& set = {}) { return serve(Spec::parse("serve.yaml", kServed), set); }

}  // namespace

TEST_CASE("tokens of a closed loop come as fast as steps of so many requests do") {
  const ServeResult r = served({"workload.requests=600", "workload.input_len=64", "workload.prompts=mixed"});
  const Setup step =
      read_setup(Spec::parse("step.yaml", kHead + "workload: {phase: decode, batch_size: 64, kv_len: 192}\n"));
  CHECK(r.measures.steady.tpot_ms.p50 == doctest::Approx(to_us(run_scenario(step).metrics.span) / 1e3).epsilon(0.25));
  CHECK(r.measures.steady.tpot_ms.p50 >= to_us(run_scenario(step).metrics.span) / 1e3);
  CHECK(r.measures.mean_running + r.measures.mean_waiting == doctest::Approx(64).epsilon(1e-6));
}

TEST_CASE("serve has the room in the cache that simulate says, states and windows counted") {
  for (const char* model : {"deepseek-v3", "qwen3-next-80b-a3b", "gpt-oss-120b", "llama-4-maverick"}) {
    CAPTURE(model);
    const std::vector<std::string> set = {std::string("model=") + model};
    std::vector<std::string> fewest = set;
    fewest.insert(fewest.end(), {"workload.concurrency=1", "workload.requests=1"});
    const ReplicaShape shape = served(fewest).answers.shape;
    const Setup step =
        read_setup(Spec::parse("step.yaml", kHead + "workload: {phase: decode, batch_size: 1, kv_len: 1280}\n"), set);
    const double said = cache_room(step, memory_of(step)).requests, has = shape.kv_tokens / shape.taken(1280);
    CHECK(has <= said * (1 + 1e-9));
    CHECK(has > 0.94 * said);  // the largest step of prompts has more activations
  }
}

TEST_CASE("what may be filled of the memory is a key of the scenario, and belongs to no training") {
  const auto tokens = [&](const char* fraction) {
    return served({"workload.requests=1", "workload.concurrency=1", fraction}).answers.shape.kv_tokens;
  };
  const double more = 0.1 * (141 - 2.4) * (1 << 30);  // bytes of H200, without CUDA's own
  CHECK(tokens("memory.fraction=0.9") - tokens("memory.fraction=0.8") == doctest::Approx(more / 70272));
  const double own = served({"workload.requests=1", "workload.concurrency=1"}).answers.setup.scenario.memory.fraction;
  CHECK(own == 0.887);  // 1 - (512 + 1.5 x 8192 + 1024 + 2 x 512 + 1536) / (141 x 1024) MiB
  CHECK(tokens("seed=1") == tokens("memory.fraction=0.887"));
  const std::string training = source("experiments/studies/train_chunk_deepseek_v3_h800/scenario.yaml").string();
  check_refused({"simulate", training, "--set", "memory.fraction=0.8"}, "--set: memory ", "not train");
}

TEST_CASE("Little's law: as many requests are there as come in the time that one stays" *
          doctest::skip(kSanitized)) {  // 16,000 requests
  for (const std::vector<std::string>& set :
       {std::vector<std::string>{"workload.requests=8000"},
        {"workload.requests=8000", "workload.concurrency=null", "workload.rate=6"}}) {
    const ServeResult r = served(set);
    const std::vector<ServedRequest> steady = steady_requests(r.log);
    const double arrivals = static_cast<double>(steady.size()) / (steady.back().arrival_ms - steady.front().arrival_ms);
    const double in_system = arrivals * r.measures.steady.total_ms.mean;
    CHECK(r.measures.mean_running + r.measures.mean_waiting == doctest::Approx(in_system).epsilon(0.01));
  }
}

TEST_CASE("steps between those that are simulated are within a few per cent of what they take" *
          doctest::skip(kSanitized)) {  // 3,000 requests of many lengths
  for (const char* prompts : {"workload.prompts=mixed", "workload.prompts=first"}) {
    const ServeResult r =
        served({prompts, "workload.input_len_spread=700", "workload.tokens=2048", "workload.requests=1500"});
    CHECK(r.answers.steps_error > 0);
    CHECK(r.answers.steps_error < 0.07);  // experts reached bend the time of few requests most
    CHECK(r.answers.simulated_steps < r.log.steps.size() / 4);
  }
}

TEST_CASE("more at a time: more tokens a second, and each later, the first wave waits longest") {
  const ServeResult few = served({"workload.concurrency=8", "workload.requests=100"}), many = served();
  CHECK(many.measures.output_tokens_per_s > 2 * few.measures.output_tokens_per_s);
  CHECK(many.measures.steady.tpot_ms.mean > few.measures.steady.tpot_ms.mean);
  CHECK(many.measures.first.ttft_ms.mean > 2 * many.measures.steady.ttft_ms.mean);
  CHECK(many.measures.first.requests == 64);
}

TEST_CASE("prompts first: an answer waits for whole prompts, and a prompt for no answers") {
  const ServeResult mixed = served({"workload.prompts=mixed"}), first = served({"workload.prompts=first"});
  CHECK(first.measures.steady.ttft_ms.p50 < 4 * mixed.measures.steady.ttft_ms.p50);
  CHECK(first.measures.steady.tpot_ms.mean != mixed.measures.steady.tpot_ms.mean);
}

TEST_CASE("requests are told as a table, as JSON and one by one, the same each time") {
  const TemporaryFolder folder;
  const std::string file = folder.write("serve.yaml", kServed);
  const Outcome table = run_moeline({"simulate", file}), rows = run_moeline({"simulate", file, "--format", "csv"});
  CHECK(table.exit_code == 0);
  CHECK(says(table.out, "TTFT, ms"));
  CHECK(std::count(rows.out.begin(), rows.out.end(), '\n') == 1 + 400);
  const std::string json = run_moeline({"simulate", file, "--format", "json"}).out;
  CHECK(says(json, "\"ttft_ms\""));
  CHECK(json == run_moeline({"simulate", file, "--format", "json"}).out);
}

TEST_CASE("requests and steps are drawn side by side, in a picture and on the page") {
  const TemporaryFolder folder;
  const std::string file = folder.write("serve.yaml", kServed);
  const std::string svg = folder / "serve.svg", html = folder / "serve.html";
  CHECK(run_moeline({"simulate", file, "--svg", svg, "--html", html}).exit_code == 0);
  const std::string picture = content_of(svg);
  for (const char* part : {">replica 0<", ">request ", "decode, ", "prefill, ", ">prompts and answers<"}) {
    CAPTURE(part);
    CHECK(picture.find(part) != std::string::npos);
  }
  CHECK(content_of(html).find("data-program=") != std::string::npos);
}

TEST_CASE("loads of experts that change with time: steps follow them, and placing experts anew makes them shorter") {
  if (kSanitized) return;  // two servings of 2,500 requests
  const TemporaryFolder folder;
  std::string loads = "step,layer,expert,load\n";
  for (int step = 0; step < 3; ++step) {
    for (int expert = 0; expert < 256; ++expert) {
      const int load = step == 0 ? 10 : 1 + expert * expert % 97;
      loads += fmt::format("{},0,{},{}\n", step, expert, load);
    }
  }
  folder.write("loads.csv", loads);
  const std::string head = replaced(kServed, "parallelism: {tp: 8, ep: 8}", "parallelism: {ep: 8}") +
                           "routing: {distribution: file, file: loads.csv, redundant_experts: 8, placement: eplb}\n";
  const auto served_by = [&](const std::string& course) {
    std::string text = replaced(head, "phase: serve", "phase: serve, loads: {step_s: 5" + course + "}");
    text = replaced(text, "concurrency: 64, requests: 400, input_len: 1024",
                    "concurrency: 2048, requests: 2500, input_len: 64");
    return serve(Spec::load(folder.write("serve.yaml", text)), {});
  };
  const auto decode_ms = [](const ServeLog& log, int loads_step, int placed_before) {
    double sum = 0, count = 0;
    for (const ServedStep& step : log.steps) {
      const bool is_full = step.mean.answers > 240;  // of 256
      if (step.busiest.prompts > 0 || !is_full || step.state.loads != loads_step) continue;
      CHECK(step.state.placed_before == placed_before);
      sum += step.ms - step.paused_ms;
      ++count;
    }
    REQUIRE(count > 0);
    return sum / count;
  };
  const ServeResult once = served_by(""), anew = served_by(", rebalance_every: 1");
  CHECK(decode_ms(anew.log, 2, 2) < decode_ms(once.log, 2, 0));
  const auto imbalance = [&](const char* placed_before) {
    const std::vector<std::string> set = {"routing.step=2", placed_before,
                                          "workload={phase: decode, batch_size: 8, kv_len: 9}"};
    return read_setup(Spec::load(folder.write("serve.yaml", head)), set).routed.front().imbalance();
  };
  CHECK(imbalance("routing.placed_before=0") > 1.05);
  CHECK(imbalance("routing.placed_before=1") == imbalance("routing.placed_before=0"));
  CHECK(imbalance("routing.placed_before=2") < 1.02);
  check_refused({"simulate", folder / "serve.yaml", "--set", "routing.step=3"}, "",
                "has no step 3; it has 3 from 0 to 2");
  folder.write("loads.csv", loads.substr(0, loads.find("\n1,0,0,") + 1));  // the first step alone
  CHECK_THROWS_WITH_AS((void)served_by(""), doctest::Contains("the file of loads has one time step"), SpecError);
  CHECK(once.measures.rebalancings == 0);
  CHECK(anew.measures.rebalancings == 1);  // before the second step there is nothing new to place by
  CHECK(anew.measures.paused_ms > 0);
}

TEST_CASE("what is wrong with a workload of requests is refused at its line") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& from, const std::string& to, const std::string& says) {
    const std::string file = folder.write("serve.yaml", replaced(kServed, from, to));
    check_refused({"simulate", file}, file + ":", says);
  };
  refused("concurrency: 64", "concurrent: 64",
          "unknown key 'workload.concurrent'; did you mean 'workload.concurrency'?");
  refused("concurrency: 64, ", "", "concurrency or rate is needed: when requests come");
  refused("concurrency: 64", "concurrency: 64, rate: 2", "rate says when requests come, and so does concurrency");
  refused("requests: 400", "requests: 0", "requests must be from 1 to");
  refused("input_len: 1024", "input_len: 1024, cached_len: 1024", "cached_len must be from 0 to 1023");
  refused("output_len_spread: 80", "output_len_spread: 8000", "output_len_spread must be from 0 to 1024");
  refused("phase: serve", "phase: serve, prompts: last", "prompts has an unknown value 'last'");
  refused("input_len: 1024", "input_len: 2000000", "does not fit: the KV cache holds");
  refused("phase: serve", "phase: served", "did you mean 'serve'?");
  refused("schedule: sequential", "schedule: decode-two-batch",
          "decode-two-batch is not for every step of these requests (prefill, decode, mixed); there is: sequential");
  const std::string file = folder.write("serve.yaml", kServed);
  check_wrong_usage({"simulate", file, "--strict"}, "--strict: is of a step, and the workload is requests");
  refused("phase: serve", "phase: serve, loads: {step_s: 300}", "needs routing of the distribution file");
  refused("phase: serve", "phase: serve, loads: {step_s: 300, moves_beside: true}", "without rebalance_every");
  refused("phase: serve", "phase: serve, scaling: {least: 1, on_above: 4, off_below: 4, start_s: 1}",
          "off_below must be below on_above");
  refused("phase: serve", "phase: serve, outages: [{replica: 0, of_prefill: true, at_s: 1, for_s: 1}]",
          "of_prefill needs prefill with its replicas");
}

TEST_CASE("prefill apart on simulated steps: caches move over the NIC, which the all-to-all has to share") {
  const std::string apart =
      "schema: 1\nmodel: deepseek-v3\nhardware: h800\nkernels: deepseek-2025-02\nschedule: decode-two-batch\n"
      "parallelism: {ep: 32}\nworkload: {phase: serve, concurrency: 512, requests: 2000, input_len: 2048, output_len: "
      "128, output_len_spread: 40, tokens: 4096, prefill: {replicas: 2, set: [schedule=prefill-two-batch]}}\n";
  const ServeResult r = serve(Spec::parse("apart.yaml", apart), {});
  const ServeMeasures& m = r.measures;
  CHECK(r.gpus() == 96);
  CHECK(m.where.beside == 0);
  // 2048 tokens of 576 numbers in 61 layers, BF16, at 50 GB/s, and somewhat longer beside the all-to-all.
  const double alone_ms = 2048 * 576.0 * 61 * 2 / 50e6;
  CHECK(m.where.transfer > alone_ms);
  CHECK(m.where.transfer < 4 * alone_ms);
  CHECK(r.answers.steps_error < 0.05);
  REQUIRE(r.prompts);
  CHECK(r.prompts->steps_error < 0.1);
}

TEST_CASE("a step beside a transfer of caches is longer where the all-to-all leaves the node, and only there") {
  const std::string head =
      "schema: 1\nmodel: deepseek-v3\nhardware: h800\nkernels: deepseek-2025-02\n"
      "schedule: sequential\n";
  const auto step_us = [&](const std::string& parallelism, double moved) {
    const std::string text =
        head + parallelism +
        "workload: {phase: decode, batch_size: 64, kv_len: 2048, kv_transfer_MB: " + std::to_string(moved) + "}\n";
    const Run run = run_scenario(read_setup(Spec::parse("step.yaml", text)));
    Time end{};
    for (const PhaseTimes& phase : run.phases) {
      if (phase.phase != "kv_transfer") end = std::max(end, phase.end);
    }
    return to_us(end);
  };
  const std::string far = "parallelism: {ep: 32}\n", near = "parallelism: {tp: 8, ep: 8}\n";
  CHECK(step_us(far, 500) > 1.02 * step_us(far, 0));
  CHECK(step_us(far, 1000) > step_us(far, 500));
  CHECK(step_us(near, 500) == doctest::Approx(step_us(near, 0)).epsilon(0.01));
}

TEST_CASE("a trace of requests, lengths between two numbers, and a page and a Chrome trace of what came of them") {
  const TemporaryFolder folder;
  folder.write("requests.csv", "arrival_s,input_len,output_len,cached_len\n0,1000,20,0\n0.5,2000,10,1500\n1,500,5,0\n");
  const std::string head = replaced(kServed, kServed.substr(kServed.find("concurrency")), "trace: requests.csv}\n");
  const std::string file = folder.write("serve.yaml", head);
  const std::string trace = (folder.path() / "out.json").string(), page = (folder.path() / "out.html").string();
  const Outcome outcome = run_moeline({"simulate", file, "--trace", trace, "--html", page, "--format", "csv"});
  CHECK(outcome.exit_code == 0);
  CHECK(says(outcome.out, "\n500.000000,"));
  CHECK(says(outcome.out, ",2000,1500,10,"));
  CHECK(says(read_text(trace), "\"name\": \"request 2\""));
  CHECK(says(read_text(page), "ttft_p99_ms"));
  folder.write("requests.csv", "arrival_s,input_len,output_len\n1,1000,20\n0,2000,10\n");
  check_refused({"simulate", file}, (folder.path() / "requests.csv:3:").string(),
                "arrival_s is before that of the row above");
  folder.write("requests.csv", "input_len,output_len\n10,20\n");
  check_refused({"simulate", file}, file + ":", "the trace has no arrival_s");
}

TEST_CASE("what is wrong with replicas, prefixes, lengths and outages is refused at its line") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& with, const std::string& says) {
    const std::string file = folder.write("serve.yaml", replaced(kServed, "phase: serve", "phase: serve, " + with));
    check_refused({"simulate", file}, file + ":", says);
  };
  refused("router: round-robin", "router has an unknown value 'round-robin'; did you mean 'round_robin'?");
  refused("prefixes: {count: 4, len: 1024}", "prefixes.len must be from 1 to 1023");
  refused("prefixes: {count: 4, len: 10}, cached_len: 5", "cached_len says what is in the cache");
  refused("mtp_acceptance: 0.5", "does not apply: query_len 1 drafts no tokens");
  refused("burstiness: 2", "is of requests that come at a rate");
  refused("trace: nowhere.csv", "nowhere.csv");
  refused("outages: [{replica: 1, at_s: 0, for_s: 1}]", "replica must be 0");
  refused("prefill: {replicas: 1}, kv_room: share", "kv_room share is a rule of replicas that compute prompts");
  refused("prefill: {replicas: 1}, prompts: mixed", "prompts does not apply: prefill has replicas of its own");
  refused("kv_room: none", "kv_room has an unknown value 'none'");
  refused("kv_room: whole, schedule_conservativeness: 2", "schedule_conservativeness belongs to kv_room: share");
  refused("prefill: {replicas: 1, set: [schedule=decode-two-batch]}",
          "decode-two-batch is not for every step of these");
  const std::string wrong = folder.write("serve.yaml", replaced(kServed, "input_len: 1024", "input_len: [900, 100]"));
  check_refused({"simulate", wrong}, wrong + ":", "input_len has two numbers as a list, the least and the most");
}

TEST_CASE(
    "a workload that says nothing is scheduled as the stack of its kernels does it, each default with its source") {
  const auto few = [](std::vector<std::string> set) {
    set.insert(set.begin(), {"workload.requests=12", "workload.concurrency=4", "layers=4"});
    return served(set);
  };
  const auto tokens = [&](const std::vector<std::string>& set) { return few(set).workload.tokens; };
  const ServeResult r = few({});
  CHECK(r.workload.scheduler == Stack::sglang);
  CHECK(r.workload.order == PromptOrder::first_by_rank);
  CHECK(r.workload.room == KvRoom::share);
  CHECK(r.workload.router == RouterRule::ranks_in_turn);
  for (const SchedulerDefault& each : r.defaults) CHECK(std::string(each.source).size() > 20);
  CHECK(tokens({}) == 8192);
  CHECK(tokens({"parallelism={ep: 8}"}) == 1024);  // chunked_prefill_size over eight attention groups
  CHECK(tokens({"hardware=b200"}) == 16384);
  CHECK(tokens({"workload.tokens=512"}) == 512);
  CHECK(tokens({"workload.schedule_conservativeness=0.5"}) == 8192);
  CHECK(tokens({"workload.scheduler=trtllm", "parallelism={ep: 8}"}) == 8192);
  const ServeResult drafts = served({"workload.query_len=2", "workload.concurrency=128"});
  CHECK(drafts.workload.order == PromptOrder::first);
  CHECK(drafts.measures.most_running <= 48);
  CHECK(few({"kernels=vllm"}).workload.room == KvRoom::prompt);
  CHECK(few({"workload.scheduler=none"}).workload.room == KvRoom::whole);
}

TEST_CASE("several prompts that begin in the cache are priced as what they are") {
  const auto prompts = [](int concurrency) {
    return served({"workload={phase: serve, concurrency: " + std::to_string(concurrency) +
                   ", requests: 64, input_len: 8192, cached_len: 7168, output_len: 2, tokens: 8192, scheduler: none}"})
        .measures.first.ttft_ms.mean;
  };
  const Setup step = read_setup(Spec::parse(
      "step.yaml", kHead + "workload: {phase: prefill, tokens: 8192, prompt_len: 8192, cached_len: 7168}\n"));
  CHECK(prompts(8) == doctest::Approx(to_us(run_scenario(step).metrics.span) / 1e3).epsilon(0.01));
  CHECK(prompts(8) < 8 * prompts(1));
}

TEST_CASE("the whole run is told as the stacks' benchmarks tell it, and a run that is not steady is warned of") {
  const ServeResult r = served({"workload.requests=3000"});
  const BenchFigures& b = r.measures.bench;
  CHECK(b.request_throughput * b.duration_s == doctest::Approx(3000));
  CHECK(b.output_throughput < b.total_token_throughput);
  CHECK(b.itl_ms.mean == doctest::Approx(b.tpot_ms.mean).epsilon(0.03));
  CHECK(b.itl_ms.p50 <= b.itl_ms.p99);
  CHECK(std::abs(r.measures.halves_differ) < 0.05);
  CHECK(std::abs(served().measures.halves_differ) > 0.05);  // 400 requests, 64 at a time
}

}  // TEST_SUITE("serve/serve")
