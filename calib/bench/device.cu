#include <cublas_v2.h>
#include <dlfcn.h>

#include <algorithm>

#include "buffer.hpp"
#include "clock.cuh"
#include "device.hpp"

namespace moeline::bench {
namespace {

std::int64_t attribute(cudaDeviceAttr which) {
  int value = 0;
  CHECK_STATUS(cudaDeviceGetAttribute(&value, which, 0));
  return value;
}

/// 13000 is "13.0".
std::string dotted(int version) { return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10); }

/// The driver's own version where its management library is installed, else the CUDA version that it supports.
std::string driver_version() {
  int cuda = 0;
  CHECK_STATUS(cudaDriverGetVersion(&cuda));
  std::string version = "CUDA " + dotted(cuda);
  void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (!library) return version;
  const auto init = reinterpret_cast<int (*)()>(dlsym(library, "nvmlInit_v2"));
  const auto ask = reinterpret_cast<int (*)(char*, unsigned)>(dlsym(library, "nvmlSystemGetDriverVersion"));
  const auto shutdown = reinterpret_cast<int (*)()>(dlsym(library, "nvmlShutdown"));
  if (init && ask && shutdown && init() == 0) {
    char text[81] = "";
    if (ask(text, sizeof text - 1) == 0 && text[0]) version = text;
    (void)shutdown();
  }
  (void)dlclose(library);
  return version;
}

std::string cublas_version() {
  std::string version;
  for (const libraryPropertyType part : {MAJOR_VERSION, MINOR_VERSION, PATCH_LEVEL}) {
    int number = 0;
    CHECK_STATUS(cublasGetProperty(part, &number));
    if (!version.empty()) version += '.';
    version += std::to_string(number);
  }
  return version;
}

struct Ticks {
  long long cycles;
  std::uint64_t ns;
};

/// Every SM multiplies and adds for `ns`; block 0 says how many cycles that was.
__global__ void burn(std::uint64_t ns, Ticks* ticks, float* sink) {
  const std::uint64_t begin_ns = global_ns();
  const long long begin = clock64();
  float a = threadIdx.x, b = 1.0f - threadIdx.x, c = 0.5f, d = -0.5f;
  std::uint64_t passed = 0;
  while (passed < ns) {
#pragma unroll 64
    for (int i = 0; i < 64; ++i) {
      a = fmaf(a, 0.999f, 0.1f);
      b = fmaf(b, 0.998f, 0.2f);
      c = fmaf(c, 0.997f, 0.3f);
      d = fmaf(d, 0.996f, 0.4f);
    }
    passed = global_ns() - begin_ns;
  }
  if (blockIdx.x == 0 && threadIdx.x == 0) *ticks = {clock64() - begin, passed};
  if (a + b + c + d == 12345.0f) *sink = a;  // never: keeps the arithmetic alive
}

/// Cycles of an SM per microsecond of the global timer while all SMs compute. The first run raises the clocks.
int sm_clock_mhz(int sms) {
  const Buffer ticks(sizeof(Ticks)), sink(sizeof(float));
  for (int run = 0; run < 2; ++run) {
    burn<<<4 * sms, 256>>>(200'000'000, static_cast<Ticks*>(ticks.data()), static_cast<float*>(sink.data()));
    CHECK_LAUNCH();
    CHECK_STATUS(cudaDeviceSynchronize());
  }
  const Ticks seen = fetch(static_cast<const Ticks*>(ticks.data()), 1)[0];
  return static_cast<int>(1e3 * static_cast<double>(seen.cycles) / static_cast<double>(seen.ns) + 0.5);
}

}  // namespace

Device open_device() {
  CHECK_STATUS(cudaSetDevice(0));
  cudaDeviceProp properties;
  CHECK_STATUS(cudaGetDeviceProperties(&properties, 0));
  Device device;
  device.name = properties.name;
  device.sms = static_cast<int>(attribute(cudaDevAttrMultiProcessorCount));
  device.major = static_cast<int>(attribute(cudaDevAttrComputeCapabilityMajor));
  device.minor = static_cast<int>(attribute(cudaDevAttrComputeCapabilityMinor));
  device.l2_bytes = attribute(cudaDevAttrL2CacheSize);
  device.shared_per_block = static_cast<int>(attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin));
  device.driver = driver_version();
  device.toolkit = dotted(CUDART_VERSION);
  device.cublas = cublas_version();
  device.sm_clock_mhz = sm_clock_mhz(device.sms);
  device.memory_clock_mhz = static_cast<int>(attribute(cudaDevAttrMemoryClockRate) / 1000);
  return device;
}

}  // namespace moeline::bench
