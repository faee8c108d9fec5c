#include "trace/read_trace.hpp"

#include <algorithm>

#include "trace/gzip_stream.hpp"
#include "trace/sqlite_file.hpp"

namespace moeline {
namespace {

using namespace std::string_view_literals;

struct Magic {
  std::size_t at = 0;
  std::string_view bytes;
  std::string_view what;
};

constexpr Magic kMagic[] = {
    {0, "SQLite format 3\0"sv, "an SQLite database inside gzip: unpack it first"},
    {0, "PERFILE2"sv, "a recording of Linux perf"},
    {0, "PK\x03\x04"sv, "a zip archive"},
    {0, "\x28\xb5\x2f\xfd"sv, "compressed by zstd"},
    {0,
     "\xfd"
     "7zXZ"sv,
     "compressed by xz"},
    {0, "BZh"sv, "compressed by bzip2"},
    {257, "ustar"sv, "a tar archive"},
};

struct Suffix {
  std::string_view suffix;
  std::string_view what;
};

// Formats without known first bytes.
constexpr Suffix kSuffixes[] = {
    {".nsys-rep", "a report of Nsight Systems: `nsys export --type sqlite` makes a file of it that is read"},
    {".qdrep", "a report of Nsight Systems: `nsys export --type sqlite` makes a file of it that is read"},
    {".qdstrm",
     "a recording of Nsight Systems, of which its importer makes a report, and `nsys export` an SQLite file"},
    {".ncu-rep", "a report of Nsight Compute"},
    {".et", "an execution trace of Chakra: it says which operators ran after which, and not when kernels ran"},
    {".pftrace", "a protobuf trace of Perfetto"},
    {".perfetto-trace", "a protobuf trace of Perfetto"},
    {".pb", "a protobuf file, such as the XPlanes of JAX"},
    {".pickle", "a pickle, such as PyTorch's memory snapshots"},
};

// JSON by two of its keys.
struct KeyPair {
  std::string_view first, second;
  std::string_view what;
};

constexpr KeyPair kKeys[] = {
    {"schema", "nodes",
     "an execution trace of PyTorch (ExecutionTraceObserver, Chakra): it says which operators ran after which, and not "
     "when kernels ran"},
    {"rocprofiler-sdk-tool", "rocprofiler-sdk-tool", "the JSON of rocprofv3, which has records and no events"},
    {"$schema", "profiles", "a profile of speedscope, which samples the host's functions"},
};

}  // namespace

std::optional<std::string_view> foreign_file(std::string_view file_name, std::string_view beginning) {
  const auto bears = [&](const Magic& magic) {
    return beginning.size() > magic.at && beginning.substr(magic.at).starts_with(magic.bytes);
  };
  const auto* const magic = std::find_if(std::begin(kMagic), std::end(kMagic), bears);
  if (magic != std::end(kMagic)) return magic->what;
  const auto* const suffix = std::find_if(std::begin(kSuffixes), std::end(kSuffixes),
                                          [&](const Suffix& known) { return file_name.ends_with(known.suffix); });
  return suffix != std::end(kSuffixes) ? std::optional(suffix->what) : std::nullopt;
}

std::optional<std::string_view> foreign_json(std::span<const std::string> keys) {
  const auto has = [&](std::string_view key) { return std::find(keys.begin(), keys.end(), key) != keys.end(); };
  const auto* const found = std::find_if(std::begin(kKeys), std::end(kKeys),
                                         [&](const KeyPair& known) { return has(known.first) && has(known.second); });
  return found != std::end(kKeys) ? std::optional(found->what) : std::nullopt;
}

Trace read_trace(const std::filesystem::path& path, const Progress& progress) {
  GzipStream stream(path, progress);
  if (!stream.is_packed() && is_sqlite(stream.beginning())) return read_nsight(path);
  return read_kineto(stream, path);
}

}  // namespace moeline
