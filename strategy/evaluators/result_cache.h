#pragma once

#include <map>
#include <span>
#include <vector>

#include "autodiff/tape.h"
#include "checkpoint/meter.h"
#include "checkpoint/stores/hash.h"

namespace palimpsest {

/// Keeps results from run to run. A node's result is kept if its inputs have not changed since the
/// previous run, and a target or a changed node reads it. Leaves are compared by a hash of their
/// contents. Values are identified by their position on the tape: each tape is compared with the
/// previous one.
class ResultCache {
 public:
  explicit ResultCache(Meter meter) : meter_(std::move(meter)) {}

  /// Call before a run that computes `targets`. Makes kept values present on the tape, and adds
  /// values to be kept to `targets`.
  void begin(Tape& tape, std::vector<ValueId>& targets);
  /// Call after the run. Keeps the new values, and drops those that only the cache requested.
  void end(Tape& tape);
  /// Call instead of `end` after a run that failed. Drops the values that `begin` put on the tape.
  void abandon(Tape& tape);
  /// Bytes kept now, or at the end of the current run.
  Bytes bytes() const;
  /// Bytes that were kept before the current run and still are.
  Bytes held() const;
  /// Bytes of the copies that `end` makes of targets, since the caller may modify their tensors.
  Bytes copied() const;
  /// Bytes of all of that, and of the targets, when the current run ends. Equal targets may share
  /// storage until `end` copies it. Each counts.
  Bytes at_end(const Tape& tape, std::span<const ValueId> targets) const;
  /// Whether the current run makes values to keep. They must have storage of their own.
  bool makes_any() const { return !to_keep_.empty(); }
  /// Whether kept values take memory during the current run.
  bool takes_any() const { return makes_any() || held() + copied() > 0; }
  /// Number of kept values that the current or last run used.
  std::uint32_t used() const { return static_cast<std::uint32_t>(put_.size()); }

 private:
  std::vector<bool> needed_nodes(const Tape& tape, const std::vector<ValueId>& targets) const;
  /// True for nodes that are the same as in the previous run and whose inputs have not changed.
  std::vector<bool> find_unchanged(const Tape& tape, const std::vector<bool>& needed);
  /// The unchanged nodes that are targets or that changed nodes read.
  std::vector<NodeId> find_ends(const Tape& tape, const std::vector<ValueId>& targets,
                                const std::vector<bool>& needed,
                                const std::vector<bool>& unchanged) const;
  /// Drops kept values whose storage others hold too.
  void forget_shared();

  Meter meter_;
  Tape last_;                    // nodes of the previous run's tape
  std::vector<Hash128> hashes_;  // hashes of its needed leaves, by node
  std::vector<bool> hashed_;     // by node
  std::map<ValueId, Buffer> kept_;
  // The current run.
  std::vector<bool> reads_leaves_;                // by node: directly or indirectly
  std::vector<bool> asked_;                       // by value: a target of the caller
  std::vector<bool> is_result_;                   // by value: its storage is that of a target
  std::vector<ValueId> put_;                      // on the tape
  std::map<ValueId, std::vector<ValueId>> lent_;  // by value of `put_`: the targets that share it
  std::map<ValueId, Bytes> to_keep_;
};

}  // namespace palimpsest
