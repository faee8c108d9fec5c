#include "calib/fit/table_file.hpp"

#include <fstream>

#include "base/error.hpp"
#include "trace/gzip_stream.hpp"

namespace moeline {
namespace {

constexpr std::size_t kLargest = std::size_t{256} << 20U;  // unpacked, of which a few KB may make any size

// zlib passes what is no gzip through as it is.
bool has_gzip_mark(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return stream.get() == 0x1f && stream.get() == 0x8b;
}

std::string unpacked(const std::filesystem::path& file) {
  GzipStream stream(file);
  if (!has_gzip_mark(file)) throw SpecError(file.string(), 0, "is called .gz and is not gzip");
  std::string text;
  while (!stream.at_end()) {
    text.push_back(stream.Take());
    if (text.size() > kLargest) throw SpecError(file.string(), 0, "is larger than 256 MiB, unpacked");
  }
  return text;
}

bool is_gzip(const std::filesystem::path& file) { return file.extension() == ".gz"; }

// The manifest names tables by their folder, and unpacked.
std::string name_in_manifest(const std::filesystem::path& file) {
  return file.parent_path().filename().string() + "/" + table_name(file) + ".csv";
}

}  // namespace

std::string table_name(const std::filesystem::path& file) {
  const std::filesystem::path plain = is_gzip(file) ? file.stem() : file.filename();
  return plain.extension() == ".csv" ? plain.stem().string() : plain.string();
}

CsvTable read_table(const std::filesystem::path& file) {
  return is_gzip(file) ? CsvTable(file, unpacked(file)) : CsvTable(file);
}

std::optional<ManifestEntry> manifest_entry(const std::filesystem::path& file) {
  std::error_code failed;
  const std::filesystem::path whole = std::filesystem::absolute(file, failed);
  const std::filesystem::path path = whole.parent_path().parent_path() / "manifest.csv";
  if (!std::filesystem::exists(path, failed)) return std::nullopt;
  const CsvTable manifest(path);
  for (std::size_t row = 0; row < manifest.rows(); ++row) {
    if (manifest.text(row, "file") != name_in_manifest(whole)) continue;
    return ManifestEntry{manifest.text(row, "device_of_rows"), manifest.text(row, "backend"),
                         manifest.text(row, "backend_version"), manifest.text(row, "commit")};
  }
  return std::nullopt;
}

}  // namespace moeline
