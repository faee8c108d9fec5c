// What a part of a model holds: a stage of a pipeline, by its blocks.
#pragma once

#include <span>
#include <vector>

#include "architecture/blocks.hpp"
#include "architecture/parameters.hpp"

namespace moeline {

/// Modules of the model, as many of each as these blocks have; of an mtp block its projection. Tables are counted once
/// however many blocks need them, and a tied LM head is the embedding's.
[[nodiscard]] std::vector<Module> modules_of(const Architecture& model, std::span<const BlockKind> blocks);

}  // namespace moeline
