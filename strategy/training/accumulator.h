#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strategy/backward.h"
#include "strategy/training/safetensors.h"

namespace palimpsest {

/// What the sum of the gradients of micro-batches is divided by, so that it is the gradient of the
/// loss of all their examples at once.
enum class GradientNormalization : std::uint8_t {
  sum,       ///< 1: losses are sums over examples
  mean,      ///< the number of micro-batches: losses are means over equally many examples
  weighted,  ///< the number of examples, each gradient times its own: means over any numbers
};

struct AccumulatorOptions {
  int steps = 1;  ///< micro-batches of an update
  GradientNormalization normalization = GradientNormalization::mean;
  /// Largest joint 2-norm of the gradients of an update, which are scaled down to it.
  double clip_norm = std::numeric_limits<double>::infinity();
};

struct AccumulatorStatistics {
  std::int64_t accumulation_steps = 0;  ///< micro-batches of an update, as the options say
  std::int64_t micro_batches = 0;       ///< added, in all updates
  std::int64_t updates = 0;             ///< whose gradients were taken
  std::int64_t parameters = 0;
  std::int64_t elements = 0;  ///< of all parameters
  /// Examples in the update at hand or, before its first micro-batch, in the one before.
  std::int64_t effective_batch = 0;
  Bytes buffers = 0;  ///< bytes that sums and gradients of 16 bits take
};

/// Adds up the gradients of several micro-batches, so that an update sees a large batch in the
/// memory of a small one and of a sum for every parameter.
///
/// Sums are f64 for f64 parameters and f32 otherwise; gradients of 16 bits are rounded once, at the
/// end, into a buffer of their own: such a parameter takes 6 bytes for each of its numbers. A sum
/// has its micro-batches in their order, whatever the number of threads, and an update of one has
/// the bits of its gradient. Buffers are made once and used for every update; one whose tensor
/// somebody still holds stays as it is, and another takes its place.
///
/// Every member function that throws leaves the accumulator, its sums among the rest, as it was;
/// but when memory runs out while an update is taken, it can only be taken again, or reset.
/// For one thread at a time; work runs in parallel in the caller's TBB arena.
class GradientAccumulator {
 public:
  /// Throws `ArgumentError` unless there is at least one step and the norm to clip to is positive.
  explicit GradientAccumulator(AccumulatorOptions options = {});
  GradientAccumulator(const GradientAccumulator&) = delete;
  GradientAccumulator& operator=(const GradientAccumulator&) = delete;
  GradientAccumulator(GradientAccumulator&&) noexcept = default;
  GradientAccumulator& operator=(GradientAccumulator&&) noexcept = default;
  ~GradientAccumulator() = default;

  /// Adds a parameter after those there are, and its buffers. Throws `ArgumentError` for a name
  /// that is empty or taken, and once an update has begun; `DTypeError` unless the dtype is
  /// floating.
  void register_parameter(std::string name, const ValueType& type);

  /// Gives the gradient of one parameter in the micro-batch at hand. It is added when `step` ends
  /// the micro-batch: until then its elements must not change. Throws `ArgumentError` for a name
  /// that is not registered or was given before in this micro-batch, and as `step` does;
  /// `ShapeError` and `DTypeError` for a gradient of another type than its parameter.
  void accumulate(std::string_view name, const Tensor& gradient);
  /// Forgets what `accumulate` was given since the last `step`.
  void discard();

  // Adds a micro-batch, all of it or, where this throws, nothing; true when the update is due: its
  // `steps` micro-batches are there. `examples` says how many examples the micro-batch is made of;
  // left out, the effective batch counts micro-batches. Throws `ArgumentError` when the update has
  // all its micro-batches or was taken, and needs a `reset`; when a parameter is missing; when a
  // micro-batch begun with `accumulate` is to be ended first; unless `examples` is positive,
  // those of the update together fit an `std::int64_t` and, for `mean`, all are the same.

  /// The micro-batch that `accumulate` was given.
  bool step(std::int64_t examples = 1);
  /// By name. Throws as `accumulate`.
  bool step(const NamedTensors& gradients, std::int64_t examples = 1);
  /// What `backward` or a `Runner` gives, by position: as for an `Optimizer`, parameters come in
  /// one order. Where none is registered, the first call registers those of the tape, by scope and
  /// name as in "layer3/weight", or "parameter 2" without. Throws `ArgumentError` for another
  /// number of parameters or one whose name on the tape is not the registered one, `ShapeError` and
  /// `DTypeError` as `accumulate`, `TapeError` when the tape was cleared since.
  bool step(const Gradients& gradients, std::int64_t examples = 1);
  /// Likewise, and begins the sums of an update in the memory of gradients that nobody else has: no
  /// copies, but that memory is held until the update is taken, where what made the gradients may
  /// have kept it for its next run.
  bool step_taking(Gradients gradients, std::int64_t examples = 1);

  /// True when the update has all of its micro-batches and was not taken yet.
  bool should_update() const { return count_ == options_.steps && !taken_; }

  // What follows normalises and clips the sums. It takes an update that has all of its
  // micro-batches, after which only `reset` begins another; one that has not stays open, and
  // `gradients` alone takes it. Throws `ArgumentError` when nothing was accumulated or a
  // micro-batch is not ended.

  /// For an `Optimizer`; takes the update, complete or not. Parameters are the `Var`s of the last
  /// micro-batch given as `Gradients`, whose tape must be as it was then; the loss is normalised as
  /// gradients are, and holds nothing if a micro-batch was given without; the report is that of the
  /// micro-batch that took most memory, overflowed when any of them was. Throws `ArgumentError` too
  /// when no micro-batch was given as `Gradients`.
  Gradients gradients();
  /// Of one parameter, in its dtype; of an update that is not complete, a copy of what its
  /// micro-batches so far make. Throws `ArgumentError` too for a name that is not registered.
  Tensor gradient(std::string_view name);
  /// The joint 2-norm of the normalised gradients, before clipping and before rounding to 16 bits;
  /// of an update that is not complete, of its micro-batches so far.
  double norm();

  /// Begins the next update: forgets all micro-batches, also those of an update that was not taken.
  void reset();

  /// Micro-batches in the update at hand.
  int micro_batches() const { return count_; }
  AccumulatorStatistics statistics() const;

 private:
  struct Parameter {
    Parameter(std::string own_name, const ValueType& own_type);

    std::string name;
    ValueType type;
    Tensor sum;
    Tensor rounded;     // only of a 16-bit parameter
    Tensor given;       // in the micro-batch at hand
    Var var;            // in the last micro-batch given as Gradients
    bool named = true;  // the tape must give it this name, or none

    const Tensor& gradient() const { return rounded.defined() ? rounded : sum; }
  };

  void register_all(const Gradients& gradients);
  std::size_t index_of(std::string_view name) const;

  static void require_fits(const Parameter& parameter, const Tensor& gradient);
  void require_open() const;
  void require_nothing_given() const;
  void require_examples(std::int64_t examples) const;
  void require_same_parameters(const Gradients& gradients) const;

  double weight_of(std::int64_t examples) const;
  double divisor() const;
  void prepare_sums();
  /// Whether the sums of an update begin as copies of its first gradients or in their memory.
  enum class Taking : std::uint8_t { copies, memory };

  void give(const Gradients& gradients, std::int64_t examples);
  bool add_given(std::int64_t examples, Taking taking);
  void require_accumulated() const;
  /// True for an update that waits for more micro-batches.
  bool is_midway() const { return !taken_ && count_ < options_.steps; }
  /// The sum of a parameter as `finish` would normalise it, in memory of its own.
  Tensor normalised_copy(const Parameter& parameter) const;
  double norm_midway() const;
  void finish();

  AccumulatorOptions options_;
  std::vector<Parameter> parameters_;
  std::map<std::string, std::size_t, std::less<>> index_;
  int count_ = 0;                    // micro-batches in the update
  std::int64_t examples_ = 0;        // in the update
  std::int64_t first_examples_ = 0;  // in its first micro-batch
  bool divided_ = false;             // the sums are, by `divisor()`
  bool taken_ = false;
  double norm_ = 0;
  int losses_ = 0;
  double loss_ = 0;
  ValueType loss_type_;
  std::optional<Report> report_;  // when a micro-batch was given as Gradients
  AccumulatorStatistics totals_;
};

}  // namespace palimpsest
