// What a reader of the timeline is told of a kernel: its family, shape and price. Nobody else asks, so that the text is
// made for those that are shown.
#pragma once

#include <string>

#include "hardware/price_book.hpp"
#include "schedules/lowering/program.hpp"

namespace moeline {

/// "gemm_fp8 m=128 n=7168 k=2048, interpolated from open-2025-late"; of a task that is no kernel what its label says.
/// REQUIRES: the program was priced by this book.
[[nodiscard]] std::string detail_of(const Program& program, PriceBook& prices, TaskId task);

}  // namespace moeline
