// A stream of one's own that does not wait for the legacy default stream.
#pragma once

#include <cuda_runtime_api.h>

#include "check.hpp"

namespace moeline::bench {

class Stream {
 public:
  Stream() { CHECK_STATUS(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~Stream() { (void)cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  [[nodiscard]] cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

}  // namespace moeline::bench
