#include "schedules/scenario/parallelism.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

namespace moeline {

std::string short_name(const Parallelism& p) {
  if (p.world() == 1 && p.group() == 1) return "1 GPU";
  std::vector<std::string> attention;
  if (p.tp > 1) attention.push_back(fmt::format("TP{}", p.tp));
  if (p.cp > 1) attention.push_back(fmt::format("CP{}", p.cp));
  if (!attention.empty() && p.dp > 1) attention.push_back(fmt::format("DP{}", p.dp));
  std::vector<std::string> parts;
  if (!attention.empty()) parts.push_back(fmt::format("{}", fmt::join(attention, " x ")));
  const bool split_alike = p.ep == 1 && p.moe_tp == p.attention_ranks();
  if (p.attention_ranks() == 1 || p.ep > 1 || (p.moe_tp > 1 && !split_alike)) {
    parts.push_back(fmt::format("EP{}{}", p.ep, p.moe_tp > 1 ? fmt::format(" x MoE-TP{}", p.moe_tp) : ""));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace moeline
