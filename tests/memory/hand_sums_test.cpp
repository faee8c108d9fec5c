// Scenarios of all kinds, each with a part of its memory as one works it out from the model's configuration.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "experiments/memory/inference_memory.hpp"
#include "experiments/run/run.hpp"
#include "experiments/serve/serve.hpp"
#include "schedules/scenario/read_scenario.hpp"

TEST_SUITE("memory/hand_sums") {

using namespace moeline;

namespace {

Setup setup_of(const std::string& keys) {
  return read_setup(Spec::parse("scenario.yaml", "{schema: 1, schedule: sequential, " + keys + "}"), {});
}

Setup decoding(const std::string& keys, const std::string& workload) {
  return setup_of(keys + ", workload: {phase: decode, " + workload + "}");
}

Memory of(const Setup& setup) { return memory_of(setup); }

struct Cached {
  const char* what;
  std::string keys, workload;
  double bytes;  // of all caches and states of a GPU
};

// Bytes a token and layer: a head of keys and of values, 2 x size x 2 in BF16; a latent of 512 + 64 numbers.
const std::vector<Cached> kCaches = {
    {"dense, a head of each layer on each of eight ranks", "model: qwen-2.5-72b, hardware: h100, parallelism: {tp: 8}",
     "batch_size: 16, kv_len: 4096", 16 * 4096.0 * 80 * 2 * 128 * 2},
    {"dense, sixteen ranks of eight heads: one each", "model: llama-3.1-405b, hardware: h100, parallelism: {tp: 16}",
     "batch_size: 4, kv_len: 1000", 4 * 1000.0 * 126 * 2 * 128 * 2},
    {"mixture, four heads on four ranks", "model: qwen3-235b-a22b, hardware: h200, parallelism: {tp: 4, ep: 4}",
     "batch_size: 32, kv_len: 2048", 32 * 2048.0 * 94 * 2 * 128 * 2},
    {"mixture, attention on each GPU alone: all heads", "model: qwen3-30b-a3b, hardware: h100, parallelism: {ep: 8}",
     "batch_size: 32, kv_len: 2048", 32 * 2048.0 * 48 * 2 * 4 * 128 * 2},
    {"latents, whole on each rank", "model: deepseek-v3, hardware: h200, parallelism: {tp: 8, ep: 8}",
     "batch_size: 64, kv_len: 4096", 64 * 4096.0 * 61 * 576 * 2},
    {"latents in FP8", "model: deepseek-v3, hardware: h200, parallelism: {tp: 8, ep: 8}, precision: {kv_cache: fp8}",
     "batch_size: 64, kv_len: 4096", 64 * 4096.0 * 61 * 576},
    {"chosen latents in FlashMLA's layout, and an indexer's keys",
     "model: deepseek-v3.2, hardware: h200, parallelism: {ep: 16}, precision: {kv_cache: fp8}",
     "batch_size: 16, kv_len: 32768", 16 * 32768.0 * 61 * (512 + 4 * 4 + 64 * 2 + 128 + 4)},
    {"windows of 128 tokens in every second layer", "model: gpt-oss-120b, hardware: h100, parallelism: {ep: 2}",
     "batch_size: 8, kv_len: 8192", 8 * (18 * 8192.0 + 18 * 128) * 2 * 8 * 64 * 2},
    {"chunks of 8192 tokens in three of four layers",
     "model: llama-4-maverick, hardware: h200, parallelism: {tp: 8, ep: 8}", "batch_size: 2, kv_len: 32768",
     2 * (12 * 32768.0 + 36 * 8192) * 2 * 128 * 2},
    {"states of 36 layers with their convolutions, keys and values of 12",
     "model: qwen3-next-80b-a3b, hardware: h200, parallelism: {ep: 2}", "batch_size: 8, kv_len: 4096",
     8 * (12 * 4096.0 * 2 * 2 * 256 * 2 + 36 * (32.0 * 128 * 128 * 4 + 3 * (2 * 16 * 128 + 32 * 128) * 2))},
    {"a drafting layer has a cache, too", "model: deepseek-v3, hardware: h200, parallelism: {tp: 8, ep: 8}",
     "batch_size: 64, kv_len: 4096, query_len: 2, mtp_acceptance: 0.8", 64 * 4096.0 * 62 * 576 * 2}};

}  // namespace

TEST_CASE("caches of decode") {
  for (const Cached& each : kCaches) {
    CAPTURE(each.what);
    const Memory memory = of(decoding(each.keys, each.workload));
    CHECK(memory.kv_cache == doctest::Approx(each.bytes).epsilon(1e-9));
  }
}

TEST_CASE("the part of a cache that does not grow is that of states") {
  const Memory memory =
      of(decoding("model: qwen3-next-80b-a3b, hardware: h200, parallelism: {ep: 2}", "batch_size: 8, kv_len: 4096"));
  CHECK(memory.states == doctest::Approx(8 * 36 * (32.0 * 128 * 128 * 4 + 3 * (2 * 16 * 128 + 32 * 128) * 2)));
}

TEST_CASE("a stage of a pipeline keeps the caches of its layers") {
  const std::vector<Memory> stages =
      memory_of_stages(decoding("model: qwen-2.5-72b, hardware: h100, parallelism: {tp: 4, pp: 2}, stages: [38, 42]",
                                "batch_size: 16, kv_len: 4096"));
  const double layer = 16 * 4096.0 * 2 * 2 * 128 * 2;
  REQUIRE(stages.size() == 2);
  CHECK(stages[0].kv_cache == doctest::Approx(38 * layer));
  CHECK(stages[1].kv_cache == doctest::Approx(42 * layer));
}

TEST_CASE("ranks that share a long prompt and pass keys on keep their part of it") {
  const auto cached = [](const char* context) {
    return of(setup_of(
                  std::string("model: qwen-2.5-72b, hardware: h100, parallelism: {tp: 2, cp: 4}, comm: {context: ") +
                  context + "}, workload: {phase: prefill, tokens: 65536, prompt_len: 65536}"))
        .kv_cache;
  };
  CHECK(cached("all_gather") == doctest::Approx(65536.0 * 80 * 4 * 2 * 128 * 2));
  CHECK(cached("ring") == doctest::Approx(65536.0 / 4 * 80 * 4 * 2 * 128 * 2));
}

TEST_CASE("weights: a rank's experts whole, attention split, what is narrow on every one") {
  // Layer of Qwen3-235B: 16 of 128 experts; a quarter of 64 heads' queries and outputs, one head of keys and values;
  // two norms and two of heads, and the router, in BF16.
  const Memory memory = of(decoding("model: qwen3-235b-a22b, hardware: h200, parallelism: {tp: 4, ep: 8, dp: 2}",
                                    "batch_size: 8, kv_len: 1024"));
  const double experts = 16 * 3.0 * 4096 * 1536, attention = 4096.0 * 128 * (2 * 16 + 2 * 1);
  const double layer = experts + attention + 4096.0 * 128 + 2 * 4096 + 2 * 128;
  const double ends = 2 * 151936.0 * 4096 / 4 + 4096;
  CHECK(memory.weights == doctest::Approx((94 * layer + ends) * 2).epsilon(1e-4));
}

TEST_CASE("prefill on a cached prefix: keys and values that latents expand to are those of all keys") {
  const auto activations = [](const char* cached) {
    return of(setup_of(std::string("model: deepseek-v3, hardware: h800, parallelism: {tp: 8, ep: 8}, comm: {mode: "
                                   "all_reduce}, workload: {phase: prefill, tokens: 8192, prompt_len: ") +
                       cached + "}"))
        .activations;
  };
  const double key = 16 * (128 + 64 + 128) * 2.0;  // of sixteen heads, and its value
  CHECK(activations("65536, cached_len: 57344") - activations("40960, cached_len: 32768") ==
        doctest::Approx(24576 * key));
}

TEST_CASE("low-latency buffers: two sets of a message per expert and token, sent and received") {
  const Memory memory =
      of(decoding("model: deepseek-v3, hardware: h800, parallelism: {ep: 64}, comm: {mode: low_latency}",
                  "batch_size: 128, kv_len: 1024"));
  CHECK(memory.communication == 2.0 * (2.0 * 256 * 128 * (7168 * 2 + 224) + 256 * 4));
}

TEST_CASE("serve: tokens of a cache that drafts are what is left over 62 layers of latents") {
  const char* scenario =
      "{schema: 1, model: deepseek-v3, hardware: h200, schedule: sequential, parallelism: {tp: 8, ep: 8},"
      " memory: {fraction: 0.88}, workload: {phase: serve, concurrency: 8, requests: 8, input_len: 512, output_len: 64,"
      " query_len: 2, mtp_acceptance: [0.8]}}";
  const ServePool pool = serve(Spec::parse("serve.yaml", scenario), {}).answers;
  CHECK(pool.shape.kv_tokens == doctest::Approx(pool.memory.kv_cache / (62 * 576 * 2)));
  const double capacity = (141 - 2.4) * (1 << 30);  // SGLang's rule: weights and caches, of what CUDA leaves
  CHECK(pool.memory.kv_cache == doctest::Approx(0.88 * capacity - pool.memory.weights));
}

// Of what each stack fills: weights, activations and buffers beside caches.
TEST_CASE("each stack's fraction is of what that stack means by it") {
  const auto room = [](const char* rule) {
    const Setup setup =
        decoding(std::string("model: qwen3-235b-a22b, hardware: h200, parallelism: {tp: 8, ep: 8}, memory: ") + rule,
                 "batch_size: 64, kv_len: 4096");
    const Memory memory = of(setup);
    return std::pair{room_for_caches(setup, memory), memory};
  };
  const double gpu = 141.0 * (1 << 30), free = gpu - 2.4 * (1 << 30);
  const auto [sglang, m] = room("{stack: sglang, fraction: 0.85}");
  CHECK(sglang == doctest::Approx(0.85 * free - m.weights));
  CHECK(room("{stack: trtllm, fraction: 0.85}").first ==
        doctest::Approx(0.85 * (free - m.weights - m.activations - m.communication)));
  CHECK(room("{stack: none, fraction: 0.85}").first ==
        doctest::Approx(0.85 * gpu - 2.4 * (1 << 30) - m.weights - m.activations - m.communication));
  const double sampled = 1024.0 * 151936 * 40;  // more than a step's activations
  CHECK(room("{stack: vllm, fraction: 0.85}").first ==
        doctest::Approx(0.85 * gpu - 2.4 * (1 << 30) - m.weights - sampled - m.communication));
  const double left = gib(room("{stack: sglang, fraction: 1}").first);  // activations and buffers must still fit
  CHECK(left == doctest::Approx(gib(free - m.weights - m.activations - m.communication)));
}

namespace {

Run trained(const std::string& keys, const std::string& choices = "moments: bf16") {
  return run_scenario(read_setup(
      Spec::parse("train.yaml", "{schema: 1, hardware: h100, routing: {distribution: exact}, " + keys +
                                    ", workload: {phase: train, seq_len: 2048, micro_batch_size: 1, global_batch_size: "
                                    "128}, training: {operators: megatron, gradients: fp32, " +
                                    choices + "}}"),
      {}));
}

constexpr double kQwenLayer = 2048.0 * 128 * (2 * 32 + 2 * 4) + 2048 * 128 + 2 * 2048 + 2 * 128;  // but for experts
constexpr double kQwenExpert = 3.0 * 2048 * 768;

}  // namespace

TEST_CASE("training: weights in BF16, gradients in FP32, and 2 + 2 + 2 bytes of states, split over replicas") {
  const std::string layout = "model: qwen3-30b-a3b, schedule: 1f1b, parallelism: {pp: 1, ep: 8, dp: 16}";
  const StepMemory memory = trained(layout).step()->fullest().memory.peak;
  const double replicated = 48 * kQwenLayer + 2 * 151936.0 * 2048 + 2048, experts = 48 * 16 * kQwenExpert;
  CHECK(memory.weights == doctest::Approx(2 * (replicated + experts)).epsilon(1e-6));
  CHECK(memory.gradients == doctest::Approx(4 * (replicated + experts)).epsilon(1e-6));
  CHECK(memory.optimizer == doctest::Approx(6 * (replicated / 16 + experts / 2)).epsilon(1e-6));
  const StepMemory fp8 = trained(layout + ", precision: {experts: fp8}").step()->fullest().memory.peak;
  CHECK(fp8.optimizer == doctest::Approx(8 * (replicated / 16 + experts / 2)).epsilon(1e-6));  // masters in FP32
}

TEST_CASE(
    "copies of moments in FP32 are 8 bytes for each parameter of the larger group, and the peak where they are most") {
  const std::string layout = "model: qwen3-30b-a3b, schedule: 1f1b, parallelism: {pp: 1, ep: 8, dp: 8}";
  const RankMemory plain = trained(layout).step()->fullest().memory;
  const RankMemory copied = trained(layout, "moments: bf16, copies_moments: true").step()->fullest().memory;
  const double experts = 48 * 16 * kQwenExpert;
  const auto optimizer = [](const RankMemory& memory) {
    const auto found = std::find_if(memory.peaks.begin(), memory.peaks.end(),
                                    [](const MemoryPeak& peak) { return peak.phase == MemoryPhase::optimizer; });
    return found == memory.peaks.end() ? 0 : found->bytes;
  };
  const double lasting = plain.peak.total() - plain.peak.activations - plain.peak.workspace;
  CHECK(optimizer(copied) == doctest::Approx(lasting + 8 * experts).epsilon(1e-6));
  CHECK(copied.peaks.front().phase == MemoryPhase::optimizer);
  CHECK(plain.peaks.front().phase != MemoryPhase::optimizer);
  CHECK_THROWS_AS((void)trained(layout, "moments: fp32, copies_moments: true"), SpecError);
}

TEST_CASE("1f1b: a rank keeps as many micro-batches as there are ranks from it on") {
  const Run run =
      trained("model: qwen3-30b-a3b, schedule: 1f1b, parallelism: {pp: 4, ep: 8, dp: 8}, stages: [12, 12, 12, 12]");
  const std::vector<RankStep>& ranks = run.step()->ranks;
  const double layers = ranks[1].memory.peak.activations / 3;  // of one micro-batch; the embedding keeps nothing
  for (const std::size_t rank : {0U, 1U, 2U}) {
    CHECK(ranks[rank].memory.peak.activations == doctest::Approx((4.0 - static_cast<double>(rank)) * layers));
  }
}

TEST_CASE("dualpipe keeps the parameters of two stages on a rank") {
  const std::string layout = "model: moonlight-16b-a3b, level: phase, parallelism: {pp: 4, ep: 8, dp: 8}";
  const auto run = [&](const char* schedule) {
    return run_scenario(read_setup(
        Spec::parse("train.yaml", "{schema: 1, hardware: h800, schedule: " + std::string(schedule) + ", " + layout +
                                      ", workload: {phase: train, seq_len: 2048, "
                                      "micro_batch_size: 1, global_batch_size: 128}}"),
        {}));
  };
  const double one = run("1f1b").step()->fullest().memory.peak.weights;
  CHECK(run("dualpipe").step()->fullest().memory.peak.weights > 1.7 * one);
}

}  // TEST_SUITE("memory/hand_sums")
