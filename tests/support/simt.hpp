// Defines calib/bench/primitives.cuh on fibers, so that a kernel runs where there is no GPU. Fragments are laid out
// from the text of the PTX ISA, not from the kernels.
//
// Stricter than the machine: shared memory starts as NaN; a copy lands only when it is waited for; two threads that
// touch a word, one of them writing, must have a barrier between them; lanes of a collective must all come; the eight
// rows of a matrix must lie in different banks. What breaks a rule throws KernelError out of launch().
#pragma once

#include <bit>
#include <cmath>

#include "tests/support/simt_block.hpp"

namespace moeline::testing::simt {

// --- Shared memory --------------------------------------------------------------------------------------------------

template <class Touch>
void touch_words(bench::SharedAddress address, std::size_t bytes, Touch touch) {
  if (address % bytes != 0) fail("shared address " + std::to_string(address) + " is not aligned");
  if (address + bytes > block->shared.size()) fail("shared address " + std::to_string(address) + " is out of bounds");
  for (std::size_t word = address / 4; word < (address + bytes) / 4; ++word) touch(block->words[word]);
}

inline void note_read(bench::SharedAddress address, std::size_t bytes, int reader) {
  touch_words(address, bytes, [&](Word& word) {
    if (word.copier >= 0) fail("reads shared memory while a copy to it is on its way");
    if (word.written == block->epoch && word.writer != reader)
      fail("reads what another thread wrote, no barrier between");
    word.reader = word.read == block->epoch && word.reader != reader ? kMany : reader;
    word.read = block->epoch;
  });
}

inline void check_write(const Word& word, int writer) {
  if (word.copier >= 0) fail("writes shared memory while a copy to it is on its way");
  if (word.read == block->epoch && word.reader != writer)
    fail("overwrites what another thread reads, no barrier between");
  if (word.written == block->epoch && word.writer != writer)
    fail("overwrites what another thread wrote, no barrier between");
}

inline void write_shared(bench::SharedAddress address, const void* bytes, std::size_t count) {
  touch_words(address, count, [](Word& word) {
    check_write(word, block->current);
    word.written = block->epoch;
    word.writer = block->current;
  });
  std::memcpy(&block->shared[address], bytes, count);
}

inline void land(const Copy& copy) {
  touch_words(copy.shared, 16, [](Word& word) { word.copier = -1; });
  const std::array<unsigned char, 16> zeros{};
  write_shared(copy.shared, copy.valid ? copy.global : zeros.data(), zeros.size());
}

// --- Matrices -------------------------------------------------------------------------------------------------------

struct MatrixLoad {
  bench::Fragment* matrices;
  bench::SharedAddress row;
};

inline std::uint16_t shared_element(bench::SharedAddress row, std::size_t column) {
  std::uint16_t element;
  std::memcpy(&element, &block->shared[row + 2 * column], sizeof element);
  return element;
}

inline void check_banks(const std::array<bench::SharedAddress, 8>& rows) {
  unsigned banks = 0;
  for (bench::SharedAddress row : rows) banks |= 1u << (row / 16 % 8);
  if (banks != 0xff) fail("rows of a matrix lie in the same banks");
}

// ldmatrix: the lane holds elements 2c and 2c + 1 of row r, where r = lane / 4, c = lane % 4; transposed, of column r.
template <bool kTransposed>
void load_matrices(const Lanes& lanes) {
  const int first = block->current / kLanes * kLanes;
  for (std::size_t m = 0; m < 4; ++m) {
    std::array<bench::SharedAddress, 8> rows;
    for (std::size_t r = 0; r < 8; ++r) {
      rows[r] = static_cast<MatrixLoad*>(lanes[8 * m + r])->row;
      note_read(rows[r], 16, first + static_cast<int>(8 * m + r));
    }
    check_banks(rows);
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const std::size_t major = lane / 4, minor = lane % 4 * 2;
      const std::uint32_t low = kTransposed ? shared_element(rows[minor], major) : shared_element(rows[major], minor);
      const std::uint32_t high =
          kTransposed ? shared_element(rows[minor + 1], major) : shared_element(rows[major], minor + 1);
      (*static_cast<MatrixLoad*>(lanes[lane])->matrices)[m] = low | high << 16;
    }
  }
}

struct Product {
  float (*sum)[4];
  const bench::Fragment* a;
  std::uint32_t b[2];
};

// mma.m16n8k16: with group = lane / 4 and t = lane % 4, elements of
// a: row = group (registers 0, 2) or group + 8 (1, 3), column = 2t + half, + 8 in registers 2 and 3;
// b: row = 2t + half, + 8 in register 1, column = group;
// sum: row = group (0, 1) or group + 8 (2, 3), column = 2t + (index & 1).
inline void multiply(const Lanes& lanes) {
  float a[16][16], b[16][8];
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    const Product& product = *static_cast<Product*>(lanes[lane]);
    const std::size_t group = lane / 4, t = lane % 4;
    for (std::size_t half = 0; half < 2; ++half) {
      for (std::size_t i = 0; i < 4; ++i)
        a[group + (i % 2) * 8][2 * t + half + (i / 2) * 8] = bench::element((*product.a)[i], static_cast<int>(half));
      for (std::size_t i = 0; i < 2; ++i)
        b[2 * t + half + i * 8][group] = bench::element(product.b[i], static_cast<int>(half));
    }
  }
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    const Product& product = *static_cast<Product*>(lanes[lane]);
    for (std::size_t i = 0; i < 4; ++i) {
      const std::size_t row = lane / 4 + (i / 2) * 8, column = lane % 4 * 2 + i % 2;
      for (std::size_t k = 0; k < 16; ++k) (*product.sum)[i] += a[row][k] * b[k][column];
    }
  }
}

struct Shuffle {
  float value, result;
  int lanes;
};

inline void shuffle(const Lanes& lanes) {
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    Shuffle& own = *static_cast<Shuffle*>(lanes[lane]);
    own.result = static_cast<Shuffle*>(lanes[lane ^ static_cast<std::size_t>(own.lanes)])->value;
  }
}

}  // namespace moeline::testing::simt

// --- The primitives -------------------------------------------------------------------------------------------------

namespace moeline::bench {

namespace simt = testing::simt;

template <class T>
T load_wide(const void* memory) {
  if (std::bit_cast<std::uintptr_t>(memory) % alignof(T) != 0) simt::fail("loads from an address that is not aligned");
  T value;
  std::memcpy(&value, memory, sizeof value);
  return value;
}

template <class T>
void store_wide(void* memory, const T& value) {
  if (std::bit_cast<std::uintptr_t>(memory) % alignof(T) != 0) simt::fail("stores to an address that is not aligned");
  std::memcpy(memory, &value, sizeof value);
}

inline SharedAddress shared_memory() { return 0; }

inline float load_shared(SharedAddress address) {
  simt::note_read(address, 4, simt::block->current);
  float value;
  std::memcpy(&value, &simt::block->shared[address], sizeof value);
  return value;
}

inline void load_shared_pair(SharedAddress address, float& first, float& second) {
  if (address % 8 != 0) simt::fail("a pair of floats is not aligned");
  first = load_shared(address);
  second = load_shared(address + 4);
}

inline void store_shared(SharedAddress address, float value) { simt::write_shared(address, &value, sizeof value); }
inline void store_shared(SharedAddress address, std::uint32_t value) {
  simt::write_shared(address, &value, sizeof value);
}

inline void copy_async(SharedAddress shared, const void* global, bool valid) {
  if (std::bit_cast<std::uintptr_t>(global) % 16 != 0) simt::fail("copies from an address not aligned to 16 bytes");
  simt::touch_words(shared, 16, [](simt::Word& word) {
    simt::check_write(word, simt::block->current);
    word.copier = simt::block->current;
  });
  simt::current_thread().copies.push_back({shared, global, valid});
}

inline void wait_copies() {
  for (const simt::Copy& copy : simt::current_thread().copies) simt::land(copy);
  simt::current_thread().copies.clear();
}

inline void synchronize_block() {
  simt::Block& block = *simt::block;
  if (++block.at_barrier < static_cast<int>(block.threads.size())) return simt::sleep();
  block.at_barrier = 0;
  ++block.epoch;
  for (int thread = 0; thread < static_cast<int>(block.threads.size()); ++thread)
    if (thread != block.current) block.ready.push_back(thread);
}

inline void load_matrices(Fragment& matrices, SharedAddress row) {
  simt::MatrixLoad operands{&matrices, row};
  simt::meet_warp(simt::load_matrices<false>, &operands);
}

inline void load_matrices_transposed(Fragment& matrices, SharedAddress row) {
  simt::MatrixLoad operands{&matrices, row};
  simt::meet_warp(simt::load_matrices<true>, &operands);
}

inline void multiply_add(float (&sum)[4], const Fragment& a, std::uint32_t b_low, std::uint32_t b_high) {
  simt::Product operands{&sum, &a, {b_low, b_high}};
  simt::meet_warp(simt::multiply, &operands);
}

inline float shuffle_xor(float value, int lanes) {
  simt::Shuffle operands{value, 0, lanes};
  simt::meet_warp(simt::shuffle, &operands);
  return operands.result;
}

inline int same_in_warp(int value) { return value; }

inline float exp2_fast(float value) { return std::exp2(value); }

inline std::uint32_t pack_bf16(float low, float high) {
  return to_bf16(low).bits | static_cast<std::uint32_t>(to_bf16(high).bits) << 16;
}

inline void atomic_add_pair(float* target, float first, float second) {
  target[0] += first;
  target[1] += second;
}

}  // namespace moeline::bench
