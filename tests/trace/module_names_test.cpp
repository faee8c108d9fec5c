// Annotations around modules and layers: all layers have the same phases.
#include "trace/assemble_trace.hpp"

#include <doctest/doctest.h>

TEST_SUITE("trace/module_names") {

using namespace moeline;

TEST_CASE("a layerwise marker is the module inside of its layer, without shapes and parameters") {
  CHECK(phase_of_module("{'Module': 'model.layers.3.mlp.experts', 'TrainableParams': {'w': [256, 7168]}, "
                        "'Inputs': [[32, 7168]]}") == "mlp.experts");
  CHECK(phase_of_module(
            "{'Module': 'DeepseekV3ForCausalLM.model.layers.60.self_attn.q_b_proj', 'TrainableParams': {}}") ==
        "self_attn.q_b_proj");
  CHECK(phase_of_module("{'Module': 'model.layers.3'}") == "model.layers");
  CHECK(phase_of_module("{'Module': 'model.embed_tokens', 'Inputs': [[32]]}") == "model.embed_tokens");
  CHECK(phase_of_module("{'Module': '") == "");
}

TEST_CASE("a name that ends in a layer's number is that of the layer") {
  CHECK(phase_of_module("layer_12") == "layer");
  CHECK(phase_of_module("Layer 0") == "Layer");
  CHECK(phase_of_module("backward of decoder_layer #7") == "backward of decoder_layer");
  CHECK(phase_of_module("layers.7.mlp") == "mlp");
}

TEST_CASE("layers of several stacks stay apart") {
  CHECK(phase_of_module("encoder.layers.3.mlp") == "encoder.mlp");
  CHECK(phase_of_module("{'Module': 'visual.layers.3.mlp'}") == "visual.mlp");
  CHECK(phase_of_module("{'Module': 'language_model.model.layers.3.mlp'}") == "mlp");
}

TEST_CASE("any other name stays") {
  for (const char* name : {"mlp", "attn-1", "player 3", "step[DECODE bs=32]", "layer", "layers of 3 kinds",
                           "num_layers=61", "ProfilerStep#3", "nccl:all_to_all", "chunk 2", ""}) {
    CHECK(phase_of_module(name) == name);
  }
}

}  // TEST_SUITE("trace/module_names")
