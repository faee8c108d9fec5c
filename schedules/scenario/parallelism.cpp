#include "schedules/scenario/parallelism.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

namespace moeline {

std::string short_name(const Parallelism& p) {
  if (p.world() == 1 && p.group() == 1) return "1 GPU";
  std::vector<std::string> parts;
  if (p.tp > 1) parts.push_back(p.dp > 1 ? fmt::format("TP{} x DP{}", p.tp, p.dp) : fmt::format("TP{}", p.tp));
  const bool split_alike = p.tp > 1 && p.ep == 1 && p.moe_tp == p.tp;
  if (p.tp == 1 || p.ep > 1 || (p.moe_tp > 1 && !split_alike)) {
    parts.push_back(fmt::format("EP{}{}", p.ep, p.moe_tp > 1 ? fmt::format(" x MoE-TP{}", p.moe_tp) : ""));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace moeline
