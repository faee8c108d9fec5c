// Kernels of attention that does not see all keys: sparse, compressed, in chunks, and with a state.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "moe/module_names.hpp"
#include "tests/support/inference.hpp"

TEST_SUITE("moe/attention_kinds") {

using namespace moeline;
using namespace moeline::testing;

namespace {

Setup setup_of(const std::string& model, const std::string& workload, const std::string& parallelism = "{ep: 8}") {
  return load_setup(served_scenario(), {"model=" + model, "workload=" + workload, "parallelism=" + parallelism});
}

std::string decode_at(int kv_len) { return fmt::format("{{phase: decode, batch_size: 32, kv_len: {}}}", kv_len); }
std::string prompt_of(int tokens) {
  return fmt::format("{{phase: prefill, tokens: {}, prompt_len: {}}}", tokens, tokens);
}

std::vector<Operator> attention_of(const Setup& setup, int layer) {
  const InferenceWork work = setup.inference_work({0, 1});
  return inference_phase("attn", work, layer_of(work.model, layer));
}

double sum_in(const std::vector<Operator>& ops, Family family, double Operator::*what) {
  double sum = 0;
  for (const Operator& op : ops) sum += op.family == family ? op.*what : 0;
  return sum;
}

double flops_in(const std::vector<Operator>& ops, Family family) { return sum_in(ops, family, &Operator::flops); }
double bytes_in(const std::vector<Operator>& ops, Family family) { return sum_in(ops, family, &Operator::bytes); }

double step_ms(const Setup& setup) { return to_us(run_scenario(setup).metrics.span) / 1e3; }

}  // namespace

TEST_CASE("an indexer scores every key, and the core reads those that it chooses") {
  const auto ops = [](int kv_len) { return attention_of(setup_of("deepseek-v3.2", decode_at(kv_len)), 10); };
  CHECK(flops_in(ops(65536), Family::index_scores) == doctest::Approx(32.0 * 65536 * 2 * 64 * 128));
  const double core = 32.0 * 2048 * 2 * 128 * (576 + 512);
  CHECK(flops_in(ops(65536), Family::sparse_attention) == doctest::Approx(core));
  CHECK(flops_in(ops(8192), Family::sparse_attention) == doctest::Approx(core));
  CHECK(flops_in(ops(2048), Family::sparse_attention) == 0);  // all are chosen
  CHECK(flops_in(ops(2048), Family::mla_decode) == doctest::Approx(core));
}

TEST_CASE("long prompts of sparse attention go by latents, short ones by heads") {
  const auto ops = [](int tokens) { return attention_of(setup_of("deepseek-v3.2", prompt_of(tokens)), 10); };
  CHECK(flops_in(ops(2048), Family::attention_forward) > 0);
  CHECK(flops_in(ops(2048), Family::sparse_attention) == 0);
  CHECK(flops_in(ops(8192), Family::attention_forward) == 0);
  CHECK(flops_in(ops(8192), Family::sparse_attention) == doctest::Approx(8192.0 * 2048 * 2 * 128 * (576 + 512)));
  // Scores of half of all pairs of tokens.
  CHECK(flops_in(ops(8192), Family::index_scores) == doctest::Approx(8192.0 * 8192 / 2 * 2 * 64 * 128).epsilon(0.001));
}

TEST_CASE("layers that take an earlier layer's choice have no indexer") {
  const Setup setup = setup_of("glm-5.2", decode_at(65536));
  CHECK(flops_in(attention_of(setup, 10), Family::index_scores) > 0);
  CHECK(flops_in(attention_of(setup, 11), Family::index_scores) == 0);
  CHECK(flops_in(attention_of(setup, 11), Family::sparse_attention) ==
        flops_in(attention_of(setup, 10), Family::sparse_attention));
}

TEST_CASE("a state takes as long however many tokens it has seen, keys take longer") {
  for (const char* model : {"qwen3-next-80b-a3b", "nemotron-3-nano", "kimi-k3"}) {
    CAPTURE(model);
    const auto ops = [&](int kv_len, int layer) { return attention_of(setup_of(model, decode_at(kv_len)), layer); };
    CHECK(bytes_in(ops(1024, 1), Family::state_update) == bytes_in(ops(65536, 1), Family::state_update));
  }
  // 32 states of 32 heads of 128 x 128 in FP32, read and written; queries, keys, values and outputs.
  const double state = 32.0 * 32 * 128 * 128 * 4;
  CHECK(bytes_in(attention_of(setup_of("qwen3-next-80b-a3b", decode_at(4096)), 0), Family::state_update) ==
        doctest::Approx(2 * state + 32 * (2.0 * 2048 + 2 * 4096) * 2));
}

TEST_CASE("a chunked scan is linear in the prompt, attention is not") {
  const auto flops = [](int tokens, int layer, Family family) {
    return flops_in(attention_of(setup_of("qwen3-next-80b-a3b", prompt_of(tokens)), layer), family);
  };
  CHECK(flops(16384, 0, Family::state_scan) == doctest::Approx(2 * flops(8192, 0, Family::state_scan)));
  CHECK(flops(16384, 3, Family::attention_forward) == doctest::Approx(4 * flops(8192, 3, Family::attention_forward)));
}

TEST_CASE("tokens of a chunk see it alone") {
  const auto flops = [](int tokens, int layer) {
    return flops_in(attention_of(setup_of("llama-4-maverick", prompt_of(tokens)), layer), Family::attention_forward);
  };
  CHECK(flops(8192, 0) == flops(8192, 3));
  CHECK(flops(32768, 0) == doctest::Approx(4 * flops(8192, 0)));
  CHECK(flops(32768, 3) == doctest::Approx(16 * flops(8192, 3)));
}

TEST_CASE("of what is cached tokens of a chunk see what lies in theirs") {
  const auto flops = [](int cached) {
    const std::string workload =
        fmt::format("{{phase: prefill, tokens: 4096, prompt_len: {}, cached_len: {}}}", cached + 4096, cached);
    return flops_in(attention_of(setup_of("llama-4-maverick", workload), 0), Family::attention_forward);
  };
  CHECK(flops(16384) == flops(0));  // two whole chunks
  CHECK(flops(20480) == flops(4096));
  CHECK(flops(4096) == doctest::Approx(3 * flops(0)));  // half of it before them, and half of their own
}

TEST_CASE("FLOPs of ranks that share a layer add up, whatever its attention") {
  for (const char* model : {"qwen3-next-80b-a3b", "nemotron-3-nano", "llama-4-maverick", "kimi-k3"}) {
    for (int layer = 0; layer < 4; ++layer) {
      CAPTURE(model);
      CAPTURE(layer);
      const auto ops = [&](int tp) {
        const std::string split = fmt::format("{{tp: {}, ep: {}}}", tp, tp);
        return attention_of(setup_of(model, decode_at(4096), split), layer);
      };
      for (const Family family : {Family::state_update, Family::gqa_decode, Family::mla_decode}) {
        CHECK(8 * flops_in(ops(8), family) == doctest::Approx(flops_in(ops(1), family)));
      }
    }
  }
}

TEST_CASE("more requests and longer sequences never take less time") {
  for (const char* model : {"deepseek-v3.2", "deepseek-v4-flash", "qwen3-next-80b-a3b", "nemotron-3-nano",
                            "llama-4-maverick", "minimax-m3"}) {
    CAPTURE(model);
    const auto decode = [&](int batch, int kv_len) {
      return step_ms(setup_of(model, fmt::format("{{phase: decode, batch_size: {}, kv_len: {}}}", batch, kv_len)));
    };
    CHECK(decode(64, 4096) >= decode(32, 4096));
    CHECK(decode(64, 32768) >= decode(64, 4096));
    const auto prompt = [&](int tokens) { return step_ms(setup_of(model, prompt_of(tokens))); };
    CHECK(prompt(32768) > prompt(8192));
  }
}

TEST_CASE("what keeps no keys cannot be split over the tokens of a prompt, and neither can what chooses some") {
  for (const char* model : {"qwen3-next-80b-a3b", "deepseek-v3.2", "llama-4-maverick", "deepseek-v4-flash"}) {
    const std::string refused = refusal_of([&] { (void)setup_of(model, prompt_of(16384), "{cp: 2, ep: 8, dp: 4}"); });
    CHECK(refused.find("cp above 1 is not modelled for") != std::string::npos);
  }
}

}  // TEST_SUITE("moe/attention_kinds")
