#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "autodiff/export.h"
#include "autodiff/tensor.h"
#include "strategy/backward.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// The value of a function of some tensors, and its gradient with respect to each of them.
struct ValueAndGradients {
  double value = 0;
  std::vector<Tensor> gradients;
};

/// A smooth function of some tensors.
using Objective = std::function<ValueAndGradients(std::span<const Tensor> at)>;

/// Where a minimisation has arrived.
struct LbfgsIteration {
  int iteration = 0;  ///< 0 at the start
  double value = 0;
  double gradient_norm = 0;  ///< 2-norm
  int evaluations = 0;       ///< of the function, so far
};

struct LbfgsOptions {
  int memory = 10;  ///< number of steps from which curvature is estimated
  int iterations = 100;
  /// Largest number of evaluations of the function. A line search that has begun is finished.
  int evaluations = 1000;
  /// Stops when the 2-norm of the gradient is at most this.
  double gradient_tolerance = 1e-8;
  /// Stops when an iteration decreases the value by at most this fraction of it. Never with 0.
  double decrease_tolerance = 0;
  /// Length of the first step, before any curvature is known, unless the gradient is shorter.
  double first_step = 1;
  // Constants of the strong Wolfe conditions, 0 < decrease < curvature < 1.
  double decrease = 1e-4;       ///< fraction of the decrease predicted by the slope
  double curvature = 0.9;       ///< fraction of the slope that may remain
  int search_evaluations = 25;  ///< of the function, in one line search
  /// Called at the start and after each iteration. The tensors then hold the point.
  std::function<void(const LbfgsIteration&)> watch = {};
};

enum class LbfgsStop : std::uint8_t {
  gradient,     ///< the gradient is small enough
  decrease,     ///< the value hardly decreases any more
  iterations,   ///< the limit of iterations
  evaluations,  ///< the limit of evaluations
  line_search,  ///< no better point was found, as when rounding errors exceed the decrease
};

/// For example `the gradient is small enough`.
std::string to_string(LbfgsStop stop);

struct LbfgsResult {
  double value = 0;
  double gradient_norm = 0;  ///< 2-norm
  int iterations = 0;
  int evaluations = 0;
  LbfgsStop stop = LbfgsStop::iterations;
};

/// Minimises a function by the limited-memory BFGS method (Nocedal, 1980; Nocedal and Wright, 2006,
/// algorithms 7.4 and 7.5). Each step meets the strong Wolfe conditions (there, algorithms 3.5 and
/// 3.6).
///
/// The tensors are changed in place: they hold each point that `function` is evaluated at, and the
/// best one at the end, also if `function` throws. Everything is computed in f64, and rounded to
/// the tensors' dtypes. It keeps 5 + 2·memory vectors of f64. The bits do not depend on the number
/// of threads.
///
/// Throws `ArgumentError` for an empty function, for options out of range, for a tensor that occurs
/// twice, and for another number of gradients than tensors. Also throws it if the value or gradient
/// at the start is not finite. Throws `DTypeError` for tensors that are not floating, `ShapeError`
/// for a gradient of another shape.
LbfgsResult minimize_lbfgs(const std::vector<Tensor>& tensors, const Objective& function,
                           const LbfgsOptions& options = {}, Where where = Where::current());

/// Likewise, for the loss and parameters of `backward` or of a `Runner`. `gradients` records the
/// same parameters each time, and is called again after their tensors have changed:
///
///     minimize_lbfgs([&] {
///       tape.clear();
///       return backward(model.loss(tape));
///     });
///
/// Throws `ArgumentError` when a later call returns gradients of other tensors.
LbfgsResult minimize_lbfgs(const std::function<Gradients()>& gradients,
                           const LbfgsOptions& options = {}, Where where = Where::current());

}  // namespace palimpsest
