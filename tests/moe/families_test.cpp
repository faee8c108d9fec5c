// The table of kernel families.
#include "moe/families.hpp"

#include <doctest/doctest.h>

#include <set>

#include "trace/kernel_class.hpp"

TEST_SUITE("moe/families") {

using namespace moeline;

TEST_CASE("the row of a family is its own, and no two families share a name") {
  std::set<std::string> names;
  for (int i = 0; i < kFamilies; ++i) {
    const auto family = static_cast<Family>(i);
    CHECK(row_of(family).family == family);
    CHECK(family_named(name_of(family)) == family);
    CHECK_MESSAGE(names.insert(name_of(family)).second, name_of(family));
  }
  CHECK_FALSE(family_named("gemm_fp9"));
}

TEST_CASE("every family counts as a class that a trace's kernels can have, too") {
  for (int i = 0; i < kFamilies; ++i) {
    const FamilyRow& row = row_of(static_cast<Family>(i));
    CHECK_MESSAGE(class_named(row.task_class), row.name);
  }
}

TEST_CASE("a GEMM of weights without tensor cores of their own is a BF16 GEMM") {
  for (const GemmLayout layout : {GemmLayout::dense, GemmLayout::contiguous, GemmLayout::masked}) {
    CHECK(row_of(gemm_family(layout, Precision::fp8)).precision == Precision::fp8);
    for (const Precision unpacked : {Precision::bf16, Precision::mxfp4, Precision::nvfp4, Precision::int4}) {
      CHECK(gemm_family(layout, unpacked) == gemm_family(layout, Precision::bf16));
    }
  }
}

TEST_CASE("formats have the bytes that their definitions give") {
  CHECK(name_of(Precision::nvfp4) == "nvfp4");
  CHECK(precision_named("int4") == Precision::int4);
  CHECK(bytes_per_weight(Precision::mxfp4) == 4.25 / 8);
  CHECK(bytes_per_weight(Precision::nvfp4) == 4.5 / 8);
  CHECK(bytes_per_weight(Precision::fp8) == 1 + 4.0 / (128 * 128));
  CHECK(activation_bytes(Precision::fp8) == 1 + 4.0 / 128);
  CHECK(activation_bytes(Precision::bf16) == number_bytes(Precision::bf16));
}

}  // TEST_SUITE("moe/families")
