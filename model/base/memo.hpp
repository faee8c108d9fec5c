// What costs much and is asked for again and again: a sweep reads the same files, and needs the same values, at every
// point.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>

#include "base/file.hpp"

namespace moeline {

/// Values by key. Thread-safe; forgets all when it has `most`.
template <class Key, class Value>
class Memo {
 public:
  explicit Memo(std::size_t most = SIZE_MAX) : most_(most) {}

  /// What `make` gave for this key; nothing is kept where it throws. Of several threads that ask at once each may call
  /// it.
  template <class Make>
  std::shared_ptr<const Value> get(const Key& key, Make make) {
    if (auto value = find(key)) return value;
    auto value = std::make_shared<const Value>(make());
    const std::scoped_lock lock(mutex_);
    if (known_.size() >= most_) known_.clear();
    known_.insert_or_assign(key, value);
    return value;
  }

  [[nodiscard]] std::size_t size() {
    const std::scoped_lock lock(mutex_);
    return known_.size();
  }

 private:
  std::shared_ptr<const Value> find(const Key& key) {
    const std::scoped_lock lock(mutex_);
    const auto found = known_.find(key);
    return found == known_.end() ? nullptr : found->second;
  }

  std::size_t most_;
  std::mutex mutex_;
  std::map<Key, std::shared_ptr<const Value>> known_;
};

inline constexpr std::size_t kManyTexts = 64;

/// Values by path and content of a text file, and by what else they depend on.
template <class Value>
class FileMemo {
 public:
  template <class Read>
  std::shared_ptr<const Value> get(const std::filesystem::path& path, Read read, const std::string& variant = "") {
    const std::string content = read_content(path);  // `read` refuses what is no text
    return known_.get({path.string(), variant, content.size(), std::hash<std::string>()(content)}, read);
  }

 private:
  using Text = std::tuple<std::string, std::string, std::size_t, std::size_t>;  // its content by size and hash

  Memo<Text, Value> known_{kManyTexts};
};

}  // namespace moeline
