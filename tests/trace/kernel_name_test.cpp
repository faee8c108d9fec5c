// The function in a kernel's name, as demanglers write the names of the libraries that models run on.
#include "trace/kernel_class.hpp"

#include <doctest/doctest.h>

#include <string>

TEST_SUITE("trace/kernel_name") {

using namespace moeline;

TEST_CASE("a name's subject is what stands in front of its arguments, without wrappers") {
  CHECK(subject_of("void cutlass::device_kernel<flash::FlashAttnBwd<int>>(int)") == "flash::FlashAttnBwd");
  CHECK(subject_of("void cutlass::device_kernel<a::b::GemmKernel>(a::Params)") == "a::b::GemmKernel");
  CHECK(subject_of("void cutlass::Kernel2<cutlass_80_gemm_tn>(Params)") == "cutlass_80_gemm_tn");
  CHECK(subject_of("void cutlass::Kernel<cutlass_75_gemm_tn>(Params)") == "cutlass_75_gemm_tn");
  CHECK(subject_of("void at::native::(anonymous namespace)::kernel<4>(int)") ==
        "at::native::(anonymous namespace)::kernel");
  CHECK(subject_of("void (anonymous namespace)::kernel(int)") == "(anonymous namespace)::kernel");
  CHECK(subject_of("void at::native::<unnamed>::kernel<(int)4, at::native::<unnamed>::F>(T1)") ==
        "at::native::<unnamed>::kernel");
  CHECK(subject_of("int <unnamed>::kernel(int)") == "<unnamed>::kernel");
  CHECK(subject_of("<unnamed>::kernel<<unnamed>::F>") == "<unnamed>::kernel");
  CHECK(subject_of("rotary_kernel") == "rotary_kernel");
  CHECK(subject_of("attn_fwd.kd") == "attn_fwd");
  CHECK(subject_of("").empty());
}

TEST_CASE("what a kernel returns is not its name, however the type is written") {
  const std::string gemv =
      "std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, __nv_bfloat16, __nv_bfloat16, "
      "__nv_bfloat16, float, false, true, true, false, 7, false, cublasGemvParamsEx<int, "
      "cublasGemvTensorStridedBatched<__nv_bfloat16 const>, cublasGemvTensorStridedBatched<__nv_bfloat16>, float> "
      ">(cublasGemvParamsEx<int, cublasGemvTensorStridedBatched<__nv_bfloat16 const>, float>)";
  CHECK(subject_of(gemv) == "internal::gemvx::kernel");
  CHECK(KernelClassifier().of_kernel(gemv) == KernelClass::gemm);
  CHECK(subject_of("typename std::enable_if<(sizeof(T) > 2) && std::is_same_v<A<B>, C>, void>::type "
                   "cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<int, 4> >(P)") ==
        "cutlass::gemm::kernel::GemmUniversal");
  CHECK(subject_of("std::enable_if<(1 >= 0), std::pair<int, void (*)(int)> >::type f::g<2>(int)") == "f::g");
  CHECK(subject_of("decltype(auto) cub::DeviceScanKernel<Policy, int*>(int*)") == "cub::DeviceScanKernel");
  CHECK(subject_of("unsigned int flash::get_block<128>(unsigned int)") == "flash::get_block");
  CHECK(subject_of("void flash::fwd<decltype(f()->g)>(flash::Params)") == "flash::fwd");
}

TEST_CASE("blanks inside template arguments, parameters and lambdas do not begin a name") {
  CHECK(
      subject_of("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctorOnSelf_add<c10::BFloat16>, "
                 "std::array<char*, 2ul> >(int, at::native::CUDAFunctorOnSelf_add<c10::BFloat16>, std::array<char*, "
                 "2ul>)") == "at::native::vectorized_elementwise_kernel");
  CHECK(subject_of(
            "void (anonymous namespace)::elementwise_kernel_with_index<int, at::native::arange_cuda_out("
            "c10::Scalar const&, at::Tensor&)::{lambda()#1}::operator()() const::{lambda(long)#1}>(int, "
            "at::native::arange_cuda_out(c10::Scalar const&)::{lambda()#1}::operator()() const::{lambda(long)#1}, "
            "function_traits<int (*)(long)>::result_type*)") == "(anonymous namespace)::elementwise_kernel_with_index");
  CHECK(subject_of("void vllm::act_and_mul_kernel<c10::BFloat16, &(c10::BFloat16 vllm::silu_kernel<c10::BFloat16>("
                   "c10::BFloat16 const&)), true>(c10::BFloat16*, c10::BFloat16 const*, int)") ==
        "vllm::act_and_mul_kernel");
  CHECK(subject_of("void cub::CUB_200101_900_NS::DeviceRadixSortOnesweepKernel<cub::Policy900, true, float, long, "
                   "unsigned long long, int, int, identity_decomposer_t>(unsigned long long*, int const*)") ==
        "cub::CUB_200101_900_NS::DeviceRadixSortOnesweepKernel");
  CHECK(subject_of("void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 64, 64, 4, false, cutlass::bfloat16_t>, false, "
                   "true>(Flash_fwd_params)") == "flash_fwd_kernel");
}

TEST_CASE("names that are no functions of C++ stay whole") {
  for (const char* name : {"triton_poi_fused__to_copy_add_mul_3", "_per_token_group_quant_8bit", "dispatch on the wire",
                           "nvjet_tst_128x64_64x8_2x1_v_bz_TNT", "shared gate_up GEMM"}) {
    CHECK(subject_of(name) == name);
  }
  CHECK(subject_of("Memcpy DtoD (Device -> Device)") == "Memcpy DtoD");
  CHECK(subject_of("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)") ==
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL");
}

TEST_CASE("names that break off or never close their brackets have a subject too") {
  CHECK(subject_of("std::enable_if<true, void>::type internal::gemvx::kernel<int, int, cublasGemvPar") ==
        "internal::gemvx::kernel");
  CHECK(subject_of("void f<" + std::string(200'000, '<')) == "f");
  CHECK(subject_of("void <").empty());
  CHECK(subject_of("f<a>>>)) g") == "f");
}

}  // TEST_SUITE("trace/kernel_name")
