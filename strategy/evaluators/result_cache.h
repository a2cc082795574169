#pragma once

#include <map>
#include <vector>

#include "autodiff/tape.h"
#include "checkpoint/meter.h"
#include "checkpoint/stores/hash.h"

namespace palimpsest {

/// Results that are kept from run to run: those of nodes that everything they depend on leaves as
/// it was, leaves by a hash of their contents, where something that changes reads them. They are
/// known by their place on the tape; a tape is compared with the one of the run before.
class ResultCache {
 public:
  explicit ResultCache(Meter meter) : meter_(std::move(meter)) {}

  /// Before a run that computes `targets`: what is kept becomes present on the tape, and what is to
  /// be kept joins the targets.
  void begin(Tape& tape, std::vector<ValueId>& targets);
  /// After the run: keeps copies, and takes off the tape what only this asked for.
  void end(Tape& tape);
  /// Instead, after a run that failed: takes off the tape what was put there.
  void abandon(Tape& tape);
  /// Bytes that are kept, or will be at the end of the run at hand.
  Bytes bytes() const;
  /// The same, and bytes of copies that the caller is given at the end of the run at hand.
  Bytes taken() const;
  /// Values of the run at hand, or the last one, that were kept before.
  std::uint32_t used() const { return static_cast<std::uint32_t>(put_.size()); }

 private:
  std::vector<bool> needed_nodes(const Tape& tape, const std::vector<ValueId>& targets) const;
  /// True for nodes that do what they did in the run before, with the same.
  std::vector<bool> find_unchanged(const Tape& tape, const std::vector<bool>& needed);
  /// Of these, the ones that targets or changed nodes read.
  std::vector<NodeId> find_ends(const Tape& tape, const std::vector<ValueId>& targets,
                                const std::vector<bool>& needed,
                                const std::vector<bool>& unchanged) const;

  Meter meter_;
  Tape last_;                    // what was recorded in the run before
  std::vector<Hash128> hashes_;  // of its leaves that were needed, by node
  std::vector<bool> hashed_;     // by node
  std::map<ValueId, Buffer> kept_;
  // Of the run at hand.
  std::vector<bool> reads_leaves_;                // by node, directly or not
  std::vector<bool> asked_;                       // by value: the caller's target
  std::vector<ValueId> put_;                      // on the tape
  std::map<ValueId, std::vector<ValueId>> lent_;  // of these, with what was asked for there
  std::map<ValueId, Bytes> to_keep_;
};

}  // namespace palimpsest
