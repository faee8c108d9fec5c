// What a file said is read once, however often it is asked for: a sweep reads the same files at every point.
#pragma once

#include <filesystem>
#include <map>
#include <mutex>
#include <string>

#include "base/file.hpp"

namespace moeline {

/// Values by path and content of a text file, and by what else they depend on. Thread-safe; forgets all when it has
/// seen many.
template <class Value>
class FileMemo {
 public:
  template <class Read>
  Value get(const std::filesystem::path& path, Read read, const std::string& variant = "") {
    constexpr std::size_t kMany = 64;
    const std::string key = path.string() + '\n' + variant + '\n' + read_text(path);
    {
      const std::scoped_lock lock(mutex_);
      const auto found = known_.find(key);
      if (found != known_.end()) return found->second;
    }
    Value value = read();
    const std::scoped_lock lock(mutex_);
    if (known_.size() >= kMany) known_.clear();
    known_.insert_or_assign(key, value);
    return value;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, Value> known_;
};

}  // namespace moeline
