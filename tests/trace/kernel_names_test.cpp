// The table of kernel names: each row knows its own example and no other's, and names of real stacks are of the class
// that a reader of them gives.
#include "trace/kernel_names.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

#include "tests/support/data.hpp"
#include "trace/known_kernel.hpp"
#include "trace/read_trace.hpp"

TEST_SUITE("trace/kernel_names") {

using namespace moeline;
using namespace moeline::testing;

namespace {

using Rows = std::vector<const KernelNameRow*>;

std::string class_in_table(std::string_view name) {
  const KnownKernel known = known_kernel(name);
  return known.row == nullptr ? "unclassified" : name_of(known.row->kernel_class);
}

// The kernels of a trace, each name once.
std::vector<std::string> kernels_in(const std::filesystem::path& file) {
  const Trace trace = read_trace(file);
  std::set<std::string> names;
  for (const GpuEvent& event : trace.gpu_events) {
    if (event.kind == GpuEventKind::kernel) names.insert(trace.name(event));
  }
  return {names.begin(), names.end()};
}

std::vector<std::filesystem::path> real_traces() {
  std::vector<std::filesystem::path> files;
  for (const auto& each : std::filesystem::directory_iterator(data_folder() / "traces/real")) {
    if (each.path().string().ends_with(".json.gz")) files.push_back(each.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

TEST_CASE("the example of each row meets that row and no other") {
  for (const KernelNameRow& row : kernel_name_rows()) {
    CAPTURE(row.example);
    CHECK(name_rows_met(row.example) == Rows{&row});
    CHECK(class_in_table(row.example) == name_of(row.kernel_class));
  }
}

TEST_CASE("the example of each general word meets no row, and no other word") {
  for (const KernelNameRow& word : kernel_word_rows()) {
    CAPTURE(word.example);
    CHECK(name_rows_met(word.example).empty());
    CHECK(word_rows_met(word.example) == Rows{&word});
    CHECK(known_kernel(word.example).by_word);
  }
}

TEST_CASE("each row says which stack it is of and where its example is from") {
  std::set<std::string_view> patterns;
  for (const KernelNameRow& row : kernel_name_rows()) {
    CAPTURE(row.pattern);
    CHECK(patterns.insert(row.pattern).second);
    CHECK_FALSE(row.stack.empty());
    CHECK_FALSE(row.source.empty());
  }
}

TEST_CASE("what nobody has listed is told by a general word, or by nothing") {
  CHECK(known_kernel("my_gemm").by_word);
  CHECK(class_in_table("my_gemm") == "gemm");
  CHECK(known_kernel("my_kernel").row == nullptr);
  CHECK_FALSE(known_kernel("my_kernel").by_word);
}

TEST_CASE("a kernel in an anonymous namespace is the same as Kineto and as Nsight Systems spell it") {
  for (const std::string anonymous : {"(anonymous namespace)", "<unnamed>"}) {
    CAPTURE(anonymous);
    CHECK(class_in_table("void " + anonymous + "::multimem_all_reduce_kernel<c10::BFloat16, 16>(int)") == "collective");
    CHECK(class_in_table("void at::native::" + anonymous + "::CatArrayBatchedCopy_vectorized<at::native::" + anonymous +
                         "::OpaqueType<(unsigned int)2>>(char *)") == "memory");
    CHECK(class_in_table("void " + anonymous + "::dispatchKernel<10u, true>(int *)") == "dispatch");
    CHECK(class_in_table("void " + anonymous + "::f<4>(int)") == "unclassified");
  }
}

TEST_CASE("a mangled name is of the class of the name it stands for") {
  CHECK(class_in_table("_ZN8hybrid_ep9hybrid_ep15dispatch_kernelILi8EEEvi") == "dispatch");
  CHECK(class_in_table("_ZN4mori3moe25EpCombineIntraNodeKernelI12hip_bfloat16EEvi") == "combine");
  CHECK(class_in_table("_ZN2ck19kernel_moe_mxgemmIiEEvi") == "grouped_gemm");
  CHECK(class_in_table("_ZN16marlin_moe_wna166MarlinIiEEvi") == "grouped_gemm");
  CHECK(class_in_table("_ZN5flash16flash_fwd_kernelI23Flash_fwd_kernel_traitsEEv16Flash_fwd_params") == "attention");
}

TEST_CASE("an expert's product is told from a dense one by its batch, its layout or its problem") {
  const std::string bmm = "bmm_Bfloat16_Bfloat16Bfloat16_Fp32_t128x8x128u2_s5_et128x8_m128x8x16_c1x1x1";
  CHECK(class_in_table(bmm) == "gemm");
  CHECK(class_in_table(bmm + "_16dp256b_rM_BN_transOut_bN_dynB_sm100f") == "grouped_gemm");
  CHECK(class_in_table("_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1") == "grouped_gemm");
  CHECK(class_in_table("_w8a8_block_fp8_matmul") == "gemm");
  CHECK(class_in_table("void marlin_moe_wna16::Marlin<1>(int)") == "grouped_gemm");
  CHECK(class_in_table("void marlin::Marlin<1>(int)") == "gemm");
  CHECK(class_in_table("void ck::kernel_moe_gemm<1>(int)") == "grouped_gemm");
  CHECK(class_in_table("void ck::kernel_gemm_xdl_cshuffle_v3<1>(int)") == "gemm");
}

TEST_CASE("each of the names of real stacks is of the class that its reader gives it") {
  const std::filesystem::path file = data_folder() / "traces/small/k1_names.json";
  if (!present(file)) return;
  std::map<std::string, int> count;
  for (const std::string& name : kernels_in(file)) ++count[class_in_table(name)];
  // The twelve collectives are without the half of a split all-reduce that reads what the other half stored here.
  const std::map<std::string, int> expected = {{"collective", 12}, {"dispatch", 4},     {"combine", 1},
                                               {"barrier", 1},     {"grouped_gemm", 8}, {"attention", 20},
                                               {"gemm", 9},        {"memory", 19},      {"other", 2}};
  CHECK(count == expected);
}

TEST_CASE(
    "no kernel of a real trace is unknown, and none that communicates or serves experts is told by a word alone") {
  if (!present(data_folder() / "traces/real")) return;
  for (const std::filesystem::path& file : real_traces()) {
    CAPTURE(file);
    for (const std::string& name : kernels_in(file)) {
      CAPTURE(name);
      CHECK(name_rows_met(name).size() == 1);
    }
  }
}

}  // TEST_SUITE("trace/kernel_names")
