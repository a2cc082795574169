#pragma once

#include <span>
#include <vector>

#include "autodiff/export.h"
#include "autodiff/gradient.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// The directional derivatives Σᵢ (∂y/∂xᵢ)·vᵢ, one for every y and of its type. `tangents` holds
/// one v of each x's type. Uses two reverse passes (Townsend, 2017): gradients are linear in their
/// seeds, and the derivative with respect to the seeds is the result. Throws as `vjp` does.
std::vector<Var> jvp(std::span<const Var> ys, std::span<const Var> xs,
                     std::span<const Var> tangents, Where where = Where::current());
Var jvp(const Var& y, const Var& x, const Var& tangent, Where where = Where::current());

/// Hessian-vector products of the sum of y's elements: Σⱼ (∂²y/∂xᵢ∂xⱼ)·vⱼ for every xᵢ, where v are
/// the `directions`.
std::vector<Var> hvp(const Var& y, std::span<const Var> xs, std::span<const Var> directions,
                     Where where = Where::current());
Var hvp(const Var& y, const Var& x, const Var& direction, Where where = Where::current());

/// ∂y/∂x, with the shape of y followed by the shape of x. Computes one gradient per element of y,
/// so it suits small sizes. Leaves no nodes on the tape. Throws `ShapeError` when the two ranks
/// together exceed `max_rank`.
Tensor jacobian(const Var& y, const Var& x, Where where = Where::current());

/// The second derivatives of a scalar y, with the shape of x followed by itself. Costs as much as
/// `jacobian` of the gradient. Leaves no nodes on the tape. Throws `ShapeError` unless y has
/// exactly one element.
Tensor hessian(const Var& y, const Var& x, Where where = Where::current());

}  // namespace palimpsest
