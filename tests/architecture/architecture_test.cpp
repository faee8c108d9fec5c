// Our own model descriptions: short, strict, and all of them load.
#include "architecture/architecture.hpp"

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "base/file.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/data.hpp"

TEST_SUITE("architecture/architecture") {

using namespace moeline;
using namespace moeline::testing;

namespace {

std::string refusal(const std::string& zoo_name, const std::string& from, const std::string& to) {
  const TemporaryFolder folder;
  const std::string text = content_of(source("model/zoo/" + zoo_name + ".yaml"));
  const std::string file = folder.write("model.yaml", replaced(text, from, to));
  try {
    (void)load_architecture(file);
  } catch (const SpecError& error) {
    return std::string(error.what()).substr(file.size());
  }
  return "";
}

}  // namespace

TEST_CASE("every model of the zoo loads under its name") {
  const std::vector<std::string> names = names_in("model/zoo");
  CHECK(names.size() >= 8);
  for (const std::string& name : names) CHECK(load_architecture(name).name == name);
}

TEST_CASE("MLA is where there is a latent rank, GQA elsewhere") {
  for (const char* name : {"deepseek-v2", "deepseek-v3", "kimi-k2"}) {
    const Architecture model = load_architecture(name);
    CHECK(model.is_mla());
    CHECK(model.layers.front().attention.kind == AttentionKind::mla);
  }
  for (const char* name : {"glm-4.5", "gpt-oss-120b", "llama-3.1-405b", "mixtral-8x7b", "qwen3-235b-a22b"}) {
    const Architecture model = load_architecture(name);
    CHECK_FALSE(model.is_mla());
    CHECK(model.layers.front().attention.kind == AttentionKind::gqa);
  }
}

TEST_CASE("families bring what their configuration does not say") {
  const Architecture qwen = load_architecture("qwen3-235b-a22b");
  CHECK(qwen.qk_norm == QkNorm::per_head);
  CHECK_FALSE(qwen.attention_bias);
  const Architecture glm = load_architecture("glm-4.5");
  CHECK(glm.qk_norm == QkNorm::per_head);
  CHECK(glm.attention_bias);
  CHECK_FALSE(glm.output_bias);
  CHECK(glm.router_bias);
  const Architecture gpt = load_architecture("gpt-oss-120b");
  CHECK(gpt.layers.front().attention.sinks);
  CHECK(gpt.expert_bias);
  CHECK(gpt.router_bias);
  CHECK(gpt.output_bias);
  CHECK(gpt.layer(0).attention.window == 128);
  CHECK(gpt.layer(1).attention.window == 0);
  CHECK(load_architecture("deepseek-v3").router_bias);
  CHECK_FALSE(load_architecture("deepseek-v2").router_bias);
}

TEST_CASE("a dense model has no experts and no MoE layers") {
  const Architecture model = load_architecture("llama-3.1-405b");
  CHECK(model.n_routed_experts == 0);
  CHECK(model.moe_layers() == 0);
  CHECK(model.intermediate_size == 53248);
}

TEST_CASE("our YAML is strict: every key is one we read, with the nearest name") {
  CHECK(refusal("qwen3-235b-a22b", "num_experts:", "num_expert:") ==
        ":7: unknown key 'num_expert'; did you mean 'num_experts'?");
  CHECK(refusal("deepseek-v3", "tie_word_embeddings", "ep_size: 1\ntie_word_embeddings")
            .starts_with(":22: unknown key 'ep_size'"));
  CHECK(refusal("deepseek-v3", "quant_method: fp8", "quant_methods: fp8") ==
        ":23: unknown key 'quantization_config.quant_methods'; did you mean 'quantization_config.quant_method'?");
  CHECK(refusal("mixtral-8x7b", "model_type: mixtral\n", "") == ":2: model_type is missing");
  CHECK(refusal("mixtral-8x7b", "model_type: mixtral", "model_type: mixtrel") ==
        ":2: not modelled: unknown model_type 'mixtrel'; did you mean 'mixtral'?");
  CHECK(refusal("glm-4.5", "use_qk_norm: true", "use_qk_norm: yes") ==
        ":17: use_qk_norm must be true or false, not 'yes'");
}

TEST_CASE("what is no model is refused with the nearest name, or as a missing file") {
  const auto message = [](const std::string& reference) -> std::string {
    try {
      (void)load_architecture(reference);
    } catch (const SpecError& error) {
      return error.what();
    }
    return "";
  };
  CHECK(message("kimi-k4") == "unknown model 'kimi-k4'; did you mean 'kimi-k2'?");
  CHECK(message("absent/config.json") == "unknown model 'absent/config.json': no such file");
  const TemporaryFolder folder;
  CHECK(message(folder.path()) == folder / "config.json: no such file");
}

}  // TEST_SUITE("architecture/architecture")
