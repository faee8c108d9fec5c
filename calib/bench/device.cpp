#include <cublas_v2.h>
#include <dlfcn.h>

#include "check.hpp"
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
  device.memory_clock_mhz = static_cast<int>(attribute(cudaDevAttrMemoryClockRate) / 1000);
  return device;
}

}  // namespace moeline::bench
