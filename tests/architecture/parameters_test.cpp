// Sizes against published ones. Hugging Face counts the parameters of every published checkpoint.
#include "architecture/parameters.hpp"

#include <doctest/doctest.h>

#include <map>

#include "tests/support/capture.hpp"

TEST_SUITE("architecture/parameters") {

using namespace moeline;

namespace {

double sum_of(const std::vector<Module>& modules) {
  double sum = 0;
  for (const Module& module : modules) sum += module.parameters();
  return sum;
}

Module module_of(const Architecture& model, const std::string& name) {
  for (const Module& module : modules(model)) {
    if (module.name == name) return module;
  }
  FAIL("no module " << name);
  return {};
}

}  // namespace

TEST_CASE("totals are those that the makers publish, within 0.1 %, from the fields alone") {
  const std::map<std::string, double> billions = {{"deepseek-v3", 671.0},     {"kimi-k2", 1026},
                                                  {"qwen3-235b-a22b", 235.1}, {"glm-4.5", 352.8},
                                                  {"gpt-oss-120b", 116.83},   {"mixtral-8x7b", 46.7}};
  for (const auto& [name, published] : billions) {
    MOELINE_CAPTURE_BINDING(name);
    CHECK(parameters(load_architecture(name)) / 1e9 == doctest::Approx(published).epsilon(0.001));
  }
  CHECK(parameters(load_architecture("deepseek-v2")) / 1e9 == doctest::Approx(236).epsilon(0.002));
  CHECK(parameters(load_architecture("llama-3.1-405b")) / 1e9 == doctest::Approx(405).epsilon(0.003));
}

TEST_CASE("checkpoints without quantization hold exactly the parameters counted") {
  CHECK(parameters(load_architecture("mixtral-8x7b")) == 46'702'792'704);
  CHECK(parameters(load_architecture("qwen3-235b-a22b")) == 235'093'634'560);
  CHECK(parameters(load_architecture("deepseek-v2")) == 235'741'434'880);
  CHECK(parameters(load_architecture("llama-3.1-405b")) == 405'853'388'800);
}

TEST_CASE("a checkpoint with MTP holds its modules and their copies of embedding and LM head besides") {
  for (const auto& [name, published] : std::map<std::string, double>{{"deepseek-v3", 684.5}, {"glm-4.5", 358.3}}) {
    const Architecture model = load_architecture(name);
    const double copies = 2.0 * model.vocab_size * model.hidden_size;
    CHECK((parameters(model) + sum_of(mtp_modules(model)) + copies) / 1e9 ==
          doctest::Approx(published).epsilon(0.0003));
  }
  CHECK(mtp_modules(load_architecture("kimi-k2")).empty());
}

TEST_CASE("active parameters are those that the makers publish, within what embeddings leave open") {
  const std::map<std::string, double> billions = {{"deepseek-v2", 21},     {"deepseek-v3", 37}, {"kimi-k2", 32},
                                                  {"qwen3-235b-a22b", 22}, {"glm-4.5", 32},     {"gpt-oss-120b", 5.13},
                                                  {"mixtral-8x7b", 12.9}};
  for (const auto& [name, published] : billions) {
    MOELINE_CAPTURE_BINDING(name);
    CHECK(active_parameters(load_architecture(name)) / 1e9 == doctest::Approx(published).epsilon(0.03));
  }
  CHECK(active_parameters(load_architecture("gpt-oss-120b")) / 1e9 == doctest::Approx(5.13).epsilon(0.001));
}

TEST_CASE("modules sum up to the total, and routed experts are most of it") {
  for (const char* name : {"deepseek-v3", "qwen3-235b-a22b", "glm-4.5", "gpt-oss-120b", "mixtral-8x7b"}) {
    const Architecture model = load_architecture(name);
    CHECK(sum_of(modules(model)) == parameters(model));
    CHECK(module_of(model, kRoutedExperts).parameters() > 0.9 * parameters(model));
    CHECK(module_of(model, kRoutedExperts).count == 1.0 * model.moe_layers() * model.n_routed_experts);
  }
}

TEST_CASE("a tied LM head is stored once and still computed") {
  Architecture model = load_architecture("qwen3-235b-a22b");
  const double total = parameters(model);
  const double active = active_parameters(model);
  const double flops = train_flops_per_token(model, 4096);
  const double table = 1.0 * model.vocab_size * model.hidden_size;
  model.tie_word_embeddings = true;
  CHECK(parameters(model) == total - table);
  CHECK(active_parameters(model) == active);
  CHECK(train_flops_per_token(model, 4096) == flops);
}

TEST_CASE("stored weights have the size of the published checkpoint") {
  const auto gigabytes = [](const char* name) {
    const Architecture model = load_architecture(name);
    double bytes = 0;
    for (const Module& module : modules(model)) bytes += module.count * module.bytes();
    return bytes / 1e9;
  };
  CHECK(gigabytes("gpt-oss-120b") == doctest::Approx(60.8 * 1.073741824).epsilon(0.001));  // 60.8 GiB: its model card
  CHECK(gigabytes("qwen3-235b-a22b") == doctest::Approx(2 * 235.0936).epsilon(0.0001));
  const double fp8_parameters = 671.026 - 2 * 0.92668;  // all but embedding, LM head; router and norms are 0.1
  CHECK(gigabytes("deepseek-v3") == doctest::Approx(fp8_parameters + 4 * 0.92668).epsilon(0.0005));
}

TEST_CASE("KV cache per token is as published") {
  CHECK(kv_bytes_per_token(load_architecture("deepseek-v3")) == 70'272);  // DeepSeek, arXiv 2505.09343, table 1
  CHECK(kv_bytes_per_token(load_architecture("llama-3.1-405b")) == 516'096);
}

TEST_CASE("a sliding window bounds what a sequence keeps") {
  const Architecture model = load_architecture("gpt-oss-120b");
  const double layer = 2 * 8 * 64 * 2;  // bytes per token: keys and values of 8 heads of 64, BF16
  CHECK(kv_bytes(model, 100) == 36 * 100 * layer);
  CHECK(kv_bytes(model, 1128) == 18 * (128 + 1128) * layer);
  CHECK(kv_bytes(model, 5001) - kv_bytes(model, 5000) == kv_bytes_per_token(model));
  CHECK(kv_bytes(load_architecture("deepseek-v3"), 4096) == 4096 * 70'272);
}

TEST_CASE("training compute at 4096 tokens is as published, within 3 %") {
  const std::map<std::string, double> gigaflops = {// DeepSeek, arXiv 2505.09343, table 2
                                                   {"deepseek-v3", 250},
                                                   {"deepseek-v2", 155},
                                                   {"llama-3.1-405b", 2448}};
  for (const auto& [name, published] : gigaflops) {
    MOELINE_CAPTURE_BINDING(name);
    CHECK(train_flops_per_token(load_architecture(name), 4096) / 1e9 == doctest::Approx(published).epsilon(0.03));
  }
}

TEST_CASE("attention's compute grows with the sequence, and less where a window ends") {
  Architecture model = load_architecture("gpt-oss-120b");
  const double once = train_flops_per_token(model, 1);
  const double one_key = 3 * 2 * 64 * 2 * 64;  // forward and backward, two products, 64 heads of 64
  CHECK(train_flops_per_token(model, 129) - once ==
        doctest::Approx((18 * 64 + 18 * (128 - 128 * 127 / 258.0 - 1)) * one_key));
  const double windowed = train_flops_per_token(model, 4096);
  for (Layer& layer : model.layers) layer.attention.window = 0;
  CHECK(train_flops_per_token(model, 4096) - once == doctest::Approx(36 * 4095 / 2.0 * one_key));
  CHECK(train_flops_per_token(model, 4096) > windowed);
}

}  // TEST_SUITE("architecture/parameters")
