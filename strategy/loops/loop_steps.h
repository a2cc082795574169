#pragma once

#include <memory>

#include "strategy/loops/loop.h"

namespace palimpsest {

/// What every step of a run of a loop is given beside the state.
class LoopArguments {
 public:
  LoopArguments(const Loop& loop, const KernelCall& call);

  /// All arguments of step `step` from `state` on; valid until the next call.
  Addresses& of(std::uint32_t step, const Addresses& state);
  /// The loop's first state.
  const Addresses& first() const { return first_; }
  /// Random operations of different steps, and of different runs, draw from different streams.
  std::uint32_t round_of(std::uint32_t step) const { return round_ * spread_ + step; }

 private:
  std::uint32_t round_;
  std::uint32_t spread_;  // between the streams of two runs
  Addresses first_;
  Parts inputs_;
  Addresses captured_;
  std::int64_t number_ = 0;
  Addresses list_;
};

/// Runs steps of a loop, in some memory.
class LoopSteps {
 public:
  virtual ~LoopSteps() = default;
  /// Whether the loop goes on from `state`, which step `step` would read.
  virtual bool goes_on(std::uint32_t step, const Addresses& state) = 0;
  /// Makes the next state, and behind it the outputs, if `with_outputs`.
  virtual void forward(std::uint32_t step, const Addresses& state, const Addresses& results,
                       bool with_outputs) = 0;
  /// From the adjoints that a `LoopGradient` names to those it gives.
  virtual void backward(std::uint32_t step, const Addresses& state, const Addresses& adjoints,
                        const Addresses& results) = 0;
  /// By captured value asked for: no step so far has added anything to its adjoint.
  virtual const std::vector<bool>& untouched() const = 0;
};

/// The steps of `loop` forward, and of `gradient` backward unless that is null. `memory` holds as
/// many bytes as `step_memory` says for the same `share`, the budget that a step is planned in, and
/// the same `ahead`: one step may run forward while another one runs backward.
std::unique_ptr<LoopSteps> make_steps(const Loop& loop, const LoopGradient* gradient,
                                      LoopArguments& arguments, std::span<std::byte> memory,
                                      int threads, Bytes share, bool ahead);
Bytes step_memory(const Loop& loop, const LoopGradient* gradient, int threads, Bytes share,
                  bool ahead);
/// The smallest share.
Bytes smallest_share(const Loop& loop, const LoopGradient* gradient, int threads);

}  // namespace palimpsest
