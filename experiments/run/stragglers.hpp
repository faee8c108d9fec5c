// A program in fewer pieces: kernels that follow each other and meet nothing on the way count as one.
#pragma once

#include <boost/container/small_vector.hpp>

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "base/random.hpp"
#include "engine/timeline.hpp"
#include "schedules/lowering/program.hpp"

namespace moeline {

struct Chain {
  boost::container::small_vector<TaskId, 8> tasks;          ///< in order
  boost::container::small_vector<std::uint32_t, 2> before;  ///< chains whose ends it waits for
};

struct Chains {
  std::vector<Chain> list;  ///< every chain after those it waits for
  std::vector<std::uint32_t> of_task;
};

/// Tasks of one phase of which each waits for the one before alone, and nothing else does. Communication is never
/// joined to anything. Those that stand for the slowest rank (Meeting::wait) are in none.
/// REQUIRES: beside theirs, edges from ends to starts alone.
[[nodiscard]] Chains chains_of(const Program& program);

// All ranks go through the same program at once, by max and plus instead of by events: fast, and good for what one rank
// waits for the others.

inline constexpr std::size_t kNoMeeting = SIZE_MAX;

/// How long one chain of kernels takes a rank: us + clocked_us x (slowness - 1) + rows_us x (rows - 1) + jitter_us x a
/// normal number + scatter_us x another, which ranks that share experts have in common, + one of by_load.longer, the
/// same of these ranks and of all chains of a phase; and what it loses while communication of its rank holds SMs.
struct ChainTime {
  double us = 0;           ///< with no SMs held by communication
  double clocked_us = 0;   ///< that go by the SMs' clock
  double rows_us = 0;      ///< for each unit of rows over their mean
  double jitter_us = 0;    ///< of independent kernels, standard deviation
  double scatter_us = 0;   ///< by the rows that experts happen to get, standard deviation
  double lost_share = 0;   ///< of its speed, while communication holds SMs
  int rows_of = 0;         ///< which draw of rows
  double others_rows = 1;  ///< mean rows of the other ranks over rank 0's
  bool holds_sms = false;  ///< is itself communication that does
  bool computes = false;
  TimesByLoad by_load{};             ///< us, by what its experts get: beyond the mean
  std::uint64_t draws_of = 0;        ///< the phase, layer and micro-batch whose draw it takes
  std::size_t arrives = kNoMeeting;  ///< where its end, of a barrier its start, is waited for
  std::size_t leaves = kNoMeeting;   ///< it starts when all have arrived there
  Time at{};  ///< orders the chains: every one after those it waits for, and after communication that starts during it
};

struct TimedChains {
  Chains chains;
  std::vector<ChainTime> times;      ///< by chain
  std::vector<std::uint32_t> order;  ///< of the chains
};

/// From the timeline of the rank alone. `more_rows`: the timeline with `step` more rows; empty: rows do not matter.
[[nodiscard]] TimedChains timed_chains(const Setup& setup, const Program& alone, const Timeline& timeline,
                                       const Timeline& more_rows, double step);

/// One draw after the other. Rank 0 is the rank of the program, at its speed. In training, whose kernels were timed on
/// one rank of a measured run, nothing of it is drawn: with its rows and times it is that rank.
class StragglerDraws {
 public:
  /// `slowness`: of each rank (rank_variation.hpp). REQUIRES: all but that outlive it.
  StragglerDraws(const Setup& setup, const Program& alone, const TimedChains& chains,
                 const std::vector<double>& slowness);
  void run(std::uint64_t draw);
  /// Of the last draw, from the end of rank 0's work before the meeting until the slowest rank's.
  [[nodiscard]] double wait_us(const Meeting& meeting) const;
  /// When the last rank ends, in the last draw.
  [[nodiscard]] double end_us() const;

 private:
  struct Held {
    std::vector<double> from, until;  // us, by rank
  };
  void pass(std::uint32_t number);
  [[nodiscard]] const double* starts_of(std::uint32_t number);
  void draw_times(std::uint32_t number);
  void scatter_times(std::uint32_t number);
  void load_times(const ChainTime& chain);
  void lose_to_held(const ChainTime& chain, const double* starts, double* ends) const;
  void meet(const ChainTime& chain, const double* starts, double* ends);
  /// `until` may be `from`.
  void wait_for_all(std::size_t meeting, const double* from, double* until) const;
  /// Ranks that meet there.
  [[nodiscard]] std::size_t group_of(const Meeting& meeting) const;
  [[nodiscard]] double held_us(std::size_t rank, double from, double until) const;
  [[nodiscard]] const std::vector<double>& rows(int index);
  [[nodiscard]] double* ends_of(std::uint32_t chain) { return ends_.get() + chain * ranks_; }
  [[nodiscard]] const double* ends_of(std::uint32_t chain) const { return ends_.get() + chain * ranks_; }

  const Setup& setup_;
  const Program& alone_;
  const TimedChains& chains_;
  std::size_t ranks_;
  Random random_{0};
  std::size_t sharing_;  // ranks that share experts, and what these get
  bool first_is_drawn_;
  bool scatters_rows_ = false;       // some chain has scatter_us
  std::vector<std::uint32_t> last_;  // chains that no other waits for
  std::uint64_t draw_ = 0;
  Normals jitters_;                               // by chain and rank
  Normals scatters_;                              // the same, of which the first of sharing ranks has theirs
  std::vector<double> slower_;                    // than the mean GPU, by rank
  std::map<int, std::vector<double>> rows_;       // relative to the mean, by rank
  std::vector<std::vector<double>> all_arrived_;  // us, by meeting and group
  std::vector<double> nobody_;                    // that a first chain waits for: it starts at 0
  std::vector<double> starts_, times_;            // us, by rank, of the chain that passes
  std::vector<std::size_t> loads_;                // of the chain that passes, by ranks that share experts
  std::unique_ptr<double[]> ends_;                // us, by chain and rank
  std::vector<Held> held_;                        // in order
};

}  // namespace moeline
