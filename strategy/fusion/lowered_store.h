#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <vector>

#include "strategy/fusion/lowered.h"

namespace palimpsest {

class Profile;

/// What an engine made of the tapes it ran, found again when the same program is recorded anew.
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
  };

  /// A program, in either form once that was asked for.
  class Program {
   public:
    /// `Lowered::fused` or, without `fuse`, `Lowered::unfused` of the tape that was looked up.
    const std::shared_ptr<const Lowered>& get(const Tape& tape, const Request& request, bool fuse);

   private:
    friend class LoweredStore;
    std::vector<std::uint64_t> signature_;
    std::shared_ptr<const Lowered> fused_;
    std::shared_ptr<const Lowered> unfused_;
  };

  /// The program that the tape holds.
  const std::shared_ptr<Program>& find_or_make(const Tape& tape, const Request& request);

 private:
  std::list<std::shared_ptr<Program>> programs_;  // most recently used first
  std::vector<std::uint64_t> signature_;
};

}  // namespace palimpsest
