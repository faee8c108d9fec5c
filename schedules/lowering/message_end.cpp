#include "schedules/lowering/message_end.hpp"

#include <algorithm>

namespace moeline {
namespace {

bool is_outgoing(RankResource link) {
  return link == RankResource::nvlink_out || link == RankResource::nic_out || link == RankResource::host_out;
}

}  // namespace

void keep_end(bool sends, PreparedKernel& kernel) {
  std::erase_if(kernel.usages, [&](const Usage& usage) {
    const auto link = static_cast<RankResource>(usage.link);
    return link != RankResource::hbm && is_outgoing(link) != sends;
  });
}

}  // namespace moeline
