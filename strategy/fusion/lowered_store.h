#pragma once

#include <list>
#include <memory>
#include <span>
#include <vector>

#include "strategy/fusion/lowered.h"

namespace palimpsest {

/// What an engine made of the tapes it ran, found again when the same program is recorded anew.
class LoweredStore {
 public:
  /// What is asked of a tape.
  struct Request {
    std::span<const ValueId> targets;
    NodeId backward_begins;
    std::span<const NodeId> supplied;
    int threads;
  };

  /// `Lowered::fused` or, without `fuse`, `Lowered::unfused`.
  std::shared_ptr<const Lowered> find_or_make(const Tape& tape, const Request& request, bool fuse);

 private:
  struct Entry {
    std::vector<std::uint64_t> signature;
    std::shared_ptr<const Lowered> lowered;
  };

  std::list<Entry> entries_;  // most recently used first
  std::vector<std::uint64_t> signature_;
};

}  // namespace palimpsest
