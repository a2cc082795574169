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

/// A cache of lowered programs, looked up by the tape that records the program again. It keeps at
/// most 16 programs, and at most `most_cached` bytes unless the last two take more.
class LoweredStore {
 public:
  /// The input of a lookup.
  struct Request {
    std::span<const ValueId> targets;
    NodeId backward_begins;
    std::span<const NodeId> supplied;
    int threads;
    Machine machine = {};
    const Profile* costs = nullptr;  ///< null without measured costs
    bool results_elsewhere = false;  ///< as `Lowered::place_results_elsewhere`
    bool afresh = false;             ///< present values are treated as absent
  };

  using Form = GraphForm;

  /// A cached program. Each form is lowered when it is first requested.
  class Program {
   public:
    /// `Lowered::fused` of the tape that was looked up; without `fuse`, `Lowered::unfused`.
    const std::shared_ptr<const Lowered>& get(const Tape& tape, const Request& request, Form form);
    /// Approximate bytes of this object.
    Bytes bytes() const;
    /// True when simplification changes the program.
    bool is_simplified() const { return !simplification_.empty(); }
    /// True when simplification may extend the lifetime of values.
    bool holds_longer() const { return simplification_.holds_longer(); }
    /// The budgets chosen for caches, by planner and requested budget.
    std::map<std::pair<std::string, Bytes>, Bytes>& cache_budgets() { return cache_budgets_; }
    /// The budget chosen because of little free memory, for runs without a budget.
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

  /// The program that the tape recorded. If its attributes no longer satisfy a simplification, that
  /// simplification is undone for this and later runs.
  const std::shared_ptr<Program>& find_or_make(const Tape& tape, const Request& request);
  /// Approximate bytes kept.
  Bytes bytes() const;

 private:
  std::list<std::shared_ptr<Program>> programs_;  // most recently used first
  std::vector<std::uint64_t> signature_;
};

}  // namespace palimpsest
