#pragma once

#include <functional>
#include <memory>

#include "strategy/base/options.h"
#include "strategy/loops/loop.h"
#include "strategy/run/buffer_runner.h"

namespace palimpsest {

/// The arguments of every step of a run, in addition to the state.
class LoopArguments {
 public:
  LoopArguments(const Loop& loop, const KernelCall& call);

  /// All arguments of step `step` with state `state`; valid until the next call. Throws
  /// `StoppedError` if the run is to stop.
  Addresses& of(std::uint32_t step, const Addresses& state);
  /// Begins a step whose other arguments are set already. Returns its `round_of`. Throws likewise.
  Round begin(std::uint32_t step) {
    if (control_ != nullptr) observe(step);
    number_ = step;
    return round_of(step);
  }
  /// Sets those arguments in `runner` that are not the same in every step.
  void set(std::uint32_t step, const Addresses& state, BufferRunner& runner) const {
    std::size_t position = 0;
    for (std::byte* const each : state) runner.set_argument(position++, each);
    inputs_.for_each(step, [&](std::byte* each) { runner.set_argument(position++, each); });
  }
  /// Number of arguments.
  std::size_t count() const { return first_.size() + inputs_.size() + captured_.size() + 1; }
  /// The loop's first state.
  const Addresses& first() const { return first_; }
  /// Stops the run; null if it cannot be stopped.
  RunControl* control() const { return control_; }
  /// The strategy's choice of machine code.
  NativeCode native() const { return native_; }
  /// Whether the run looks for anomalies.
  bool anomaly() const { return anomaly_; }
  /// Random operations use other streams in every step and in every run.
  Round round_of(std::uint32_t step) const { return {round_.run * spread_ + step, round_.part}; }

 private:
  void observe(std::uint32_t step);

  RunControl* control_;
  NativeCode native_;
  bool anomaly_;
  bool is_reported_;                              // a loop within a step of another one is not
  std::uint32_t steps_;                           // 0 where it is not known
  std::uint32_t reported_ = std::uint32_t(none);  // the condition of a step came before it
  Round round_;
  std::uint32_t spread_;  // distance of the streams of two runs
  Addresses first_;
  Parts inputs_;
  Addresses captured_;
  std::int64_t number_ = 0;
  Addresses list_;
};

/// Runs steps of a loop in given memory.
class LoopSteps {
 public:
  /// The values that a step reads and makes. Kept values follow the other results.
  struct Forward {
    const Addresses& state;
    const Addresses& results;
  };
  /// The values that a reversed step reads and makes. The next state and kept values precede the
  /// adjoints.
  struct Backward {
    const Addresses& state;
    const Addresses& adjoints;
    const Addresses& results;
  };

  virtual ~LoopSteps() = default;
  /// Whether the loop continues from `state`, the state before step `step`.
  virtual bool goes_on(std::uint32_t step, const Addresses& state) = 0;
  /// Makes the next state, followed by the outputs if `with_outputs`.
  virtual void forward(std::uint32_t step, const Addresses& state, const Addresses& results,
                       bool with_outputs) = 0;
  /// Reverses a step; arguments and results are those of `LoopGradient::differentiate`.
  virtual void backward(std::uint32_t step, const Addresses& state, const Addresses& adjoints,
                        const Addresses& results) = 0;
  /// Runs `count` steps from `first` on. `of(step)` has the addresses of a step, which are as in an
  /// `AddressRow`; it is called for some of them.
  virtual void forward_row(std::uint32_t first, std::uint32_t count,
                           const std::function<Forward(std::uint32_t step)>& of, bool with_outputs);
  /// Likewise, reverses `count` steps from `first` down.
  virtual void backward_row(std::uint32_t first, std::uint32_t count,
                            const std::function<Backward(std::uint32_t step)>& of);
  /// Notes the native code of the steps, for the report of the run.
  virtual void note_native(RunScope& scope) const = 0;
  /// By requested captured value: no step so far has added anything to its adjoint.
  virtual const std::vector<bool>& untouched() const = 0;
  /// Continues with what an earlier process knew of that.
  virtual void set_untouched(std::vector<bool> untouched) = 0;
};

/// The steps of a loop forward and, unless it is null, of `gradient` backward: then forward steps
/// make held components only. `memory` has the size that `step_memory` gives for the same `share`
/// and `ahead`. `share` is the budget for planning a step. With `ahead`, a step may run forward
/// while another one runs backward.
std::unique_ptr<LoopSteps> make_steps(const HeldComponents& held, const LoopGradient* gradient,
                                      LoopArguments& arguments, std::span<std::byte> memory,
                                      int threads, Bytes share, bool ahead);
Bytes step_memory(const HeldComponents& held, const LoopGradient* gradient, int threads,
                  Bytes share, bool ahead);
/// Steps that `programs` only run forward, or only reverse.
std::unique_ptr<LoopSteps> make_forward_steps(const Loop& loop, const StepPrograms& programs,
                                              LoopArguments& arguments, std::span<std::byte> memory,
                                              int threads);
std::unique_ptr<LoopSteps> make_backward_steps(const Loop& loop, const StepPrograms& programs,
                                               LoopArguments& arguments,
                                               std::span<std::byte> memory, int threads);
/// The smallest budget in which all steps can be planned.
Bytes smallest_share(const HeldComponents& held, const LoopGradient* gradient, int threads);

}  // namespace palimpsest
