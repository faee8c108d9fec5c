#!/usr/bin/env bash
# Runs every benchmark through once, with as few iterations as it has: none fails by its time, but all must end.
set -euo pipefail
cd "$(dirname "$0")/../.."
cmake --preset release >/dev/null
cmake --build --preset release --target benchmarks
for benchmark in build/release/*_benchmark; do
  results=$("$benchmark" --benchmark_min_time=0.001 --benchmark_format=json) || exit 1
  if grep '"error_message"' <<<"$results"; then exit 1; fi  # of a benchmark that says what was wrong instead of a time
  echo "$(basename "$benchmark"): $(grep -c '"run_name"' <<<"$results") benchmarks run"
done
