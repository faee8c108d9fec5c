// What a task is, and what it needs while it runs. Plain data: the engine reads it and never writes it.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "base/time.hpp"

namespace moeline {

using TaskId = std::uint32_t;
using ResourceId = std::uint16_t;
using NameId = std::uint32_t;

inline constexpr NameId kNoName = std::numeric_limits<NameId>::max();
inline constexpr TaskId kNoTask = std::numeric_limits<TaskId>::max();
inline constexpr ResourceId kNoPool = std::numeric_limits<ResourceId>::max();

/// How a task holds the SMs it wants.
enum class Hold : std::uint8_t {
  nothing,   ///< host work, joins, data on the wire
  resident,  ///< thread blocks that stay: persistent GEMMs, communication kernels, barrier spins
  elastic,   ///< many short blocks: memory-bound kernels, attention; they share what the residents leave
};

struct Task {
  Time solo{};   ///< duration with everything it wants
  Time delay{};  ///< between release and start; holds nothing meanwhile (launch gap, wire latency)
  ResourceId pool = kNoPool;
  std::uint16_t sms = 0;  ///< SMs wanted, out of `pool`
  Hold hold = Hold::nothing;
  bool disturbs = false;       ///< the others that run in its pool; a task without one has no neighbours
  double disturbed_speed = 1;  ///< beside one that disturbs, at the most; above 0. 1: it does not mind
};

/// While the task runs at speed s, it takes s * rate of the link.
struct Usage {
  ResourceId link = 0;
  double rate = 0;  ///< in the unit of the link's capacity
};

enum class ResourceKind : std::uint8_t { sm_pool, link };

struct Resource {
  std::string name;
  ResourceKind kind = ResourceKind::link;
  double capacity = 0;  ///< SMs of a pool; anything per second of a link (ours: GB/s)
};

/// What a task counts as in the metrics.
enum class Role : std::uint8_t { compute, communication, host };

/// Everything about a task that the engine does not need and a reader of the timeline does.
/// Ids refer to the name, class, stream and phase tables of the graph.
struct Label {
  NameId name = 0;
  NameId detail = kNoName;  ///< what else is known of it as text
  std::uint16_t task_class = 0;
  std::uint16_t stream = 0;
  std::uint32_t phase = 0;
};

struct TaskClass {
  std::string name;
  Role role = Role::compute;
};

struct Stream {
  std::uint32_t rank = 0;
  std::uint32_t id = 0;  ///< as in a profiler trace: 7 compute, 27 communication
  std::string name;
  Role role = Role::compute;
};

/// One stretch of a program that a profiler would annotate: attn(F) of layer 2, say.
struct Phase {
  std::string name;
  std::uint32_t rank = 0;
  std::uint32_t micro_batch = 0;
  std::uint32_t layer = 0;
  std::uint32_t piece = 0;  ///< of so many that the phase is cut into
  std::uint32_t pieces = 1;
};

}  // namespace moeline
