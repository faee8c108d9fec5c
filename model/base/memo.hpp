// What a file said is read once, however often it is asked for: a sweep reads the same files at every point.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
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
  std::shared_ptr<const Value> get(const std::filesystem::path& path, Read read, const std::string& variant = "") {
    constexpr std::size_t kMany = 64;
    const std::string key = path.string() + '\n' + variant + '\n' + read_text(path);
    if (auto value = find(key)) return value;
    auto value = std::make_shared<const Value>(read());
    const std::scoped_lock lock(mutex_);
    if (known_.size() >= kMany) known_.clear();
    known_.insert_or_assign(key, value);
    return value;
  }

 private:
  std::shared_ptr<const Value> find(const std::string& key) {
    const std::scoped_lock lock(mutex_);
    const auto found = known_.find(key);
    return found == known_.end() ? nullptr : found->second;
  }

  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const Value>> known_;
};

}  // namespace moeline
