// In which formats a checkpoint stores its weights, by the words of every quantizer.
#include "architecture/checkpoint_format.hpp"

#include <doctest/doctest.h>

#include "architecture/parameters.hpp"
#include "tests/support/capture.hpp"
#include "tests/support/model_configs.hpp"

TEST_SUITE("architecture/checkpoint_format") {

using namespace moeline;
using namespace moeline::testing;

namespace {

std::string quantized(const std::string& quantization) {
  return with(kPlainLatent, "\"quantization_config\": " + quantization);
}

std::string groups(const std::string& weights, const std::string& more = "") {
  return R"({"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": )" + weights + "}}" + more +
         "}";
}

/// Bytes per parameter of the matrices of one kind of module.
double bytes(const Architecture& model, const std::string& name) {
  for (const Module& module : modules(model)) {
    if (module.name == name) return (module.bytes() - 2 * module.vectors) / module.matrices;
  }
  return 0;
}

/// The plain model in a folder with ModelOpt's file beside it.
Architecture beside(const std::string& config, const std::string& modelopt) {
  const TemporaryFolder folder;
  folder.write("hf_quant_config.json", modelopt);
  return load_architecture(folder.write("config.json", config));
}

}  // namespace

TEST_CASE("every quantizer's words mean a format, with the bytes of its scales") {
  const std::vector<std::tuple<std::string, Precision, double>> cases = {
      {R"({"quant_method": "fp8", "weight_block_size": [128, 128]})", Precision::fp8, 1 + 4.0 / 16384},
      {R"({"quant_method": "fp8"})", Precision::fp8_tensor, 1},
      {R"({"quant_method": "fp8", "activation_scheme": "static"})", Precision::fp8_static, 1},
      {R"({"quant_method": "fbgemm_fp8"})", Precision::fp8_tensor, 1},
      {R"({"quant_method": "gptq", "bits": 4, "group_size": 128})", Precision::int4, (4 + 20.0 / 128) / 8},
      {R"({"quant_method": "awq", "w_bit": 4, "group_size": 64})", Precision::int4, (4 + 20.0 / 64) / 8},
      {R"({"quant_algo": "FP8"})", Precision::fp8_static, 1},
      {R"({"quant_algo": "FP8_PER_CHANNEL_PER_TOKEN"})", Precision::fp8_tensor, 1},
      {R"({"quant_method": "modelopt", "quant_algo": "NVFP4"})", Precision::nvfp4, 4.5 / 8},
      {groups(R"({"num_bits": 8, "type": "float", "strategy": "channel"})"), Precision::fp8_tensor, 1},
      {groups(R"({"num_bits": 8, "type": "float", "strategy": "block"})"), Precision::fp8, 1 + 4.0 / 16384},
      {groups(R"({"num_bits": 4, "type": "float", "group_size": 16})"), Precision::nvfp4, 4.5 / 8},
      {groups(R"({"num_bits": 4, "type": "float", "group_size": 32})"), Precision::mxfp4, 4.25 / 8},
      {groups(R"({"num_bits": 4, "type": "int", "group_size": 32})"), Precision::int4, 4.5 / 8}};
  for (const auto& [quantization, type, expected] : cases) {
    MOELINE_CAPTURE_BINDING(quantization);
    const Architecture model = load_config(quantized(quantization));
    CHECK(model.weights == type);
    CHECK(model.expert_weights == (type == Precision::fp8_static ? Precision::fp8_tensor : type));
    for (const char* module : {kAttention, kDenseFfn, kRoutedExperts, kSharedExperts}) {
      CHECK(bytes(model, module) == doctest::Approx(expected));
    }
    CHECK(bytes(model, "router") == 2);
    CHECK(bytes(model, "LM head") == 2);
  }
}

TEST_CASE("MXFP4 of gpt-oss is of the experts alone") {
  const Architecture model = load_config(quantized(R"({"quant_method": "mxfp4"})"));
  CHECK(model.expert_weights == Precision::mxfp4);
  CHECK(bytes(model, kRoutedExperts) == doctest::Approx(4.25 / 8));
  CHECK(bytes(model, kSharedExperts) == 2);
  CHECK(bytes(model, kAttention) == 2);
}

TEST_CASE("what is not known is refused at its key") {
  CHECK(config_refusal(quantized(R"({"quant_method": "bitsandbytes"})")) ==
        ":1: not modelled: weights of bitsandbytes (quant_method)");
  CHECK(config_refusal(quantized(groups(R"({"num_bits": 8, "type": "int"})"))) ==
        ":1: not modelled: weights of 8 bits, type int (num_bits)");
  CHECK(config_refusal(quantized(R"({"quant_method": "gptq", "bits": 3, "group_size": 128})")) ==
        ":1: not modelled: integers of 3 bits (bits)");
  CHECK(config_refusal(quantized(R"({"activation_scheme": "dynamic"})")) ==
        ":1: quantization_config.quant_method is not there to say which");
  CHECK(config_refusal(quantized(R"({"quant_method": "fp8", "weight_block_size": [64, 64]})"))
            .find("must be [128, 128]") != std::string::npos);
  CHECK(config_refusal(quantized(groups(R"({"num_bits": 4, "type": "int"})", R"(, "ignore": ["re:("])")))
            .find("which is no regular expression") != std::string::npos);
}

TEST_CASE("ModelOpt's file beside config.json counts, and must not say something else") {
  const std::string modelopt = R"({"quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8",
    "group_size": 16, "exclude_modules": ["lm_head", "model.layers.*.self_attn*"]}})";
  const Architecture model = beside(kPlainLatent, modelopt);
  CHECK(model.weights == Precision::nvfp4);  // the dense layer and shared experts outweigh attention
  CHECK(model.expert_weights == Precision::nvfp4);
  CHECK(model.kv_cache == Precision::fp8);
  CHECK(bytes(model, kAttention) == 2);
  CHECK(bytes(model, kSharedExperts) == doctest::Approx(4.5 / 8));
  const std::string no_cache_format = R"({"quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": null}})";
  CHECK(beside(kPlainLatent, no_cache_format).kv_cache == Precision::bf16);
  CHECK_THROWS_WITH_AS(beside(quantized(R"({"quant_method": "fp8"})"), modelopt),
                       doctest::Contains("hf_quant_config.json:1: quantization.quant_algo is another format"),
                       SpecError);
}

TEST_CASE("patterns mean modules by name, around them, by a part of the path, by glob and by regular expression") {
  const std::string name = "layers.3.mlp.shared_experts.gate_proj";
  for (const char* meant :
       {"model.layers.3.mlp.shared_experts.gate_proj", "model.layers.3", "layers.3.mlp", "shared_experts",
        "language_model.model.layers.3.mlp*", "*.shared_experts.*", "*.mlp.shared_experts*", "model.layers.*.mlp",
        "re:.*shared_experts.*", "re:model\\.layers\\.3\\.", "re:.*mlp\\.shared_experts\\.(gate|up)_proj"}) {
    CHECK_MESSAGE(NamePatterns({meant}).match(name), meant);
  }
  for (const char* other : {"gate", "lm_head", "model.layers.30", "model.layers.3.self_attn*", "layers.3.mlp.shared",
                            "*.experts.*", "re:shared_experts", "re:.*mlp\\.gate_proj", "model.layers.[012].mlp"}) {
    CHECK_MESSAGE(!NamePatterns({other}).match(name), other);
  }
}

}  // TEST_SUITE("architecture/checkpoint_format")
