#pragma once

#include <cstdint>
#include <optional>

#include "autodiff/export.h"
#include "autodiff/var.h"

/// Linear algebra on the matrices in the last two axes; the leading axes are batch axes. Computes
/// in f64 and f32; 16-bit types are computed in f32.
///
/// When recorded, throws `ShapeError` when shapes do not fit, and `DTypeError` for dtypes that are
/// not floating. Matrices that cannot be factored throw `ArgumentError` when computed, naming the
/// operation, the matrix and the line that recorded it. Adjoints are recorded operations, so
/// derivatives of every order exist.
///
/// Sources of the adjoints: M. Giles, "An extended collection of matrix derivative results for
/// forward and reverse mode algorithmic differentiation" (2008); S. Walter and L. Lehmann,
/// "Algorithmic differentiation of linear algebra functions with application in optimum
/// experimental design" (2010); I. Murray, "Differentiation of the Cholesky decomposition" (2016).
namespace palimpsest PALIMPSEST_EXPORT {

/// The lower triangle of x, zero elsewhere: elements (i, j) with j − i ≤ diagonal.
Var tril(const Var& x, int diagonal = 0, Where where = Where::current());
/// The upper triangle of x, zero elsewhere: elements (i, j) with j − i ≥ diagonal.
Var triu(const Var& x, int diagonal = 0, Where where = Where::current());

/// The lower triangular L with L·Lᵀ = a, for symmetric positive definite a. Reads only the lower
/// triangle of a, and the adjoint is lower triangular. Throws `ArgumentError` when computed if a is
/// not positive definite.
Var cholesky(const Var& a, Where where = Where::current());

/// `triangular_solve` solves op(A)·X = B, or X·op(A) = B.
struct TriangularSolveOptions {
  bool upper = false;      ///< A is the upper triangle of the given matrix; otherwise the lower
  bool transpose = false;  ///< op(A) = Aᵀ
  bool right = false;      ///< A is to the right of X

  bool operator==(const TriangularSolveOptions&) const = default;
};
/// Solves triangular systems; batches broadcast. Reads only the named triangle. Throws
/// `ArgumentError` when computed if it has a zero on its diagonal.
Var triangular_solve(const Var& a, const Var& b, const TriangularSolveOptions& options = {},
                     Where where = Where::current());

struct SolveOptions {
  bool transpose = false;  ///< solves aᵀ·x = b
};
/// The solution x of a·x = b, or aᵀ·x = b, for square a. Batches broadcast; a b with one axis is a
/// vector. Uses LU with partial pivoting. The adjoint factors again, so that no factors are kept.
/// Throws `ArgumentError` when computed if a is singular.
Var solve(const Var& a, const Var& b, const SolveOptions& options = {},
          Where where = Where::current());

/// a⁻¹. Throws `ArgumentError` when computed if a is singular. Prefer `solve` where possible.
Var inverse(const Var& a, Where where = Where::current());
/// `inverse`, by the name that NumPy and PyTorch use.
inline Var inv(const Var& a, Where where = Where::current()) { return inverse(a, where); }

/// det a. Its derivative is the transposed adjugate of a. Derivatives of all orders exist at
/// singular matrices too, where they are computed without dividing by zero.
Var det(const Var& a, Where where = Where::current());
/// log det a. Throws `ArgumentError` when computed unless the determinant is positive. For positive
/// definite matrices, 2·Σ log diag(cholesky(a)) costs half as much.
Var logdet(const Var& a, Where where = Where::current());
/// The result of `slogdet`.
struct Slogdet {
  Var sign;
  Var log_magnitude;
};
/// The sign and the logarithm of the magnitude of det a; 0 and −∞ for a singular matrix. The sign
/// has no derivative.
Slogdet slogdet(const Var& a, Where where = Where::current());

/// The result of `qr`.
struct Qr {
  Var q;
  Var r;
};
/// a = q·r for a (…, m, n) with k = min(m, n). q (…, m, k) has orthonormal columns; r (…, k, n) is
/// upper triangular with a nonnegative diagonal. Both are unique where the first k columns of a are
/// linearly independent, which the adjoint requires.
Qr qr(const Var& a, Where where = Where::current());

/// The result of `eigh`.
struct Eigh {
  Var values;   ///< w
  Var vectors;  ///< v
};
/// a = v·diag(w)·vᵀ for symmetric a (…, n, n), with eigenvalues w (…, n) in ascending order and
/// orthonormal vectors in the columns of v (…, n, n). In each vector, the first element of at least
/// 0.9 times the largest magnitude is positive. Reads only the lower triangle of a, and the adjoint
/// is lower triangular.
///
/// Throws `ArgumentError` when computed if the iteration does not converge, for example if elements
/// are not finite. The adjoint of the vectors throws it if two eigenvalues are equal. There is one
/// exception: a loss that does not depend on which vectors of their space are chosen, nor on `a` in
/// another way, as v·f(w)·vᵀ does. In second derivatives, loops and checkpoints the adjoint throws
/// it for such a loss too. The first derivative of the eigenvalues always exists.
Eigh eigh(const Var& a, Where where = Where::current());

/// The result of `svd`.
struct Svd {
  Var u;
  Var values;
  Var vh;
};
/// The thin singular value decomposition a = u·diag(values)·vh of a (…, m, n). With k = min(m, n),
/// u (…, m, k) has orthonormal columns and vh (…, k, n) orthonormal rows. The values (…, k) are in
/// descending order. In each column of u, the first element of at least 0.9 times the largest
/// magnitude is positive.
///
/// Computed in f64 by one-sided Jacobi rotations, so that small singular values are accurate too.
/// Throws `ArgumentError` when computed if elements are not finite. If two singular values are
/// equal, the adjoint of the vectors throws it as that of `eigh` does. It is infinite where a
/// singular value is 0.
Svd svd(const Var& a, Where where = Where::current());
/// The singular values of a, in descending order. Their first derivative always exists.
Var svdvals(const Var& a, Where where = Where::current());

/// The Moore-Penrose inverse (…, n, m) of a (…, m, n). Singular values of at most `tolerance` times
/// the largest count as 0; by default max(m, n) times the distance from 1 to the next number of the
/// dtype. Its derivatives hold for changes that keep the rank. Throws `ArgumentError` for a
/// negative tolerance and, when computed, if elements are not finite.
Var pinv(const Var& a, std::optional<double> tolerance = std::nullopt,
         Where where = Where::current());

/// The x that minimizes ‖a·x − b‖ for a (…, m, n) and b (…, m, columns) or (m); by QR. With m < n,
/// the one of them with the least norm. Batches broadcast. The rank of a must be min(m, n);
/// `matmul(pinv(a), b)` supports lower ranks. Throws `ArgumentError` when computed if R of the QR
/// decomposition has a zero on its diagonal. Rounding may hide a lower rank; then nothing is
/// thrown, and the result is inaccurate.
Var lstsq(const Var& a, const Var& b, Where where = Where::current());

/// Σ aᵏ/k!, the matrix exponential (Higham, 2005). NaN if an element is not finite.
Var matrix_exp(const Var& a, Where where = Where::current());

/// aⁿ by repeated squaring; a⁰ is the identity. For n < 0 a power of the inverse, which throws as
/// `inverse` does.
Var matrix_power(const Var& a, std::int64_t n, Where where = Where::current());

enum class MatrixNorm : std::uint8_t {
  frobenius,  ///< √Σ x²
  nuclear,    ///< sum of the singular values
  spectral,   ///< largest singular value
  one,        ///< largest Σ |x| of a column
  infinity,   ///< largest Σ |x| of a row
};
/// A norm of the matrices in the last two axes, which are removed or, with `keep_axes`, kept with
/// size 1. Except for the Frobenius norm, throws `ShapeError` for matrices without elements.
Var matrix_norm(const Var& x, MatrixNorm kind = MatrixNorm::frobenius, bool keep_axes = false,
                Where where = Where::current());

}  // namespace palimpsest
