// moeline list hardware: a whole profile as a person reads it.
#include <fmt/format.h>

#include "hardware/profile.hpp"
#include "tests/support/capture.hpp"
#include "tests/support/cli.hpp"
#include "tests/support/data.hpp"

TEST_SUITE("cli/list_hardware") {

using namespace moeline;
using namespace moeline::testing;

namespace {

// Without the line breaks of a long text.
std::string unfolded(std::string text) {
  for (std::size_t at = text.find("\n  "); at != std::string::npos; at = text.find("\n  ", at + 1))
    text.replace(at, 3, " ");
  return text;
}

}  // namespace

TEST_CASE("list hardware names every fact with its source, every family of every set, and whose it is") {
  for (const char* name : {"h800", "h100"}) {
    const Outcome outcome = run_moeline({"list", "hardware", name});
    REQUIRE(outcome.exit_code == 0);
    const HardwareProfile profile = load_profile(name);
    for (const auto& [fact, source] : profile.sources) {
      const std::size_t at = outcome.out.find("\n" + fact + " ");
      REQUIRE(at != std::string::npos);
      CHECK(outcome.out.substr(at + 1, outcome.out.find('\n', at + 1) - at).ends_with("  " + source + "\n"));
    }
    for (const KernelSet& set : profile.kernel_sets) {
      const std::size_t begin = outcome.out.find("\nkernel set " + set.name + " (" + set.date + ")");
      REQUIRE(begin != std::string::npos);
      const std::string text = outcome.out.substr(begin, outcome.out.find("\nkernel set ", begin + 1) - begin);
      CHECK(unfolded(text).find(set.source) != std::string::npos);
      if (set.known_constants() > 0) {
        CHECK(text.find(fmt::format("{} constants: ", set.known_constants())) != std::string::npos);
      } else {
        CHECK(text.find(fmt::format("{} families, each with a form", set.fits.size())) != std::string::npos);
      }
      for (const auto& [family, fit] : profile.kernels(set.name).fits) {
        MOELINE_CAPTURE_BINDING(family);
        const std::size_t at = text.find("\n  " + family + " ", text.find("\n  family "));
        REQUIRE(at != std::string::npos);
        const std::string row = text.substr(at, text.find('\n', at + 1) - at);
        CHECK(row.find(fit.kernel_set == set.name ? " own " : " " + fit.kernel_set + " ") != std::string::npos);
      }
    }
  }
}

TEST_CASE("list hardware names the families that nobody measured, and on what machine the rest was") {
  const std::string h800 = run_moeline({"list", "hardware", "h800"}).out;
  CHECK(h800.find("by gemm_fp8's curve at the format's own peak: gemm_fp8_tensor, gemm_bf16, gemm_bf16_grouped, "
                  "gemm_bf16_batched\n") != std::string::npos);
  CHECK(
      h800.find("known to nobody, priced by roofline: sparse_attention, index_scores, state_scan, state_update, send, "
                "reduce_scatter, all_gather, all_reduce, "
                "all_to_all, nvlink_prepare, nvlink_dispatch, nvlink_combine\n") != std::string::npos);
  const std::string h100 = run_moeline({"list", "hardware", "h100"}).out;
  CHECK(h100.find("carried over from h800: open-2025-late, fitted on a machine with bf16_tflops 989.5 (here 989), "
                  "nvlink_GBps 160 (here 450)\n") != std::string::npos);

  const std::string h20 = run_moeline({"list", "hardware", "h20"}).out;  // nothing of its own
  CHECK(h20.find("\nkernel set open-2025-late (2025-late), timed at burst clock, fitted on a machine with") !=
        std::string::npos);
  CHECK(h20.find("  gemm_fp8                   h800: open-2025-late ") != std::string::npos);
  CHECK(h20.find("carried over from h800: open-2025-late, fitted") != std::string::npos);
  CHECK(h20.find("carried over from h100: open-2025-late, fitted") != std::string::npos);
  CHECK(h20.find(" own  ") == std::string::npos);

  const TemporaryFolder folder;  // an H100 that borrows nothing
  const std::string alone = replaced(content_of(source("hwprofiles/h100.yaml")), "carried_over_from: h800", "");
  const std::string bare = run_moeline({"list", "hardware", folder.write("alone.yaml", alone)}).out;
  CHECK(bare.find("roofline: gemm_fp8_wgrad, sparse_attention, index_scores, state_scan,") != std::string::npos);
}

TEST_CASE("a family whose range is another set's than its constants says so") {
  // A set that knows FP8 GEMMs by dense ones alone: grouped ones are priced by its constants, within a borrowed range.
  HardwareProfile profile = load_profile("h800");
  KernelSet& late = profile.kernel_sets.back();
  late.fits.erase("gemm_fp8_grouped");
  const TemporaryFolder folder;
  const std::string file = folder.write("dense.yaml", to_yaml(profile));
  const std::string listed = run_moeline({"list", "hardware", file}).out;
  CHECK(listed.find("gemm_fp8_grouped     open-2025-05, constants of open-2025-late ") != std::string::npos);
  CHECK(listed.find("gemm_fp8             own ") != std::string::npos);
  const Outcome priced = run_moeline({"price", file, "grouped_gemm:groups=4,m=8192,n=4096,k=7168"});
  CHECK(priced.out.find("constants of open-2025-late") != std::string::npos);
  CHECK(priced.out.find("extrapolated") != std::string::npos);
}

}  // TEST_SUITE("cli/list_hardware")
