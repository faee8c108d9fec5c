#include "experiments/serve/prefix_cache.hpp"

namespace moeline {

void PrefixCache::use(int prefix, double tokens) {
  Kept& kept = kept_[prefix];
  if (kept.tokens == 0) tokens_ += kept.tokens = tokens;
  if (kept.users++ == 0 && unused_.erase({kept.left, prefix}) > 0) unused_tokens_ -= kept.tokens;
}

void PrefixCache::leave(int prefix) {
  Kept& kept = kept_.at(prefix);
  if (--kept.users > 0) return;
  kept.left = ++now_;
  unused_tokens_ += kept.tokens;
  unused_.insert({kept.left, prefix});
}

void PrefixCache::free(double tokens) {
  while (tokens > 0 && !unused_.empty()) {
    const auto kept = kept_.find(unused_.begin()->second);
    tokens -= kept->second.tokens;
    tokens_ -= kept->second.tokens;
    unused_tokens_ -= kept->second.tokens;
    unused_.erase(unused_.begin());
    kept_.erase(kept);
  }
}

}  // namespace moeline
