#pragma once

#include <span>
#include <vector>

#include "autodiff/export.h"
#include "strategy/backward.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// Updates parameters from their gradients, in place. The tensors given to `Tape::parameter`
/// change, so values computed from them are out of date and the tape must be recorded again.
///
/// It needs no tape: `Gradients` hold the parameters' tensors. After `Runner::bind` these are the
/// bound ones.
///
/// State is kept by the position of a parameter on the tape. It is f64 for f64 parameters and f32
/// otherwise; updates of 16-bit parameters are computed in f32 and rounded. The bits do not depend
/// on the number of threads.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  /// Updates every parameter once; none if the gradients' report says that they overflowed. Throws
  /// `ArgumentError` when number or types of the parameters differ from those of the previous step,
  /// and `TapeError` when their tape was cleared.
  void step(const Gradients& gradients);
  /// Number of updates so far.
  std::int64_t steps() const { return steps_; }

  double learning_rate() const { return learning_rate_; }
  /// Sets the rate of later steps. Throws `ArgumentError` when negative.
  void set_learning_rate(double rate);

 protected:
  Optimizer(double learning_rate, std::size_t states) : states_(states) {
    set_learning_rate(learning_rate);
  }
  /// Updates n elements in place, at step number `steps()`; `state` holds one array per kind of
  /// state.
  virtual void update(float* parameter, const float* gradient, std::span<float* const> state,
                      std::int64_t n) const = 0;
  virtual void update(double* parameter, const double* gradient, std::span<double* const> state,
                      std::int64_t n) const = 0;

 private:
  void check(const Gradients& gradients) const;
  void update_tensor(Tensor parameter, const Tensor& gradient, std::span<const Tensor> state) const;

  std::size_t states_;
  double learning_rate_ = 0;
  std::int64_t steps_ = 0;
  std::vector<ValueType> types_;
  std::vector<std::vector<Tensor>> state_;  // by parameter
};

/// Stochastic gradient descent: v ← μv + g + λp; p ← p − ηv (Sutskever et al., 2013, without
/// damping). η is the rate, μ the momentum and λ the decay.
struct SgdOptions {
  double learning_rate = 0.01;
  double momentum = 0;
  double weight_decay = 0;
};

/// Adam with bias correction (Kingma and Ba, 2015). The decay times the parameter is added to the
/// gradient. `epsilon` is added to the root.
struct AdamOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
};

/// AdamW (Loshchilov and Hutter, 2019). Like Adam, except that a parameter is multiplied by
/// 1 − rate·decay, and the gradient has no decay.
struct AdamWOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;
};

/// Throw `ArgumentError` for a negative rate, weight decay or epsilon, and for a momentum or beta
/// outside [0, 1).
std::unique_ptr<Optimizer> sgd(SgdOptions options = {});
std::unique_ptr<Optimizer> adam(AdamOptions options = {});
std::unique_ptr<Optimizer> adamw(AdamWOptions options = {});

/// Scales all gradients in place so that their joint 2-norm is at most `most`. Returns the norm
/// before. If that is NaN, nothing is scaled. The bits do not depend on the number of threads.
/// Throws `ArgumentError` unless `most` is positive.
double clip_by_norm(const Gradients& gradients, double most);
/// Likewise for tensors of floating dtypes.
double clip_by_norm(std::span<const Tensor> gradients, double most);

}  // namespace palimpsest
