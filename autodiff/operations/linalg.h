#pragma once

#include "autodiff/var.h"

/// Linear algebra on the matrices in the last two axes, over the axes in front; f64 and f32, 16-bit
/// types in f32. Shapes that do not fit throw `ShapeError` when recorded; matrices that cannot be
/// factored throw `ArgumentError` when computed, naming the operation, the matrix and the line that
/// recorded it. Adjoints are recorded operations, so every order of derivative exists. Sources of
/// the adjoints: M. Giles, "An extended collection of matrix derivative results for forward and
/// reverse mode algorithmic differentiation" (2008); S. Walter and L. Lehmann, "Algorithmic
/// differentiation of linear algebra functions with application in optimum experimental design"
/// (2010); I. Murray, "Differentiation of the Cholesky decomposition" (2016).
namespace palimpsest {

/// The lower triangle of x, zero elsewhere: elements (i, j) with j − i ≤ diagonal.
Var tril(const Var& x, int diagonal = 0, Where where = Where::current());
/// The upper triangle of x, zero elsewhere: elements (i, j) with j − i ≥ diagonal.
Var triu(const Var& x, int diagonal = 0, Where where = Where::current());

/// The lower triangular L with L·Lᵀ = a for symmetric, positive definite a. Only the lower triangle
/// of a is read, and the adjoint lies in it. Throws `ArgumentError` when computed if a is not
/// positive definite.
Var cholesky(const Var& a, Where where = Where::current());

/// What `triangular_solve` solves: op(A)·X = B, or X·op(A) = B.
struct TriangularSolveOptions {
  bool upper = false;      ///< A is the upper triangle of the matrix given, else the lower one
  bool transpose = false;  ///< op(A) = Aᵀ
  bool right = false;      ///< A stands on the right of X

  bool operator==(const TriangularSolveOptions&) const = default;
};
/// The solution of triangular systems; batches broadcast. Only the triangle named is read. Throws
/// `ArgumentError` when computed if it has a zero on its diagonal.
Var triangular_solve(const Var& a, const Var& b, const TriangularSolveOptions& options = {},
                     Where where = Where::current());

/// The x with a·x = b, or aᵀ·x = b; batches broadcast, and a b of one axis is a vector. By LU with
/// partial pivoting; the adjoint factors once more, so that no factor is kept. Throws
/// `ArgumentError` when computed if a is singular.
struct SolveOptions {
  bool transpose = false;
};
Var solve(const Var& a, const Var& b, const SolveOptions& options = {},
          Where where = Where::current());

/// a⁻¹. Throws `ArgumentError` when computed if a is singular; prefer `solve` where it serves.
Var inverse(const Var& a, Where where = Where::current());

/// det a. Its derivative, the transposed adjugate of a, and those of higher orders exist at
/// singular matrices too, and are computed there without dividing by what is 0.
Var det(const Var& a, Where where = Where::current());
/// log det a. Throws `ArgumentError` when computed unless the determinant is positive; for positive
/// definite matrices, 2·Σ log diag(cholesky(a)) costs half.
Var logdet(const Var& a, Where where = Where::current());
/// Sign and logarithm of the magnitude of det a; 0 and −∞ for a singular matrix. The sign has no
/// derivative.
struct Slogdet {
  Var sign;
  Var log_magnitude;
};
Slogdet slogdet(const Var& a, Where where = Where::current());

/// a = q·r for a (…, m, n), with k the smaller of m and n: q (…, m, k) with orthonormal columns,
/// r (…, k, n) upper triangular with a diagonal that is not negative, which makes both unique where
/// the first k columns of a are independent. The adjoint needs that.
struct Qr {
  Var q;
  Var r;
};
Qr qr(const Var& a, Where where = Where::current());

/// a = v·diag(w)·vᵀ for symmetric a: eigenvalues w (…, n) in ascending order, orthonormal vectors
/// in the columns of v, in each of which the first element of at least 0.9 times the largest
/// magnitude is positive. Only the lower triangle of a is read, and the adjoint lies in it. Throws
/// `ArgumentError` when computed if the iteration does not converge, as for elements that are not
/// finite, or if two eigenvalues are equal where the adjoint of the vectors is computed: there it
/// does not exist. Eigenvalues always have their first derivative.
struct Eigh {
  Var values;
  Var vectors;
};
Eigh eigh(const Var& a, Where where = Where::current());

}  // namespace palimpsest
