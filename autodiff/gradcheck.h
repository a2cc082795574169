#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "autodiff/export.h"
#include "autodiff/var.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// A differentiable function of tensors for `gradcheck`: records y from its inputs.
using Differentiable = std::function<Var(std::span<const Var>)>;

/// Result of `gradcheck`.
struct GradcheckResult {
  bool passed = false;
  /// Largest |analytic − numeric| over all directions tried. It is relative to the larger of the
  /// two, but to no less than a thousandth of the result's magnitude or of 1.
  double worst = 0;
  /// The order, input and direction of the worst error, with both numbers.
  std::string message;
  explicit operator bool() const { return passed; }
};

struct GradcheckOptions {
  int order = 2;            ///< 1: gradients; 2: also gradients of gradients
  double step = 1e-5;       ///< of the central differences
  double tolerance = 1e-6;  ///< of the relative difference at order 1; tenfold at order 2
  int directions = 3;       ///< random directions per input
  std::uint64_t seed = 1;   ///< of u and v, and of random operations in `f`
};

/// Compares the recorded derivatives of `f` at `inputs` with central differences in f64. For random
/// u and v it compares uᵀ(∂f/∂xᵢ)v with (uᵀf(xᵢ + h·v) − uᵀf(xᵢ − h·v))/2h. At order 2 it does this
/// for the gradient of uᵀf as well. Floating inputs must be f64 and are differentiated; others are
/// held constant. Works for any output shape. Throws `DTypeError` when a floating input or the
/// result of `f` is not f64. Throws `ArgumentError` unless order, step and directions are positive,
/// and for an empty function.
GradcheckResult gradcheck(const Differentiable& f, std::span<const Tensor> inputs,
                          const GradcheckOptions& options = {}, Where where = Where::current());

}  // namespace palimpsest
