#pragma once

#include <span>
#include <string_view>

#include "autodiff/export.h"
#include "autodiff/var.h"

namespace palimpsest PALIMPSEST_EXPORT {

// Operands are promoted to a common dtype. Products throw `DTypeError` unless both operands are
// floating. All functions throw `ShapeError` for shapes that do not fit.

/// Σᵢ aᵢ·bᵢ for two vectors of equal length; a scalar.
Var dot(const Var& a, const Var& b, Where where = Where::current());

/// aᵢ·bⱼ for two vectors of n and m elements, as a matrix (n, m).
Var outer(const Var& a, const Var& b, Where where = Where::current());

/// Σ a·b along `axis` of the broadcast operands.
Var vecdot(const Var& a, const Var& b, int axis = -1, Where where = Where::current());

/// Sums products over the last `count` axes of a and the first `count` axes of b. The result has
/// the other axes of a, then those of b. One matrix product.
Var tensordot(const Var& a, const Var& b, int count = 2, Where where = Where::current());
/// Likewise, over the pairs of axes `axes_a[i]` of a and `axes_b[i]` of b.
Var tensordot(const Var& a, const Var& b, const Axes& axes_a, const Axes& axes_b,
              Where where = Where::current());

/// The product of a chain of matrices, multiplied in the order that needs the fewest operations.
/// The first may be a vector, taken as a row, and the last one, taken as a column. Throws
/// `ArgumentError` when there are none.
Var multi_dot(std::span<const Var> factors, Where where = Where::current());
Var multi_dot(std::initializer_list<Var> factors, Where where = Where::current());

/// x·weight + bias for x (…, I), weight (I, O) and bias (O), which may be empty; the result is
/// (…, O).
Var linear(const Var& x, const Var& weight, const Var& bias = {}, Where where = Where::current());

/// Einstein summation, as in `einsum("bij,bjk->bik", {a, b})`. The equation has one letter for each
/// axis of each operand, and the letters of the result.
///
/// - Letters that the result lacks are summed over.
/// - A letter that occurs twice in one operand takes its diagonal.
/// - An ellipsis stands for any number of leading axes, which broadcast.
/// - Without an arrow the result has the ellipsis, then the letters that occur once, in
///   alphabetical order.
///
/// Operands are contracted in pairs from the left, so their order determines the work. Axes that
/// only one operand of a pair has are summed first; then the pair is one matrix product. Also
/// throws `ArgumentError` for an invalid equation.
Var einsum(std::string_view equation, std::span<const Var> operands,
           Where where = Where::current());
Var einsum(std::string_view equation, std::initializer_list<Var> operands,
           Where where = Where::current());

/// Operands of `matmul` that are read transposed in their last two axes. Nothing is copied.
struct MatmulOptions {
  bool transpose_a = false;
  bool transpose_b = false;
};

/// Matrix products over the last two axes, (…, m, k)·(…, k, n) → (…, m, n). Leading axes broadcast
/// as in NumPy. A vector is a row on the left or a column on the right; that axis is removed from
/// the result, and it cannot be transposed. Throws `ShapeError` for shapes that do not multiply,
/// `DTypeError` unless both operands are floating.
Var matmul(const Var& a, const Var& b, const MatmulOptions& options = {},
           Where where = Where::current());

/// Products of matrices (no vectors) of one dtype, with the batch shape `batch`. They are summed
/// over batch axes that `batch` lacks or has with size 1. The adjoints of broadcast operands have
/// this form.
Var matmul_sum(const Var& a, const Var& b, const MatmulOptions& options, const Shape& batch,
               Where where = Where::current());

}  // namespace palimpsest
