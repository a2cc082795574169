#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "strategy/compile/fusion/lowered.h"

namespace palimpsest {

class Profile;

/// What an engine made of the tapes it ran, found again when the same program is recorded anew.
/// Kept are 16 programs at most, and `most_cached` bytes unless the last two take more.
class LoweredStore {
 public:
  /// What is asked of a tape.
  struct Request {
    std::span<const ValueId> targets;
    NodeId backward_begins;
    std::span<const NodeId> supplied;
    int threads;
    Machine machine = {};
    const Profile* costs = nullptr;  ///< may be null
    bool results_elsewhere = false;  ///< as `Lowered::place_results_elsewhere`
    bool afresh = false;             ///< what is present is taken for absent
  };

  using Form = GraphForm;

  /// A program, in each form once that was asked for.
  class Program {
   public:
    /// `Lowered::fused` or, without `fuse`, `Lowered::unfused` of the tape that was looked up.
    const std::shared_ptr<const Lowered>& get(const Tape& tape, const Request& request, Form form);
    /// Bytes that it takes itself, about.
    Bytes bytes() const;
    /// True when something can be simplified.
    bool is_simplified() const { return !simplification_.empty(); }
    /// True when that may hold values for longer.
    bool holds_longer() const { return simplification_.holds_longer(); }
    /// Budgets that were chosen for caches, by planner and budget asked for.
    std::map<std::pair<std::string, Bytes>, Bytes>& cache_budgets() { return cache_budgets_; }
    /// The budget that was chosen for want of memory, for runs that have none.
    std::optional<Bytes>& free_budget() { return free_budget_; }

   private:
    friend class LoweredStore;
    void simplify(const Tape& tape, const Request& request, const Simplification* before);

    std::vector<std::uint64_t> signature_;
    Simplification simplification_;
    std::map<std::pair<std::string, Bytes>, Bytes> cache_budgets_;
    std::optional<Bytes> free_budget_;
    std::shared_ptr<const Lowered> forms_[2][2];  // by `fuse`, `simplify`
  };

  /// The program that the tape holds. Where its numbers are not those that it was simplified by,
  /// what depended on them is as recorded from now on.
  const std::shared_ptr<Program>& find_or_make(const Tape& tape, const Request& request);
  /// Bytes that are kept, about.
  Bytes bytes() const;

 private:
  std::list<std::shared_ptr<Program>> programs_;  // most recently used first
  std::vector<std::uint64_t> signature_;
};

}  // namespace palimpsest
