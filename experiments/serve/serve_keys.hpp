// The keys of a workload of requests: a table for each mapping, as of every other workload
// (schedules/scenario/keys.hpp). An ordinary key is a row and a field of ServeWorkload; what depends on other keys is a
// function of the reader.
#pragma once

#include "experiments/serve/traffic.hpp"
#include "schedules/scenario/key_row.hpp"

namespace moeline::keys {

/// All but `phase`.
[[nodiscard]] const Table<ServeWorkload>& serve();
/// Of one that is listed at `outages`.
[[nodiscard]] const Table<Outage>& outage();

}  // namespace moeline::keys
