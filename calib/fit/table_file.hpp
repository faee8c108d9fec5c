// A table of a serving stack's kernels as it lies in a folder: plain or gzipped, with a manifest beside its folder.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/csv.hpp"

namespace moeline {

/// What manifest.csv says of a table.
struct ManifestEntry {
  std::string device;   ///< that it was measured on: "NVIDIA B200"
  std::string backend;  ///< "sglang"
  std::string version;
  std::string commit;  ///< of its source
};

/// "gemm_sglang" of ".../b200_sxm/gemm_sglang.csv.gz".
[[nodiscard]] std::string table_name(const std::filesystem::path& file);

/// Plain, or gzip. Throws SpecError for one that is damaged or cut off, or larger than 256 MiB unpacked.
[[nodiscard]] CsvTable read_table(const std::filesystem::path& file);

/// Its line of the manifest.csv above the table's folder; none where there is no such file or line.
[[nodiscard]] std::optional<ManifestEntry> manifest_entry(const std::filesystem::path& file);

}  // namespace moeline
