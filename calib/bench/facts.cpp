#include "facts.hpp"

namespace moeline::bench {

std::vector<Fact> all_facts() { return {streaming_fact()}; }

}  // namespace moeline::bench
