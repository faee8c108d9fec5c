// Numbers of all ranks, side by side: what happens to each by itself, several at a time.
#pragma once

#include <cstddef>

namespace moeline {

/// `to` may be any of the others. All are `ranks` long.
void sum_of_each(const double* some, const double* others, std::size_t ranks, double* to);
void sum_of_each(const double* some, double other, std::size_t ranks, double* to);
void later_of_each(const double* some, const double* others, std::size_t ranks, double* to);
void later_of_each(const double* some, double other, std::size_t ranks, double* to);
/// mean + of_some x some + of_others x others
void weighted_of_each(double mean, double of_some, const double* some, double of_others, const double* others,
                      std::size_t ranks, double* to);
/// REQUIRES: at least one.
[[nodiscard]] double latest(const double* some, std::size_t ranks);

}  // namespace moeline
