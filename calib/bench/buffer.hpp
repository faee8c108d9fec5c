// Device memory that frees itself, and operands in as many copies as it takes to find them outside the L2 cache.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "check.hpp"
#include "device.hpp"

namespace moeline::bench {

/// Uninitialised device memory. Throws Skip where it does not fit.
class Buffer {
 public:
  explicit Buffer(std::size_t bytes);
  ~Buffer() { (void)cudaFree(data_); }
  Buffer(Buffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Buffer& operator=(Buffer&&) = delete;
  [[nodiscard]] void* data() const { return data_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Sets of operands of `bytes` each that together are three times the L2 cache: when a turn comes round again, the
/// turns between have thrown its operands out.
[[nodiscard]] inline int cold_sets(const Device& device, std::int64_t bytes) {
  return static_cast<int>(3 * device.l2_bytes / bytes) + 1;
}

/// One operand in `sets` copies, each aligned to 256 bytes; launch number `turn` uses copy turn % sets.
template <class T>
class Operand {
 public:
  Operand(std::int64_t elements, int sets)
      : elements_(elements), sets_(sets), stride_(aligned(elements)), buffer_(sizeof(T) * stride_ * sets) {}
  [[nodiscard]] T* at(std::int64_t turn) const { return static_cast<T*>(buffer_.data()) + stride_ * (turn % sets_); }
  [[nodiscard]] std::int64_t elements() const { return elements_; }
  /// Of all copies and the gaps between them: what a fill has to write.
  [[nodiscard]] std::int64_t all_elements() const { return stride_ * sets_; }

 private:
  static std::int64_t aligned(std::int64_t elements) {
    constexpr std::int64_t step = 256 / sizeof(T);
    return (elements + step - 1) / step * step;
  }
  std::int64_t elements_;
  int sets_;
  std::int64_t stride_;
  Buffer buffer_;
};

/// Copies to the device and waits: cudaMemcpy may return while its last bytes are on their way, and streams that do not
/// synchronise with the default stream would not wait for them.
template <class T>
void store(T* device, const std::vector<T>& host) {
  CHECK_STATUS(cudaMemcpy(device, host.data(), sizeof(T) * host.size(), cudaMemcpyHostToDevice));
  CHECK_STATUS(cudaStreamSynchronize(nullptr));
}

/// Copies `count` elements to the host. REQUIRES: who writes them is over.
template <class T>
[[nodiscard]] std::vector<T> fetch(const T* device, std::int64_t count) {
  std::vector<T> host(static_cast<std::size_t>(count));
  CHECK_STATUS(cudaMemcpy(host.data(), device, sizeof(T) * host.size(), cudaMemcpyDeviceToHost));
  return host;
}

}  // namespace moeline::bench
