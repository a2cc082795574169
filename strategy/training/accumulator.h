#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "autodiff/default_options.h"
#include "autodiff/export.h"
#include "autodiff/in_use.h"
#include "strategy/backward.h"
#include "strategy/training/safetensors.h"

namespace palimpsest {
class MicroBatchWeights;
}  // namespace palimpsest

namespace palimpsest PALIMPSEST_EXPORT {

/// The divisor of the sum of micro-batch gradients. It makes the result the gradient of the loss of
/// all their examples at once.
///
/// A micro-batch whose loss divides by a count (`Gradients::counts`), such as that of targets that
/// are not ignored, is weighted by this count instead, whatever the number of examples. The sum is
/// then divided by the count of the update. A micro-batch without targets has weight 0.
enum class GradientNormalization : std::uint8_t {
  /// 1: each loss is a sum over examples.
  sum,
  /// The number of micro-batches: each loss is a mean over equally many examples.
  mean,
  /// The number of examples, after each gradient was multiplied by its own number. Each loss is a
  /// mean over any number of examples.
  weighted,
};

struct AccumulatorOptions {
  int steps = 1;  ///< micro-batches per update
  GradientNormalization normalization = GradientNormalization::mean;
  /// Largest joint 2-norm of an update's gradients. Larger gradients are scaled down to it.
  double clip_norm = std::numeric_limits<double>::infinity();
};

struct AccumulatorStatistics {
  std::int64_t accumulation_steps = 0;  ///< micro-batches per update, as in the options
  std::int64_t micro_batches = 0;       ///< added, in all updates
  std::int64_t updates = 0;             ///< updates whose gradients were taken
  std::int64_t parameters = 0;
  std::int64_t elements = 0;  ///< in all parameters
  /// Examples in the current update or, before its first micro-batch, in the previous one.
  std::int64_t effective_batch = 0;
  Bytes buffers = 0;  ///< bytes of sums and of 16-bit gradients
};

/// Adds up the gradients of several micro-batches. An update then has the effect of a large batch,
/// but takes only the memory of a small one and of a sum for every parameter.
///
/// Sums are f64 for f64 parameters and f32 otherwise. Gradients of 16 bits are rounded once, at the
/// end, into a buffer of their own, so such a parameter takes 6 bytes per element. Micro-batches
/// are added in their order, whatever the number of threads. An update of one micro-batch equals
/// its gradient bit for bit. Buffers are allocated once and used for every update. If the user
/// still holds a buffer's tensor, it stays unchanged and a new buffer replaces it.
///
/// A member function that throws leaves the accumulator and its sums unchanged. One exception: when
/// memory runs out while an update is taken, the update can only be taken again or reset. Use it
/// from one thread at a time. Work runs in parallel in the caller's TBB arena.
class GradientAccumulator {
 public:
  /// Throws `ArgumentError` unless there is at least one step and the norm for clipping is
  /// positive.
  explicit GradientAccumulator(AccumulatorOptions options = {});
  explicit GradientAccumulator(DefaultOptions) : GradientAccumulator() {}
  GradientAccumulator(const GradientAccumulator&) = delete;
  GradientAccumulator& operator=(const GradientAccumulator&) = delete;
  GradientAccumulator(GradientAccumulator&&) noexcept = default;
  GradientAccumulator& operator=(GradientAccumulator&&) noexcept = default;
  ~GradientAccumulator() = default;

  /// Adds a parameter after the existing ones, and its buffers. Throws `ArgumentError` for a name
  /// that is empty or already used, and once an update has begun; `DTypeError` unless the dtype is
  /// floating.
  void register_parameter(std::string name, const ValueType& type);

  /// Gives the gradient of one parameter in the current micro-batch. It is added when `step` ends
  /// the micro-batch; until then its elements must not change. Throws `ArgumentError` for a name
  /// that is not registered or was given before in this micro-batch, and as `step` does. Throws
  /// `ShapeError` and `DTypeError` for a gradient of another type than its parameter.
  void accumulate(std::string_view name, const Tensor& gradient);
  /// Discards what `accumulate` was given since the last `step`.
  void discard();

  // Each `step` adds a micro-batch, completely or, if it throws, not at all. It returns true when
  // the update has all of its `steps` micro-batches. `examples` is the number of examples in the
  // micro-batch. If it is omitted, the effective batch counts micro-batches.
  //
  // Throws `ArgumentError`
  // - when the update has all its micro-batches or was taken, and needs a `reset`;
  // - when a parameter is missing;
  // - when a micro-batch begun with `accumulate` must be ended first;
  // - unless `examples` is positive, the sum over the update fits an `std::int64_t` and, for
  //   `mean`, all are equal.

  /// Adds the micro-batch given to `accumulate`.
  bool step(std::int64_t examples = 1);
  /// Adds gradients by name. Throws as `accumulate`.
  bool step(const NamedTensors& gradients, std::int64_t examples = 1);
  /// Adds the result of `backward` or of a `Runner`, by position. As for an `Optimizer`, the order
  /// of parameters must not change. If none is registered, the first call registers those of the
  /// tape, by scope and name as in "layer3/weight"; without a name as "parameter 2". A tape without
  /// parameters adds its loss alone.
  ///
  /// Throws `ArgumentError` for another number of parameters, or one whose name on the tape is not
  /// the registered one. Also throws it where no one weight is right: the loss has several means or
  /// other terms, and these do not weigh its examples as in the micro-batches before. An
  /// `Execution` weighs each mean by itself. Throws `ShapeError` and `DTypeError` as `accumulate`.
  bool step(const Gradients& gradients, std::int64_t examples = 1);
  /// Likewise, but without copies: the sums of an update begin in the memory of the given
  /// gradients, unless others hold it. That memory is held until the update is taken. So the code
  /// that made the gradients cannot reuse it for its next run.
  bool step_taking(Gradients gradients, std::int64_t examples = 1);

  /// True when the update has all of its micro-batches and was not taken yet.
  bool should_update() const { return count_ == options_.steps && !taken_; }

  // The functions below normalise and clip the sums. They take an update that has all of its
  // micro-batches; then only `reset` begins another. An incomplete update stays open, except that
  // `gradients` takes it. They throw `ArgumentError` when nothing was accumulated or a micro-batch
  // is not ended.

  /// Takes the update, complete or not, for an `Optimizer`. Parameters are the `Var`s of the last
  /// micro-batch given as `Gradients`; its tape must not have changed. The loss is normalised as
  /// gradients are. It is undefined if some micro-batch was not given as `Gradients`. The report is
  /// that of the micro-batch with the highest peak. It says overflowed if any micro-batch
  /// overflowed. Also throws `ArgumentError` when no micro-batch was given as `Gradients`.
  Gradients gradients();
  /// The gradient of one parameter, in its dtype. For an incomplete update, a copy of the result of
  /// its micro-batches so far. Also throws `ArgumentError` for a name that is not registered.
  Tensor gradient(std::string_view name);
  /// The joint 2-norm of the normalised gradients, before clipping and before rounding to 16 bits.
  /// For an incomplete update, that of its micro-batches so far.
  double norm();

  /// Begins the next update. Discards all micro-batches, even those of an update that was not
  /// taken.
  void reset();

  /// Micro-batches in the current update.
  int micro_batches() const { return count_; }
  /// Counts and sizes so far.
  AccumulatorStatistics statistics() const;

 private:
  struct Parameter {
    Parameter(std::string own_name, const ValueType& own_type);

    std::string name;
    ValueType type;
    Tensor sum;
    Tensor rounded;  // only of a 16-bit parameter
    Tensor given;    // in the current micro-batch
    // of the last micro-batch given as `Gradients`
    Var var;
    Tensor value;
    std::string name_on_tape;
    bool named = true;  // the tape must have this name, or none

    const Tensor& gradient() const { return rounded.defined() ? rounded : sum; }
  };

  void forget_given();
  void register_all(const Gradients& gradients);
  std::size_t index_of(std::string_view name) const;

  static void require_fits(const Parameter& parameter, const Tensor& gradient);
  void require_open() const;
  void require_parameters() const;
  void require_nothing_given() const;
  void require_examples(std::int64_t examples) const;
  void require_same_parameters(const Gradients& gradients) const;

  void prepare_sums();
  /// Whether the sums of an update begin as copies of its first gradients, or in their memory.
  enum class Taking : std::uint8_t { copies, memory };

  void give(const Gradients& gradients, std::int64_t examples);
  bool add_given(const LossCounts& counts, std::int64_t examples, Taking taking);
  void require_accumulated() const;
  /// True for an update that waits for more micro-batches.
  bool is_midway() const { return !taken_ && count_ < options_.steps; }
  /// The sum of a parameter as `finish` would normalise it, in memory of its own.
  Tensor normalised_copy(const Parameter& parameter) const;
  double norm_midway() const;
  void finish();

  InUse in_use_{"accumulator"};
  AccumulatorOptions options_;
  std::shared_ptr<MicroBatchWeights> weights_;  // never null, except in a moved object
  std::vector<Parameter> parameters_;
  std::map<std::string, std::size_t, std::less<>> index_;
  int count_ = 0;                    // micro-batches in the update
  std::int64_t examples_ = 0;        // in the update
  std::int64_t first_examples_ = 0;  // in its first micro-batch
  bool divided_ = false;             // the sums have been divided by `divisor()`
  bool taken_ = false;
  double norm_ = 0;
  int losses_ = 0;
  double loss_ = 0;
  ValueType loss_type_;
  std::optional<Report> report_;  // none unless a micro-batch was given as `Gradients`
  AccumulatorStatistics totals_;
};

}  // namespace palimpsest
