#pragma once

#include <span>
#include <string_view>

#include "autodiff/var.h"

/// Products written in other ways, recorded as matrix products and operations on shapes.
namespace palimpsest {

/// Σᵢ aᵢ·bᵢ of two vectors of one length; a scalar.
Var dot(const Var& a, const Var& b, Where where = Where::current());

/// aᵢ·bⱼ of two vectors, as a matrix.
Var outer(const Var& a, const Var& b, Where where = Where::current());

/// x·weight + bias for x (…, I), weight (I, O) and bias (O), which may be empty. Throws as `matmul`
/// and `add` do.
Var linear(const Var& x, const Var& weight, const Var& bias = {}, Where where = Where::current());

/// Einstein's sum, as in `einsum("bij,bjk->bik", {a, b})`: one letter for each axis of each
/// operand, and the letters of the result. Letters that the result lacks are summed over, a letter
/// twice in one operand is its diagonal, and an ellipsis stands for any number of axes in front
/// that broadcast. Without an arrow the result has the ellipsis, then the letters that occur once,
/// in alphabetical order. Operands are taken two at a time from the left, each pair as one matrix
/// product after what only one of them has was summed; the order of the operands decides the work.
/// Throws `ArgumentError` for an equation that makes no sense, `ShapeError` for sizes that do not
/// agree with it.
Var einsum(std::string_view equation, std::span<const Var> operands,
           Where where = Where::current());
Var einsum(std::string_view equation, std::initializer_list<Var> operands,
           Where where = Where::current());

}  // namespace palimpsest
