#pragma once

#include <cstdint>
#include <optional>

#include "autodiff/export.h"
#include "strategy/training/safetensors.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// How an exponential average begins.
enum class AverageStart : std::uint8_t {
  copy,  ///< the first update copies the parameters, as in PyTorch's `AveragedModel`
  /// It begins with zeros and is divided by 1 − decayᵗ after t updates, as the means of Adam.
  corrected,
  /// The first update copies; the decay of update t, from 0, is at most (1 + t)/(10 + t), as in
  /// TensorFlow's `ExponentialMovingAverage`.
  warm_up,
};

/// a ← decay·a + (1 − decay)·p at each update (Tarvainen and Valpola, 2017).
struct ExponentialAverageOptions {
  double decay = 0.999;
  AverageStart start = AverageStart::copy;
};

/// An average of parameters over training steps, by name.
///
/// Averages are f64 for f64 parameters and f32 otherwise. The bits do not depend on the number of
/// threads.
///
/// All tensors that are given are averaged. `nn::Parameters::named()` has states too, such as
/// running statistics. Averages of those are not the statistics of the averaged weights: give the
/// tensors of `nn::Parameters::trainable()`, and compute the statistics again for their averages.
class WeightAverage {
 public:
  /// An exponential moving average. Throws `ArgumentError` for a decay outside [0, 1).
  static WeightAverage exponential(const ExponentialAverageOptions& options = {});
  /// The mean of all updates: stochastic weight averaging (Izmailov et al., 2018).
  static WeightAverage equal();

  /// Adds the current parameters to the average. The first call decides which parameters there are.
  /// Throws `DTypeError` for a tensor that is not floating, `ArgumentError` for other names than
  /// before, and `ShapeError` and `DTypeError` for other types. Then nothing has changed.
  void update(const NamedTensors& parameters);
  /// Number of updates in the averages, with those before the state was saved.
  std::int64_t updates() const { return updates_; }

  /// Copies of the averages, f64 or f32. Throws `ArgumentError` before the first update.
  NamedTensors averages() const;
  /// Writes the averages into the tensors, rounded to their dtypes. Throws as `averages` and
  /// `update`.
  void copy_to(const NamedTensors& parameters) const;

  /// The entries "updates" (i64) and one such as "average/layer3/weight" for each parameter.
  /// Tensors share storage, so the next update changes them.
  NamedTensors state() const;
  /// Throws what `load_state` would throw. Changes nothing.
  void check_state(const NamedTensors& state) const;
  /// Continues from a state of an average with the same options. Copies the tensors. Throws
  /// `ArgumentError` for an entry that is missing or unknown, `ShapeError` and `DTypeError` for one
  /// of another type; then nothing has changed.
  void load_state(const NamedTensors& state);

 private:
  explicit WeightAverage(std::optional<ExponentialAverageOptions> exponential)
      : exponential_(exponential) {}
  void require_same(const NamedTensors& parameters) const;
  void require_updated() const;
  Tensor average_of(const Tensor& kept) const;

  std::optional<ExponentialAverageOptions> exponential_;  // none: all updates have one weight
  std::int64_t updates_ = 0;
  NamedTensors averages_;
};

/// While it exists, the parameters have their averages as values, for example to evaluate a model.
/// Its destructor gives them back their own, with the same bits.
///
///     const AveragedWeights averaged(average, parameters.named());
class [[nodiscard]] AveragedWeights {
 public:
  /// Throws as `WeightAverage::copy_to`.
  AveragedWeights(const WeightAverage& average, NamedTensors parameters);
  ~AveragedWeights();
  AveragedWeights(const AveragedWeights&) = delete;
  AveragedWeights& operator=(const AveragedWeights&) = delete;

 private:
  void give_back() const;

  NamedTensors parameters_;
  NamedTensors own_;  // copies
};

}  // namespace palimpsest
