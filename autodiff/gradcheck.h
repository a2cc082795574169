#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "autodiff/var.h"

namespace palimpsest {

/// A differentiable function of tensors, as `gradcheck` calls it: records y from its inputs.
using Differentiable = std::function<Var(std::span<const Var>)>;

/// What `gradcheck` found.
struct GradcheckResult {
  bool passed = false;
  /// Largest |analytic − numeric| over the scale of the two, over all directions tried.
  double worst = 0;
  /// Which order, input and direction that was, with both numbers.
  std::string message;
  explicit operator bool() const { return passed; }
};

struct GradcheckOptions {
  int order = 2;            ///< 1: gradients; 2: gradients of gradients too
  double step = 1e-5;       ///< of the central differences
  double tolerance = 1e-6;  ///< on the relative difference at order 1; ten times that at order 2
  int directions = 3;       ///< random directions per input
  std::uint64_t seed = 1;
};

/// Compares recorded derivatives of `f` at `inputs` with central differences in f64 by inner
/// products: for random u and v, uᵀ(∂f/∂xᵢ)v against (uᵀf(xᵢ + h·v) − uᵀf(xᵢ − h·v))/2h, and the
/// same for the gradient of uᵀf at order 2. Floating inputs must be f64 and are differentiated;
/// others are held. Works for any output shape. Throws `DTypeError` for a floating input of another
/// dtype.
GradcheckResult gradcheck(const Differentiable& f, std::span<const Tensor> inputs,
                          const GradcheckOptions& options = {});

}  // namespace palimpsest
