// All that the attention kernels ask of the machine beyond plain C++, in one place: nvcc gets the PTX below, any other
// compiler gets declarations alone, and the tests define them for a machine of fibers (tests/support/simt.hpp).
// Fragments are the PTX ISA's of mma.m16n8k16 ("Matrix Fragments for mma.m16n8k16 with floating point type").
#pragma once

#include <cstdint>
#include <cstring>

#ifdef __CUDACC__
#define BENCH_DEVICE __device__ __forceinline__
#define BENCH_HOST_DEVICE __host__ __device__ __forceinline__
#define BENCH_UNROLL _Pragma("unroll")
#define BENCH_UNROLL_BY(count) _Pragma(BENCH_TEXT(unroll count))
#define BENCH_TEXT(text) #text
#else
#define __global__ inline
#define __launch_bounds__(...)
#define BENCH_DEVICE inline
#define BENCH_HOST_DEVICE inline
#define BENCH_UNROLL
#define BENCH_UNROLL_BY(count)
struct BenchIndex {
  unsigned x = 0, y = 0, z = 0;
};
inline BenchIndex threadIdx, blockIdx;
#endif

namespace moeline::bench {

// Bits alone, so that host and device agree without cuda_bf16.h.
struct Bf16 {
  std::uint16_t bits;
};

BENCH_HOST_DEVICE float to_float(Bf16 value) {
  const std::uint32_t bits = static_cast<std::uint32_t>(value.bits) << 16;
  float result;
  memcpy(&result, &bits, sizeof result);
  return result;
}

// The lower (0) or upper (1) of two elements in a register.
BENCH_HOST_DEVICE float element(std::uint32_t pair, int half) {
  return to_float({static_cast<std::uint16_t>(half == 0 ? pair & 0xffffu : pair >> 16)});
}

// To nearest, ties to even. NaN is not preserved: no kernel here makes one on purpose.
BENCH_HOST_DEVICE Bf16 to_bf16(float value) {
  std::uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return {static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16)};
}

struct alignas(8) Float2 {
  float at[2];
};

struct alignas(16) Float4 {
  float at[4];
};

struct alignas(8) Bf16x4 {
  std::uint32_t pairs[2];
};

// Global memory in one access, where `memory` is aligned to T.
template <class T>
BENCH_DEVICE T load_wide(const void* memory);
template <class T>
BENCH_DEVICE void store_wide(void* memory, const T& value);

// Bytes in the block's shared memory: 32 bits, as ldmatrix wants them, and checkable where there is no such memory.
using SharedAddress = std::uint32_t;
using Fragment = std::uint32_t[4];  // four 8x8 matrices of BF16, two elements of each in every lane

BENCH_DEVICE SharedAddress shared_memory();
BENCH_DEVICE float load_shared(SharedAddress address);
BENCH_DEVICE void load_shared_pair(SharedAddress address, float& first, float& second);
BENCH_DEVICE void store_shared(SharedAddress address, float value);
BENCH_DEVICE void store_shared(SharedAddress address, std::uint32_t value);

// 16 bytes; zeros where not valid (`global` is not read then). They land by wait_copies(), for the others by the
// barrier after it.
BENCH_DEVICE void copy_async(SharedAddress shared, const void* global, bool valid);
BENCH_DEVICE void wait_copies();

BENCH_DEVICE void synchronize_block();

// Lane l names row l % 8 of matrix l / 8.
BENCH_DEVICE void load_matrices(Fragment& matrices, SharedAddress row);
BENCH_DEVICE void load_matrices_transposed(Fragment& matrices, SharedAddress row);

// sum (16x8, FP32) += a (16x16) * b (16x8; lower and upper half of its 16 rows).
BENCH_DEVICE void multiply_add(float (&sum)[4], const Fragment& a, std::uint32_t b_low, std::uint32_t b_high);

BENCH_DEVICE float shuffle_xor(float value, int lanes);
// For what is equal in all lanes without the compiler knowing: it then fits a register of the warp.
BENCH_DEVICE int same_in_warp(int value);
BENCH_DEVICE float exp2_fast(float value);
BENCH_DEVICE std::uint32_t pack_bf16(float low, float high);

// target[0] += first, target[1] += second, from many blocks at once. `target` is aligned to 8 bytes.
BENCH_DEVICE void atomic_add_pair(float* target, float first, float second);

#ifdef __CUDACC__

template <class T>
BENCH_DEVICE T load_wide(const void* memory) {
  return *static_cast<const T*>(memory);
}

template <class T>
BENCH_DEVICE void store_wide(void* memory, const T& value) {
  *static_cast<T*>(memory) = value;
}

BENCH_DEVICE SharedAddress shared_memory() {
  extern __shared__ __align__(1024) unsigned char bytes[];
  return static_cast<SharedAddress>(__cvta_generic_to_shared(bytes));
}

BENCH_DEVICE float load_shared(SharedAddress address) {
  float value;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(value) : "r"(address) : "memory");
  return value;
}

BENCH_DEVICE void load_shared_pair(SharedAddress address, float& first, float& second) {
  asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(first), "=f"(second) : "r"(address) : "memory");
}

BENCH_DEVICE void store_shared(SharedAddress address, float value) {
  asm volatile("st.shared.f32 [%0], %1;" ::"r"(address), "f"(value) : "memory");
}

BENCH_DEVICE void store_shared(SharedAddress address, std::uint32_t value) {
  asm volatile("st.shared.b32 [%0], %1;" ::"r"(address), "r"(value) : "memory");
}

BENCH_DEVICE void copy_async(SharedAddress shared, const void* global, bool valid) {
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(shared),
               "l"(__cvta_generic_to_global(global)), "r"(valid ? 16 : 0)
               : "memory");
}

BENCH_DEVICE void wait_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

BENCH_DEVICE void synchronize_block() { __syncthreads(); }

BENCH_DEVICE void load_matrices(Fragment& m, SharedAddress row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(row)
               : "memory");
}

BENCH_DEVICE void load_matrices_transposed(Fragment& m, SharedAddress row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
               : "r"(row)
               : "memory");
}

BENCH_DEVICE void multiply_add(float (&sum)[4], const Fragment& a, std::uint32_t b_low, std::uint32_t b_high) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b_low), "r"(b_high));
}

BENCH_DEVICE float shuffle_xor(float value, int lanes) { return __shfl_xor_sync(0xffffffffu, value, lanes); }

BENCH_DEVICE int same_in_warp(int value) { return __shfl_sync(0xffffffffu, value, 0); }

BENCH_DEVICE float exp2_fast(float value) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(value));
  return result;
}

BENCH_DEVICE std::uint32_t pack_bf16(float low, float high) {
  std::uint32_t result;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(high), "f"(low));
  return result;
}

BENCH_DEVICE void atomic_add_pair(float* target, float first, float second) {
#if __CUDA_ARCH__ >= 900
  asm volatile("red.global.add.v2.f32 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(target)), "f"(first), "f"(second)
               : "memory");
#else
  atomicAdd(target, first);
  atomicAdd(target + 1, second);
#endif
}

#endif  // __CUDACC__

}  // namespace moeline::bench
