// Annotations around the modules and layers of a model, as the servers' layerwise markers of NVTX make them.
#pragma once

#include <string>
#include <string_view>

namespace moeline {

/// The phase that an annotation is, without the number of its layer, so that all layers have it alike: "mlp.experts" of
/// "{'Module': 'model.layers.3.mlp.experts', 'TrainableParams': {...}, 'Inputs': [[32, 7168]]}" (SGLang, TensorRT-LLM,
/// vLLM) and of "layers.3.mlp.experts", "decoder.mlp" of "decoder.layers.3.mlp", "layer" of "layer_3". Any other name
/// as it is.
[[nodiscard]] std::string phase_of_module(std::string_view annotation);

}  // namespace moeline
