// The configurations of 93 published models, unchanged: each loads with the parameters that its card gives.
#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "architecture/checkpoint_format.hpp"
#include "architecture/parameters.hpp"
#include "tests/support/data.hpp"
#include "tests/support/inference.hpp"
#include "tests/support/model_configs.hpp"
#include "tests/support/published_configs.hpp"

TEST_SUITE("architecture/published_configs") {

using namespace moeline;
using namespace moeline::testing;

namespace {

std::filesystem::path configs() { return data_folder() / "configs"; }

double stored_gb(const Architecture& model) {
  double bytes = 0;
  for (const Module& module : modules(model)) bytes += module.count * module.bytes();
  return bytes / 1e9;
}

double gb(const std::string& folder) { return stored_gb(load_architecture(configs() / folder)); }

}  // namespace

TEST_CASE("93 published configurations load with the parameters that their cards give, within 1 %") {
  if (!present(configs())) return;
  std::set<std::string> folders;
  for (const PublishedConfig& each : published_configs()) {
    CAPTURE(each.folder);
    CHECK(folders.insert(each.folder).second);
    const double error = parameters(load_architecture(configs() / each.folder)) / 1e9 / each.parameters - 1;
    CAPTURE(error);
    const double digits = each.parameters < 10 ? 0.02 : 0.0105;  // cards of small models round to two
    CHECK(std::abs(error) < (each.exception.empty() ? digits : 0.02));
  }
  CHECK(folders.size() == 93);
  for (const auto& entry : std::filesystem::directory_iterator(configs())) {
    if (entry.is_directory()) CHECK(folders.contains(entry.path().filename()));
  }
}

TEST_CASE("checkpoints of one model in other formats have other sizes and the same parameters") {
  if (!present(configs())) return;
  CHECK(gb("Qwen--Qwen3-235B-A22B") == doctest::Approx(2 * 235.09).epsilon(0.001));
  CHECK(gb("Qwen--Qwen3-235B-A22B-FP8") == doctest::Approx(235.09 + 1.3).epsilon(0.001));
  CHECK(gb("nvidia--Qwen3-235B-A22B-NVFP4") == doctest::Approx(235.09 * 4.5 / 8 + 1.8).epsilon(0.005));
}

TEST_CASE("a quantizer's list of modules that stay in BF16 is followed matrix by matrix") {
  if (!present(configs())) return;
  // Query and key-value projections stay, the output projection does not: 117.4 of 187.1 million parameters.
  const Architecture deepseek = load_architecture(configs() / "nvidia--DeepSeek-V3.1-NVFP4");
  const double output = 128.0 * 128 * 7168;
  const double all = 7168 * 1536.0 + 1536 * 128.0 * 192 + 7168 * 576.0 + 512 * 128.0 * 256 + output;
  const auto attention = [&](bool mtp, Precision type) {
    double share = 0;
    for (const StoredWeights& part : deepseek.stored) {
      if (part.module == kAttention && part.mtp == mtp && part.type == type) share += part.share;
    }
    return share;
  };
  CHECK(attention(false, Precision::nvfp4) == doctest::Approx(output / all));
  CHECK(attention(false, Precision::bf16) == doctest::Approx(1 - output / all));
  CHECK(attention(true, Precision::bf16) == 1);  // "model.layers.61*"
  CHECK(deepseek.expert_weights == Precision::nvfp4);
  CHECK(deepseek.kv_cache == Precision::fp8);
  const Architecture kimi = load_architecture(configs() / "moonshotai--Kimi-K2.5");
  CHECK(kimi.weights == Precision::bf16);  // by regular expressions
  CHECK(kimi.expert_weights == Precision::int4);
  CHECK(load_architecture(configs() / "nvidia--MiniMax-M2.5-NVFP4").weights == Precision::bf16);
  CHECK(load_architecture(configs() / "nvidia--Llama-3.1-70B-Instruct-FP8").weights == Precision::fp8_static);
}

TEST_CASE("attention may keep all but its output projection in BF16, and each is priced in its own format") {
  if (!present(configs())) return;
  const Architecture model = load_architecture(configs() / "nvidia--DeepSeek-V3.1-NVFP4");
  CHECK(model.layer(10).formats.attention_out == Precision::nvfp4);
  CHECK(model.layer(10).formats.attention_in == Precision::bf16);
  const std::string folder = configs() / "nvidia--DeepSeek-V3.1-NVFP4";
  const InferenceWork work = load_setup(served_scenario(), {"model=" + folder}).inference_work({0, 1});
  std::set<std::string> casts;  // that come before a GEMM below BF16
  for (const Operator& op : inference_phase("attn", work, layer_of(work.model, 10))) {
    if (op.name.starts_with("cast input of")) casts.insert(op.name);
  }
  CHECK(casts == std::set<std::string>{"cast input of W_O"});
}

TEST_CASE("layers that are stored in different formats are priced in their own") {
  if (!present(configs())) return;
  const TemporaryFolder folder;
  const std::filesystem::path published = configs() / "nvidia--DeepSeek-V3.1-NVFP4";
  folder.write("config.json", content_of(published / "config.json"));
  folder.write("hf_quant_config.json",  // the output projection of one layer stays, too
               replaced(content_of(published / "hf_quant_config.json"), "\"lm_head\"",
                        "\"lm_head\", \"model.layers.5.self_attn.o_proj\""));
  const Architecture model = load_architecture(folder.path());
  CHECK(model.layer(5).formats.attention_out == Precision::bf16);
  CHECK(model.layer(6).formats.attention_out == Precision::nvfp4);
  CHECK_FALSE(are_alike(layer_of(model, 5), layer_of(model, 6)));
  const Outcome counted = run_moeline({"model", folder.path()});
  CHECK(counted.out.find("bf16+nvfp4") != std::string::npos);
}

}  // TEST_SUITE("architecture/published_configs")
