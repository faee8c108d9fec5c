#include "trace/copy_path.hpp"

#include <algorithm>
#include <array>

namespace moeline {
namespace {

struct Word {
  std::string_view in_name;
  CopyPath path;
};

constexpr std::array<Word, 13> kWords = {{{"HtoD", CopyPath::host_to_device},
                                          {"HtoA", CopyPath::host_to_device},
                                          {"HostToDevice", CopyPath::host_to_device},
                                          {"DtoH", CopyPath::device_to_host},
                                          {"AtoH", CopyPath::device_to_host},
                                          {"DeviceToHost", CopyPath::device_to_host},
                                          {"DtoD", CopyPath::in_memory},
                                          {"AtoA", CopyPath::in_memory},
                                          {"AtoD", CopyPath::in_memory},
                                          {"DtoA", CopyPath::in_memory},
                                          {"DeviceToDevice", CopyPath::in_memory},
                                          {"PtoP", CopyPath::peer},
                                          {"PeerToPeer", CopyPath::peer}}};

bool contains(std::string_view name, std::string_view word) { return name.find(word) != std::string_view::npos; }

}  // namespace

const std::string& name_of(CopyPath path) {
  static const std::array<std::string, kCopyPaths> names = {"in_memory",      "set",  "host_to_device",
                                                            "device_to_host", "peer", "unknown"};
  return names[static_cast<std::size_t>(path)];
}

CopyPath copy_path(GpuEventKind kind, std::string_view name) {
  if (kind == GpuEventKind::memset) {
    const bool of_host = contains(name, "Pageable") || contains(name, "Pinned");
    return of_host ? CopyPath::unknown : CopyPath::set;
  }
  const auto* const word =
      std::find_if(kWords.begin(), kWords.end(), [&](const Word& each) { return contains(name, each.in_name); });
  return word == kWords.end() ? CopyPath::unknown : word->path;
}

double passes_through_memory(CopyPath path) {
  if (path == CopyPath::in_memory) return 2;
  return path == CopyPath::set ? 1 : 0;
}

}  // namespace moeline
