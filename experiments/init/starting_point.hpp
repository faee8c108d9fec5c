// A commented file to begin with: of a purpose, a model and a machine, with a layout that the model fits in.
#pragma once

#include <string>
#include <vector>

namespace moeline {

/// "decode", "prefill", "serve", "train": scenarios; "plan", "training-plan"; "study".
[[nodiscard]] const std::vector<std::string>& purposes();

/// The text of the file, which runs as it stands. Its layout is the one with the fewest GPUs whose memory holds the
/// model and the work, found by simulating them in turn. `scenario`: what a study calls its scenario. Throws SpecError
/// for a model or a machine that there is not, and where no layout up to 2048 GPUs fits.
[[nodiscard]] std::string starting_point(const std::string& purpose, const std::string& model,
                                         const std::string& hardware, const std::string& scenario = "scenario.yaml");

}  // namespace moeline
