// Memory per GPU: what is split, what is not, and DeepEP's own buffer sizes.
#include "moe/memory.hpp"

#include <doctest/doctest.h>

#include "architecture/parameters.hpp"

TEST_SUITE("moe/memory") {

using namespace moeline;

namespace {

GpuWork decode_unit() {  // DeepSeek's: 18 nodes, 32 redundant experts, 128 requests per GPU
  GpuWork d;
  d.ep = 144;
  d.redundant_experts = 32;
  d.micro_batches = 2;
  d.decode = {.requests = 128, .kv_len = 4989};
  d.mode = CommMode::low_latency;
  return d;
}

GpuWork prefill_unit() {  // DeepSeek's: 4 nodes, 32 redundant experts, 16384 tokens per GPU
  GpuWork d;
  d.ep = 32;
  d.redundant_experts = 32;
  d.micro_batches = 2;
  d.prefill = {.requests = 4, .query_len = 4096};
  return d;
}

double bytes_of(const std::vector<Module>& modules) {
  double sum = 0;
  for (const Module& module : modules) sum += module.count * module.bytes();
  return sum;
}

}  // namespace

TEST_CASE("one GPU alone holds every weight once") {
  for (const char* name : {"deepseek-v3", "gpt-oss-120b", "mixtral-8x7b", "llama-3.1-405b"}) {
    const Architecture model = load_architecture(name);
    CHECK(memory_per_gpu(model, {}).weights == doctest::Approx(bytes_of(modules(model))));
  }
}

TEST_CASE("expert parallelism splits routed experts and nothing else") {
  const Architecture model = load_architecture("deepseek-v3");
  GpuWork d;
  const double one = memory_per_gpu(model, d).weights;
  const double expert = 3.0 * 7168 * 2048 * bytes_per_weight(Precision::fp8);
  d.ep = 64;
  CHECK(one - memory_per_gpu(model, d).weights == doctest::Approx(58 * (256 - 4) * expert));
  d.redundant_experts = 64;
  CHECK(one - memory_per_gpu(model, d).weights == doctest::Approx(58 * (256 - 5) * expert));
  d.redundant_experts = 32;  // half of the GPUs hold a fifth one, and the fullest counts
  CHECK(one - memory_per_gpu(model, d).weights == doctest::Approx(58 * (256 - 5) * expert));
}

TEST_CASE("MTP adds its layer, with its experts split, and its own cache") {
  const Architecture model = load_architecture("deepseek-v3");
  GpuWork d = decode_unit();
  const Memory without = memory_per_gpu(model, d);
  d.mtp = true;
  const Memory with = memory_per_gpu(model, d);
  CHECK(with.kv_cache / without.kv_cache == doctest::Approx(62 / 61.0));
  const double expert = 3.0 * 7168 * 2048 * bytes_per_weight(Precision::fp8);
  CHECK(with.weights - without.weights == doctest::Approx(bytes_of(mtp_modules(model)) - (256 - 2) * expert));
}

TEST_CASE("DeepSeek's published units fit H800's 80 GB") {
  const Architecture model = load_architecture("deepseek-v3");
  CHECK(memory_per_gpu(model, decode_unit()).total() < 80e9);
  CHECK(memory_per_gpu(model, prefill_unit()).total() < 80e9);
}

TEST_CASE("without expert parallelism DeepSeek-V3 does not fit a GPU") {
  CHECK(memory_per_gpu(load_architecture("deepseek-v3"), {}).total() > 600e9);
}

TEST_CASE("the cache is the requests' own, with the windows of each") {
  const Architecture model = load_architecture("gpt-oss-120b");
  GpuWork d;
  d.decode = {.requests = 64, .kv_len = 8192};
  CHECK(memory_per_gpu(model, d).kv_cache == 64 * kv_bytes(model, 8192));
}

TEST_CASE("low-latency buffers are what DeepEP asks for") {
  // get_low_latency_rdma_size_hint(128, 7168, 64, 256): 2 x (send + receive), each 256 x 128 messages of 14336 + 224
  // bytes, and two lists of 256 counts
  GpuWork d;
  d.ep = 64;
  d.decode = {.requests = 128};
  d.mode = CommMode::low_latency;
  CHECK(memory_per_gpu(load_architecture("deepseek-v3"), d).communication == 2.0 * (2.0 * 256 * 128 * 14560 + 256 * 4));
}

TEST_CASE("micro-batches share the low-latency buffers, each as large as one of them needs") {
  const Architecture model = load_architecture("deepseek-v3");
  GpuWork d = decode_unit();
  const double two = memory_per_gpu(model, d).communication;
  d.micro_batches = 1;
  CHECK(memory_per_gpu(model, d).communication / two == doctest::Approx(2).epsilon(0.001));
}

TEST_CASE("normal buffers are what DeepEP asks for, whatever the tokens") {
  // Config(20, 32, 288, 32, 128) and 14336 bytes per token: 10 channels, 8 GPUs and 4 nodes
  const Architecture model = load_architecture("deepseek-v3");
  const double token = 14336 + 8 + 128 * 8 + 128 * 4 + 128 * 4;
  const double nvlink = 10 * 8 * (288 * token + (2 * 4 + 3) * 4);
  const double rdma = 10 * 4 * (128 * (token + 16) * 2 + 18 * 2 * 4) + 1048576;
  GpuWork d = prefill_unit();
  CHECK(memory_per_gpu(model, d).communication == nvlink + rdma);
  d.prefill = {.requests = 1};
  CHECK(memory_per_gpu(model, d).communication == nvlink + rdma);
  d.ep = 8;  // NVLink alone
  CHECK(memory_per_gpu(model, d).communication == 10 * 8 * (256 * token + 5 * 4));
  d.ep = 1;
  CHECK(memory_per_gpu(model, d).communication == 0);
}

TEST_CASE("activations grow with the tokens of a step, and logits take over where they are many") {
  const Architecture model = load_architecture("deepseek-v3");
  GpuWork d = prefill_unit();
  const double half = memory_per_gpu(model, d).activations;
  d.prefill.query_len *= 2;
  CHECK(memory_per_gpu(model, d).activations / half == doctest::Approx(2).epsilon(0.02));  // row padding stays
  const double tokens = d.tokens();
  d.prefill = {.requests = tokens};  // each of which is the last of its prompt
  CHECK(memory_per_gpu(model, d).activations == tokens * 2 * 7168 * 2 + tokens * 129280.0 * 6);
}

TEST_CASE("MLA expands keys and values of all that a prompt has seen, those that are cached too") {
  const Architecture model = load_architecture("deepseek-v3");
  GpuWork d;
  d.mode = CommMode::all_reduce;
  d.tp = d.ep = 8;
  const auto activations = [&](double cached) {
    d.prefill = {.requests = 1, .query_len = 8192, .kv_len = 8192 + cached};
    return memory_per_gpu(model, d).activations;
  };
  const double head = (128 + 64 + 128) * 2;  // bytes of a key and a value
  CHECK(activations(57344) - activations(16384) == doctest::Approx(40960 * 16 * head));
}

TEST_CASE("where a prompt's tokens attend to chosen keys they stay latents, and the indexer scores every key") {
  const Architecture model = load_architecture("deepseek-v3.2");
  GpuWork d;
  d.prefill = {.requests = 1, .query_len = 8192, .kv_len = 65536};
  d.ep = 64;
  const double latents = 8192.0 * 128 * (512 + 64 + 512) * 2, scores = 8192.0 * 65536 * 4;
  const double states = 8192.0 * 2 * 7168 * 2;
  CHECK(memory_per_gpu(model, d).activations == doctest::Approx(latents + scores + states));
}

TEST_CASE("FlashMLA keeps a chosen latent in FP8 with four scales and rotary numbers in BF16, and an indexer's key") {
  Architecture model = load_architecture("deepseek-v3.2");
  model.kv_cache = Precision::fp8;
  GpuWork d;
  d.decode = {.requests = 32, .kv_len = 32768};
  CHECK(memory_per_gpu(model, d).kv_cache == 32.0 * 32768 * 61 * (512 + 16 + 128 + 132));
}

TEST_CASE("a request keeps states whole from its first token on, and of chunks and windows no more than they have") {
  GpuWork d;
  const auto growth = [&](const char* model, double from, double to) {
    const Architecture architecture = load_architecture(model);
    const CachedLayers layers = cached_layers(architecture, d);
    return cache_of_request(architecture, layers, to) - cache_of_request(architecture, layers, from);
  };
  const double qwen_token = 12 * 2 * 2 * 256 * 2;  // of 48 layers 12 have keys and values, of two heads
  const Architecture qwen = load_architecture("qwen3-next-80b-a3b");
  CHECK(cache_of_request(qwen, cached_layers(qwen, d), 0) > 1000 * qwen_token);
  CHECK(growth("qwen3-next-80b-a3b", 512, 1024) == 512 * qwen_token);
  const double llama_layer = 2 * 8 * 128 * 2;
  CHECK(growth("llama-4-maverick", 1024, 2048) == 1024 * 48 * llama_layer);
  CHECK(growth("llama-4-maverick", 1 << 17, (1 << 17) + 1024) == 1024 * 12 * llama_layer);
  d.tp = 8;
  CHECK(growth("llama-4-maverick", 1024, 2048) == 1024 * 48 * llama_layer / 8);
}

TEST_CASE("two micro-batches hold less than one of all tokens") {
  const Architecture model = load_architecture("deepseek-v3");
  GpuWork d = prefill_unit();
  const double two = memory_per_gpu(model, d).activations;
  d.micro_batches = 1;
  CHECK(memory_per_gpu(model, d).activations > two);
}

TEST_CASE("a low-latency dispatch has a row for every expert, rank and token, used or not") {
  const Architecture model = load_architecture("deepseek-v3");
  GpuWork d;
  d.ep = 128;
  d.decode = {.requests = 128};
  d.mode = CommMode::low_latency;
  const double rows = 2.0 * 128 * 128;
  const double widest = rows * (2048 * (1 + 4.0 / 128) + 7168 * 2);  // into and out of the down projection
  const double shared = 128 * 2048 * (4 + 1 + 4.0 / 128);
  CHECK(memory_per_gpu(model, d).activations == doctest::Approx(128 * 2 * 7168 * 2 + widest + shared));
}

}  // TEST_SUITE("moe/memory")
