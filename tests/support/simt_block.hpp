// A GPU block on one CPU core: a fiber per CUDA thread, which runs until it must wait for others. A kernel's tests
// include simt.hpp.
#pragma once

#include <ucontext.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "calib/bench/primitives.cuh"  // threadIdx, blockIdx

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

namespace moeline::testing::simt {

struct KernelError : std::logic_error {
  using std::logic_error::logic_error;
};

// --- Fibers ---------------------------------------------------------------------------------------------------------

struct Fiber {
  ucontext_t context;
  const void* stack = nullptr;  // null: the stack of launch(), unknown until a fiber came from it
  std::size_t stack_bytes = 0;
  void* sanitizer_state = nullptr;
};

inline Fiber* previous_fiber = nullptr;

// AddressSanitizer must know which stack it walks on.
inline void arrived_at([[maybe_unused]] Fiber& fiber) {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fiber.sanitizer_state, &previous_fiber->stack, &previous_fiber->stack_bytes);
#endif
}

inline void switch_fiber(Fiber& from, Fiber& to) {
  previous_fiber = &from;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&from.sanitizer_state, to.stack, to.stack_bytes);
#endif
  swapcontext(&from.context, &to.context);
  arrived_at(from);
}

// --- A block --------------------------------------------------------------------------------------------------------

constexpr int kLanes = 32;
constexpr std::size_t kStackBytes = 128 * 1024;

struct Copy {
  bench::SharedAddress shared;
  const void* global;
  bool valid;
};

struct Thread {
  Fiber fiber;
  std::unique_ptr<char[]> stack{new char[kStackBytes]};
  std::vector<Copy> copies;  // begun, not yet waited for
};

using Lanes = std::array<void*, kLanes>;          // each lane's operands
using Collective = void (*)(const Lanes& lanes);  // what a warp does once all lanes have come

struct Warp {
  Lanes operands;
  Collective collective = nullptr;
  int arrived = 0;
};

// The last touches of a word of shared memory; epochs count barriers.
struct Word {
  int written = -1, writer = -1;
  int read = -1, reader = -1;  // reader kMany: several
  int copier = -1;             // the thread whose copy is on its way
};
constexpr int kMany = -2;

struct Block {
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  std::deque<int> ready;
  int current = 0, at_barrier = 0, finished = 0, epoch = 0;
  Fiber launcher;
  std::exception_ptr error;
  std::vector<unsigned char> shared;
  std::vector<Word> words;
  const std::function<void()>* body = nullptr;
};

inline Block* block = nullptr;

[[noreturn]] inline void fail(const std::string& what) {
  throw KernelError("block " + std::to_string(blockIdx.x) + "," + std::to_string(blockIdx.y) + "," +
                    std::to_string(blockIdx.z) + " thread " + std::to_string(threadIdx.x) + ": " + what);
}

inline void resume(int thread, Fiber& from) {
  block->current = thread;
  threadIdx.x = static_cast<unsigned>(thread);
  switch_fiber(from, block->threads[static_cast<std::size_t>(thread)].fiber);
}

inline Thread& current_thread() { return block->threads[static_cast<std::size_t>(block->current)]; }

// The current thread sleeps until another one puts it among the ready.
inline void sleep() {
  if (block->ready.empty()) fail("waits for threads that are gone or wait elsewhere");
  const int next = block->ready.front();
  block->ready.pop_front();
  resume(next, current_thread().fiber);
}

inline void fiber_main() {
  arrived_at(current_thread().fiber);
  try {
    (*block->body)();
    if (!current_thread().copies.empty()) fail("ended with copies not waited for");
    ++block->finished;
    if (!block->ready.empty()) sleep();
    if (block->finished < static_cast<int>(block->threads.size())) fail("ended where others wait for it");
  } catch (...) {
    block->error = std::current_exception();
  }
  switch_fiber(current_thread().fiber, block->launcher);  // for good
}

inline void run_block(std::size_t shared_bytes) {
  block->shared.assign(shared_bytes, 0xff);
  block->words.assign((shared_bytes + 3) / 4, Word{});
  block->ready.clear();
  block->finished = block->at_barrier = block->epoch = 0;
  for (Warp& warp : block->warps) warp = Warp{};
  for (std::size_t i = 0; i < block->threads.size(); ++i) {
    Thread& thread = block->threads[i];
    thread.copies.clear();
    thread.fiber = {{}, thread.stack.get(), kStackBytes, nullptr};
    getcontext(&thread.fiber.context);
    thread.fiber.context.uc_stack.ss_sp = thread.stack.get();
    thread.fiber.context.uc_stack.ss_size = kStackBytes;
    makecontext(&thread.fiber.context, fiber_main, 0);
    if (i > 0) block->ready.push_back(static_cast<int>(i));
  }
  resume(0, block->launcher);
  if (block->error) std::rethrow_exception(block->error);
}

// Runs `body` once per thread of each block of the grid, block after block. `threads` is a multiple of 32.
inline void launch(BenchIndex grid, int threads, std::size_t shared_bytes, const std::function<void()>& body) {
  Block state;
  state.threads.resize(static_cast<std::size_t>(threads));
  state.warps.resize(static_cast<std::size_t>(threads / kLanes));
  state.body = &body;
  block = &state;
  for (blockIdx.z = 0; blockIdx.z < grid.z; ++blockIdx.z)
    for (blockIdx.y = 0; blockIdx.y < grid.y; ++blockIdx.y)
      for (blockIdx.x = 0; blockIdx.x < grid.x; ++blockIdx.x) run_block(shared_bytes);
}

// --- Meeting points -------------------------------------------------------------------------------------------------

inline void meet_warp(Collective collective, void* operands) {
  const int first = block->current / kLanes * kLanes;
  Warp& warp = block->warps[static_cast<std::size_t>(first / kLanes)];
  if (warp.arrived > 0 && warp.collective != collective) fail("lanes of a warp are at different collectives");
  warp.collective = collective;
  warp.operands[static_cast<std::size_t>(block->current - first)] = operands;
  if (++warp.arrived < kLanes) return sleep();
  warp.arrived = 0;
  collective(warp.operands);
  for (int thread = first; thread < first + kLanes; ++thread)
    if (thread != block->current) block->ready.push_back(thread);
}

}  // namespace moeline::testing::simt
