// Prefixes of prompts that a KV cache keeps when their requests have ended, for others that begin alike.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>

namespace moeline {

class PrefixCache {
 public:
  [[nodiscard]] bool has(int prefix) const { return kept_.contains(prefix); }
  /// Tokens of all that are kept.
  [[nodiscard]] double tokens() const { return tokens_; }
  /// Of those that none needs.
  [[nodiscard]] double unused_tokens() const { return unused_tokens_; }

  /// One more request needs it: it is kept from now on, and not given up.
  void use(int prefix, double tokens);
  /// One less does. REQUIRES: as many do.
  void leave(int prefix);
  /// Gives up those that none needs, of which the last use is the longest ago, until so many tokens or all are free.
  void free(double tokens);

 private:
  struct Kept {
    double tokens = 0;
    int users = 0;
    std::int64_t left = 0;  ///< when the last user did
  };
  std::map<int, Kept> kept_;
  std::set<std::pair<std::int64_t, int>> unused_;  // by when, and which
  double tokens_ = 0, unused_tokens_ = 0;
  std::int64_t now_ = 0;
};

}  // namespace moeline
