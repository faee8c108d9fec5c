// What kind of work a kernel does, by its name: names as profilers print them for the libraries that MoE models run on.
#include "trace/kernel_class.hpp"

#include <doctest/doctest.h>

#include "tests/support/data.hpp"
#include "trace/interpret.hpp"

TEST_SUITE("trace/kernel_class") {

using namespace moeline;
using namespace moeline::testing;

namespace {

std::string class_of(const std::string& name) {
  static const KernelClassifier classify;
  return name_of(classify.of_kernel(name));
}

void check_all(const std::string& expected, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    CAPTURE(name);
    CHECK(class_of(name) == expected);
  }
}

}  // namespace

TEST_CASE("DeepEP's dispatch and combine are transfers, in all three variants and under its older name") {
  check_all("dispatch", {
                            "void deep_ep::internode::dispatch<false, 4, true, 8>(int4*, float*, long*, float*)",
                            "void deep_ep::intranode::dispatch<8, 768, 8192>(int4*, float*, int*, long*)",
                            "void deep_ep::internode_ll::dispatch<true, false, 7168>(void*, void*, int*)",
                            "void dpsk::ep::internode::dispatch<false, 8, true, 8>(int4*, float*, long*)",
                        });
  check_all("combine", {
                           "void deep_ep::internode::combine<false, 8, __nv_bfloat16, 8, 2, 16, 24>(int4*, float*)",
                           "void deep_ep::intranode::combine<__nv_bfloat16, 8, 768, 4096>(__nv_bfloat16*, float*)",
                           "void deep_ep::internode_ll::combine<false, 7168, 11>(void*, void*, int*)",
                           "void dpsk::ep::internode::combine<false, 8, __nv_bfloat16, 8, 2, 16, 24>(int4*)",
                       });
}

TEST_CASE(
    "of its second version transfers are transfers, epilogues pass over memory, and a message between stages is one") {
  check_all("dispatch", {
                            "void deep_ep::elastic::dispatch_impl<true, false, 12, 16, 7168>(void*, void*, int*)",
                            "void deep_ep::elastic::hybrid_dispatch_impl<false, 6, 2, 8, 7168>(void*, void*, int*)",
                            "void a2a_dispatch_send_kernel<true, 16, 8>(unsigned long, unsigned long)",
                            "void a2a_dispatch_recv_kernel<16, 8>(unsigned long, unsigned long)",
                        });
  check_all("combine", {
                           "void deep_ep::elastic::combine_impl<12, 16, 7168>(void*, void*, int*)",
                           "void deep_ep::elastic::hybrid_combine_impl<6, 2, 8, 7168>(void*, void*, int*)",
                           "void a2a_combine_recv_kernel<16, 8>(unsigned long, unsigned long)",
                       });
  check_all("memory", {
                          "void deep_ep::elastic::dispatch_copy_epilogue_impl<true, 7168>(void*, void*, int*)",
                          "void deep_ep::elastic::combine_reduce_epilogue_impl<7168>(void*, void*, int*)",
                      });
  check_all("collective", {"deep_ep::elastic::pp_send"});
}

TEST_CASE("DeepEP's notify kernels are barriers, and its layout kernel is no communication") {
  check_all("barrier", {
                           "void deep_ep::internode::notify_dispatch<false, 8>(int const*, int*, int)",
                           "void deep_ep::internode::cached_notify<false>(int, int, int, int, int*)",
                           "void deep_ep::intranode::notify_dispatch<8>(int const*, int*)",
                           "void deep_ep::intranode::cached_notify_dispatch<8>(int const*, int)",
                           "void deep_ep::intranode::cached_notify_combine<8>(void**, int*)",
                           "void deep_ep::intranode::barrier<8>(int**, int)",
                           "void deep_ep::internode_ll::clean_low_latency_buffer<256>(long*, int, long*, int)",
                           "void dpsk::ep::internode::notify_dispatch<false, 8>(int const*, long*, int)",
                       });
  check_all("other", {
                         "void deep_ep::layout::get_dispatch_layout<256, 32, 8>(long const*, int*, int*)",
                         "void deep_ep::internode::get_dispatch_layout<256, 32, 8>(long const*, int*, int*)",
                         "void dpsk::ep::cuda::get_dispatch_layout<256, 32, 8>(long const*, int*, int*, int*)",
                     });
  CHECK_FALSE(is_communication(KernelClass::other));
  CHECK(is_communication(KernelClass::barrier));
  CHECK_FALSE(is_transfer(KernelClass::barrier));
}

TEST_CASE("pplx's kernels, which have no namespace, are transfers") {
  check_all("dispatch", {"void (anonymous namespace)::dispatchKernel<10u, true, false>(int*, unsigned long)",
                         "void dispatchKernel<10u, true, true>(int*, unsigned long)"});
  check_all("combine", {"void combineKernel<__nv_bfloat16, __nv_bfloat16, 8ul, true, false>(__nv_bfloat16*)"});
}

TEST_CASE("NCCL, NVSHMEM and all-reduce kernels are collectives") {
  check_all("collective", {
                              "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
                              "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
                              "ncclKernel_AllGather_RING_LL_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)",
                              "ncclSymDevKernel_AllReduce_RSxLD_AGxST_sum_bf16(ncclSymDevArgs)",
                              "void nvshmemi_put_kernel(void*)",
                              "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 4>(vllm::RankData*)",
                              "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<8>()",
                              "void multimem_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*)",
                          });
  check_all("barrier", {"void nvshmemi_barrier_on_stream_kernel(int)", "barrier_all_kernel(int*)"});
}

TEST_CASE("DeepGEMM says in a template argument whether its product is grouped") {
  const auto deep_gemm = [](const std::string& type) {
    return "void deep_gemm::sm90_fp8_gemm_1d2d_impl<(cute::UMMA::Major)0, 0u, 4096u, 1024u, 1u, 256u, 128u, 128u, "
           "128u, 128u, 128u, 3u, 128u, 256u, 2u, true, 132u, (deep_gemm::GemmType)" +
           type + ", deep_gemm::epilogue::transform::EpilogueIdentity>(float*, int*, unsigned int)";
  };
  CHECK(class_of(deep_gemm("0")) == "gemm");
  CHECK(class_of(deep_gemm("1")) == "grouped_gemm");
  CHECK(class_of(deep_gemm("2")) == "grouped_gemm");
  CHECK(class_of(deep_gemm("3")) == "grouped_gemm");  // groups along k: weight gradients
  CHECK(class_of(deep_gemm("4")) == "gemm");          // batched: attention's
  CHECK(class_of("_ZN9deep_gemm15fp8_gemm_kernelILj4096ELj7168ELNS_8GemmTypeE2EEEvP13__nv_bfloat16") == "grouped_gemm");
  CHECK(class_of("_ZN9deep_gemm15fp8_gemm_kernelILj4096ELj7168ELNS_8GemmTypeE0EEEvP13__nv_bfloat16") == "gemm");
}

TEST_CASE("products of cuBLAS, CUTLASS and Triton are products, those of experts grouped") {
  check_all(
      "gemm",
      {
          "nvjet_tst_128x256_64x4_1x2_h_bz_coopA_TNT",
          "nvjet_sm100_tst_128x256_64x6_2x1_2cta_v_bz_TNT",
          "sm90_xmma_gemm_bf16f32_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_kernel__5x_cublas",
          "ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_tn",
          "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int, int, int, int> > >()",
          "void cutlass::device_kernel<dpsk::grouped_gemm::cuda::fp8_ptp128c::GemmKernel>(Params)",
          "void gemv2T_kernel_val<int, int, __nv_bfloat16>(int)",
          "triton_tem_fused_mm_12",
      });
  check_all("grouped_gemm",
            {
                "fused_moe_kernel",
                "void sm100_fp8_fp4_mega_moe_impl<7168u, 3072u>(int)",
                "void cutlass::device_kernel<dpsk::grouped_gemm::cuda::m_grouped_fp8_ptp128c::GemmKernel>(Params)",
                "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<"
                "cutlass::gemm::GroupProblemShape<cute::tuple<int, int, int> > > >()",
            });
  check_all("memory", {"void cublasLt::splitKreduce_kernel<32, 16, int, float, __nv_bfloat16>()",
                       "void dpsk::grouped_gemm::cuda::utils::transpose<512, 128, 4, 4>(unsigned char const*)"});
}

TEST_CASE("attention is the core alone, forward and backward, what comes before and after is memory") {
  check_all("attention",
            {
                "void flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4, false> >(Flash_fwd_params)",
                "void flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4> >(Flash_fwd_params)",
                "void flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits<128> >(Flash_bwd_params)",
                "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<128> >()",
                "void flash::compute_attn_ws<Flash_fwd_kernel_traits<192, 128, 128, 12, 2> >()",
                "void cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnFwdSm90<int> > >()",
                "void cutlass::device_kernel<flash::FlashAttnBwd<flash::CollectiveMainloopBwd<2> > >()",
                "void flash_fwd_splitkv_mla_kernel<Flash_fwd_kernel_traits_mla<576, 64, 64, 8> >(Flash_fwd_mla_params)",
                "void flashinfer::BatchPrefillWithPagedKVCacheKernel<flashinfer::KernelTraits<1> >()",
                "void flashinfer::BatchPrefillWithRaggedKVCacheKernel<flashinfer::KernelTraits<1> >()",
                "void flashinfer::BatchDecodeWithPagedKVCacheKernel<2u>()",
                "void flashinfer::SinglePrefillWithKVCacheKernel<2u>()",
                "void flashinfer::mla::BatchMLAPagedAttentionKernel<flashinfer::mla::KernelTraits<1> >()",
                "fmhaSm100aKernel_QE4m3KvE2m1OE4m3H128PagedKvDenseP16VarSeqQ8Kv128PersistentSwapsAbForGen",
                "void vllm::paged_attention_v2_kernel<unsigned short, 128>()",
                "triton_tem_fused_flex_attention_0",
            });
  check_all("memory",
            {
                "void cutlass::device_kernel<flash::FlashAttnBwdPreprocess<cute::tuple<cute::C<64> > > >()",
                "void cutlass::device_kernel<flash::FlashAttnBwdPostprocessConvertdQ<cute::tuple<cute::C<64> > > >()",
                "void flash_bwd_dot_do_o_kernel<true, Flash_bwd_kernel_traits<128> >(Flash_bwd_params)",
                "void pytorch_flash::flash_bwd_convert_dq_kernel<pytorch_flash::Flash_bwd_kernel_traits<128> >()",
                "void flash_fwd_splitkv_combine_kernel<Flash_fwd_kernel_traits<128> >(Flash_fwd_params)",
                "void flash_fwd_splitkv_mla_combine_kernel<cutlass::bfloat16_t, float, long, 512, 64>()",
                "void flashinfer::PersistentVariableLengthMergeStatesKernel<8u, 16u, 8u, 4u>()",
                "void vllm::merge_attn_states_kernel<__nv_bfloat16, 128>()",
                "void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16>(__nv_bfloat16 const*)",
                "void vllm::concat_and_cache_mla_kernel<__nv_bfloat16>(__nv_bfloat16 const*)",
            });
  check_all("other", {"get_mla_metadata_kernel(Mla_metadata_params)"});
}

TEST_CASE("FlashInfer's kernels around attention are no attention") {
  check_all("memory", {
                          "void flashinfer::norm::RMSNormKernel<8u, __nv_bfloat16>(__nv_bfloat16*)",
                          "void flashinfer::norm::FusedAddRMSNormKernel<8u, __nv_bfloat16>(__nv_bfloat16*)",
                          "void flashinfer::norm::GemmaRMSNormKernel<8u, __nv_bfloat16>(__nv_bfloat16*)",
                          "void flashinfer::activation::act_and_mul_kernel<__nv_bfloat16, &silu>(__nv_bfloat16*)",
                          "void flashinfer::BatchQKApplyRotaryPosIdsCosSinCacheKernel<true, 128u>()",
                          "void flashinfer::BatchQKApplyRotaryPosIdsCosSinCacheHeadParallelismKernel<false>()",
                          "void flashinfer::AppendPagedKVCacheKernel<128u, 8u, __nv_bfloat16, int>()",
                      });
  check_all("other", {"void flashinfer::sampling::TopKTopPSamplingFromProbKernel<1024u>(float*)",
                      "void flashinfer::sampling::SamplingFromProbKernel<1024u>(float*)"});
}

TEST_CASE("norms of queries and keys, and what Inductor generates around attention, are memory") {
  check_all("memory", {"attn_norm_kernel", "layer_norm_mlattn", "void fused_mla_rmsnorm_kernel<8>()",
                       "triton_poi_fused__scaled_dot_product_flash_attention_clone_3",
                       "triton_per_fused_all_reduce_native_layer_norm_7", "_fwd_kernel_stage2"});
  check_all("attention", {"_fwd_grouped_kernel_stage1", "_fwd_kernel_stage1", "kernel_unified_attention_2d",
                          "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_6_128x128x128_4x1x1",
                          "fmhaSm100fKernel_QkvE4m3OBfloat16H128PagedKvDenseP32VarSeqQ8Kv128PersistentSwapsAbForGen"});
}

TEST_CASE("AMD's libraries, TensorRT-LLM and older CUTLASS are known") {
  check_all("collective", {"rcclGenericKernel", "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)",
                           "void lamport_style_one_shot<8>()", "void mscclpp::allreduce<8>()"});
  check_all("gemm", {"Cijk_Ailk_Bljk_BBS_BH_MT256x256x64", "Custom_Cijk_Alik_Bljk_F8BS_BH_MT256x256x128",
                     "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x3_tn_align8>(P)",
                     "void cutlass::Kernel<cutlass_75_tensorop_f16_s1688gemm_f16_256x128_tn_align8>(Params)",
                     "_w8a8_block_fp8_matmul",
                     "bmm_Bfloat16_Bfloat16Bfloat16_Fp32_t128x128x64_s6_et64x128_m64x128x16_cga1x1x1"});
  check_all("grouped_gemm",
            {"bmm_E4m3_E4m3E4m3_Fp32_t128x8x512_s6_et64x8_m128x8x16_transOut_schedS_biasM_bN_swiGlu_dynBatch_sm100f",
             "bmm_Bfloat16_E2m1E2m1_Fp32_t128x8x512_s6_et128x8_m128x8x64_transOut_schedS_bN_dynBatch_sm100f"});
  check_all("memory", {"void at::native::(anonymous namespace)::multi_tensor_apply_kernel<Adam>(Adam)",
                       "void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16>()",
                       "void vllm::concat_and_cache_mla_kernel<__nv_bfloat16>()", "moe_sum_reduce_kernel"});
}

TEST_CASE("casts, norms, activations and PyTorch's own kernels are memory-bound, routing is other work") {
  check_all("memory",
            {
                "void cuda::per_token_cast_to_fp8_with_channels<__nv_bfloat16, 128, false, 128, false>()",
                "void cuda::swiglu_forward_backward_with_weight_impl<__nv_bfloat16>(__nv_bfloat16*)",
                "void layer_norm::ln_fwd_kernel<layer_norm::Kernel_traits<__nv_bfloat16> >()",
                "void vllm::act_and_mul_kernel<c10::BFloat16, &c10::BFloat16 vllm::silu_kernel<c10::BFloat16> >()",
                "void vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>()",
                "void vllm::rotary_embedding_kernel<c10::BFloat16, true>()",
                "_per_token_group_quant_fp8",
                "triton_poi_fused_mul_silu_1",
                "triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_0",
                "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float> >(int)",
                "void at::native::(anonymous namespace)::CatArrayBatchedCopy_aligned16_contig<int>()",
                "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float> >()",
                "void (anonymous namespace)::softmax_warp_forward<float, float, float, 8, false, false>()",
                "void at::native::(anonymous namespace)::indexSelectLargeIndex<c10::BFloat16, long>()",
                "_ZN2at6native54_GLOBAL__N__d8ceb000_21_DistributionNormal_cu43distribution_elementwise_grid_stride_"
                "kernelIfLi4EEEv",
            });
  check_all("other", {
                         "void at::native::sbtopk::gatherTopK<float, unsigned int, 2, false>()",
                         "void vllm::moe::topkGatingSoftmax<8, 256, 4, 16, int>(float const*)",
                         "void vllm::moe::moe_align_block_size_kernel<int>(int const*)",
                         "void cuda::topk_sum_and_topk_idx<16, 64>(float const*, long*)",
                         "void cuda::clean_and_count_expert<512>(long const*, int*)",
                     });
}

TEST_CASE("mangled names mean what they say unmangled") {
  CHECK(class_of("_ZN7deep_ep9internode8dispatchILb0ELi4ELb1ELi8EEEvP4int4Pf") == "dispatch");
  CHECK(class_of("_ZN7deep_ep9internode7combineILb0ELi8E13__nv_bfloat16Li8EEEvP4int4") == "combine");
  CHECK(class_of("_ZN7deep_ep9internode15notify_dispatchILb0ELi8EEEvPKiPi") == "barrier");
  CHECK(class_of("_ZN7deep_ep6layout19get_dispatch_layoutILi256ELi32ELi8EEEvPKlPi") == "other");
  CHECK(class_of("_Z40ncclDevKernel_AllReduce_Sum_bf16_RING_LL24ncclDevKernelArgsStorageILm4096EE") == "collective");
  CHECK(class_of("_ZN5flash16flash_fwd_kernelI23Flash_fwd_kernel_traitsEEv16Flash_fwd_params") == "attention");
}

TEST_CASE("what nobody knows stays unclassified") {
  check_all("unclassified", {"", "my_kernel", "void <", "(", "void (anonymous namespace)::", "Kernel2"});
}

TEST_CASE("names of any length are searched in their beginning") {
  CHECK(class_of(std::string(200'000, 'x')) == "unclassified");
  CHECK(class_of("void f<" + std::string(200'000, '<')) == "unclassified");
  CHECK(class_of(std::string(999, 'x') + "gemm") == "unclassified");
}

TEST_CASE("--comm-pattern alone decides what communicates, and leaves other classes as they are") {
  const KernelClassifier classify({}, "my_a2a|deep_ep.*combine");
  const auto named = [&](const std::string& name) { return name_of(classify.of_kernel(name)); };
  CHECK(named("void my_a2a_send<4>()") == "collective");
  CHECK(named("void MY_A2A()") == "collective");  // case is ignored
  CHECK(named("void deep_ep::internode::combine<8>()") == "combine");
  CHECK(named("void deep_ep::internode::dispatch<8>()") == "unclassified");  // no communication now, and nothing else
  CHECK(named("ncclDevKernel_AllReduce_Sum_bf16_RING_LL()") == "unclassified");
  CHECK(named("sm90_xmma_gemm") == "gemm");
}

TEST_CASE("--comm-pattern is searched in the whole name, template arguments included") {
  const KernelClassifier classify({}, "SendRecv");
  CHECK(name_of(classify.of_kernel("void generic_kernel<Op::SendRecv>(int)")) == "collective");
}

TEST_CASE("given classes go before the built-in ones, the first found before later ones") {
  const KernelClassifier classify({{"gemm_of_experts", "grouped_gemm"}, {"^void my_", "attention"}, {"my", "other"}});
  const auto named = [&](const std::string& name) { return name_of(classify.of_kernel(name)); };
  CHECK(named("void gemm_of_experts()") == "grouped_gemm");
  CHECK(named("void my_gemm()") == "attention");
  CHECK(named("mygemm") == "other");
  CHECK(named("gemm") == "gemm");
}

TEST_CASE("unknown classes and bad patterns are refused by name") {
  CHECK_THROWS_WITH_AS(KernelClassifier({{"x", "attenton"}}, ""),
                       "unknown kernel class 'attenton'; did you mean 'attention'?", SpecError);
  CHECK_THROWS_WITH_AS(KernelClassifier({{"(", "gemm"}}, ""), "'(' is not a regular expression: missing ): (",
                       SpecError);
  CHECK_THROWS_WITH_AS(KernelClassifier({}, "*"),
                       "'*' is not a regular expression: no argument for repetition operator: *", SpecError);
}

TEST_CASE("every kernel of DeepSeek's trace has a class") {
  if (!present(training_trace())) return;
  const Trace trace = read_trace(training_trace());
  for (const KernelName& kernel : trace.names) {
    if (kernel.name.starts_with("Mem")) continue;  // copies and sets
    CAPTURE(kernel.name);
    CHECK(class_of(kernel.name) != "unclassified");
  }
}

}  // TEST_SUITE("trace/kernel_class")
