#pragma once

#include <span>
#include <vector>

#include "autodiff/gradient.h"

namespace palimpsest {

/// The directional derivatives Σᵢ (∂y/∂xᵢ)·vᵢ, one of y's type for every y, where `tangents` holds
/// a v of each x's type. By two reverse passes (Townsend, 2017): the gradients are linear in their
/// seeds, and the derivative with respect to those is what is wanted. Throws as `vjp` does.
std::vector<Var> jvp(std::span<const Var> ys, std::span<const Var> xs,
                     std::span<const Var> tangents, Where where = Where::current());
Var jvp(const Var& y, const Var& x, const Var& tangent, Where where = Where::current());

/// The Hessian of the sum of y's elements times `directions`: for every xᵢ, Σⱼ (∂²y/∂xᵢ∂xⱼ)·vⱼ.
std::vector<Var> hvp(const Var& y, std::span<const Var> xs, std::span<const Var> directions,
                     Where where = Where::current());
Var hvp(const Var& y, const Var& x, const Var& direction, Where where = Where::current());

/// ∂y/∂x in the shape of y followed by that of x. Computes one gradient for every element of y: for
/// small sizes. Leaves nothing on the tape. Throws `ShapeError` when the ranks together exceed
/// `max_rank`.
Tensor jacobian(const Var& y, const Var& x, Where where = Where::current());

/// The second derivatives of a scalar y, in the shape of x followed by itself. Costs as `jacobian`
/// of the gradient does, and leaves nothing on the tape. Throws `ShapeError` when y has more or
/// fewer than one element.
Tensor hessian(const Var& y, const Var& x, Where where = Where::current());

}  // namespace palimpsest
