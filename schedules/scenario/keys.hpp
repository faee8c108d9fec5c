// The keys of a scenario, a table for each mapping. The readers (read_scenario.hpp), the resolved scenario in JSON and
// the schemas (moeline --print-schema) all go by these rows: a new ordinary key is a new row, a call of read() where
// its neighbours are read, and a line on the page (README.md). What depends on other keys is a function of the reader.
#pragma once

#include <vector>

#include "schedules/scenario/key_row.hpp"

namespace moeline::keys {

[[nodiscard]] const Table<Setup>& top();
[[nodiscard]] const Table<Parallelism>& parallelism();
[[nodiscard]] const Table<TrainWorkload>& train();
[[nodiscard]] const Table<PrefillWorkload>& prefill();
[[nodiscard]] const Table<DecodeWorkload>& decode();
/// Of drafted tokens: "#/definitions/acceptance" of the schemas, wherever requests get tokens.
[[nodiscard]] const Row& acceptance();
[[nodiscard]] const Table<PrecisionWords>& precision();
[[nodiscard]] const Table<MemoryChoices>& memory();
[[nodiscard]] const Table<Scenario>& comm();
[[nodiscard]] const Table<Scenario>& routing();
[[nodiscard]] const Table<Scenario>& training();
[[nodiscard]] const Table<SlotCosts>& slot_costs();

/// With every default resolved; of a pipeline of given slots what enters, and no more.
[[nodiscard]] std::vector<Entry> resolved(const Setup& setup);
[[nodiscard]] std::vector<Entry> resolved_pipeline(const Scenario& scenario);

}  // namespace moeline::keys
