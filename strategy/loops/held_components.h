#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "strategy/loops/loop_disk.h"
#include "strategy/loops/state_codec.h"
#include "strategy/loops/step_programs.h"

namespace palimpsest {

class Loop;

/// By component of the state: whether any of `results`, values of a step's tape, depends on it.
std::vector<bool> components_read(const Tape& tape, std::span<const ValueId> state,
                                  std::span<const ValueId> results);
/// Adds the components on which these depend from step to step, and those on which `outputs` of a
/// step do.
void add_components_needed(const Loop& loop, std::vector<bool>& components,
                           std::span<const ValueId> outputs = {});

/// Which components of a loop's state are held for its derivatives, and how. Derivatives of a step
/// read some, and steps need others to make these again. This is the analysis "to be
/// recorded" (Hascoët, Naumann and Pascual, 2005), for the state of a loop. A held state has no
/// bytes for other components.
class HeldComponents {
 public:
  /// The loop must outlive it.
  HeldComponents(const Loop& loop, std::vector<bool> components);
  HeldComponents(const HeldComponents&) = delete;
  HeldComponents& operator=(const HeldComponents&) = delete;

  const Loop& loop() const { return loop_; }
  bool are_all() const { return count_ == components_.size(); }
  /// Then states are neither held nor made again.
  bool are_none() const { return count_ == 0; }
  /// The indices of those that are held.
  std::vector<std::uint32_t> list() const;

  /// A number for each set of components, less than 2¹³; 0 if they are all. Loops of more than 12
  /// components hold all of them or none.
  std::uint64_t key() const { return key_of(components_); }
  static std::uint64_t key_of(const std::vector<bool>& components);
  /// The components with this key, of a loop with so many.
  static std::vector<bool> with_key(std::uint64_t key, std::size_t count);

  /// The layout of a state.
  const StateBlock& block() const { return block_; }
  const StateCodec& codec() const { return codec_; }
  /// Bytes for decoding a state.
  Bytes decoded_bytes() const { return codec_.is_exact() ? 0 : block_.bytes; }
  /// Null where states are held in memory only.
  const LoopDisk* disk() const { return disk_.get(); }

  /// Programs from state, inputs, captured values and step number to the held components of the
  /// next state. Null if there are none.
  const StepPrograms* advance() const { return advance_ ? &*advance_ : nullptr; }
  /// The cost of running a step once, planned within `budget`.
  Cost cost(Bytes budget = unlimited) const { return advance_ ? advance_->cost(budget) : Cost{}; }
  /// Predicted seconds of running it.
  double seconds(int threads, Bytes budget = unlimited) const;
  /// The workspace of running it.
  Bytes workspace(int threads, Bytes budget) const;

  /// The held components of a state with the addresses `state`.
  void choose(const Addresses& state, Addresses& chosen) const;
  /// Replaces the addresses of the other components by those in `others`.
  void complete(Addresses& state, const Addresses& others) const;

 private:
  const Loop& loop_;
  std::vector<bool> components_;
  std::size_t count_;
  StateBlock block_;
  StateCodec codec_;
  std::optional<StepPrograms> advance_;
  std::unique_ptr<const LoopDisk> disk_;
};

}  // namespace palimpsest
