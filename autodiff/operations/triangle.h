#pragma once

#include "autodiff/var.h"

namespace palimpsest {

/// Which triangle of a matrix is taken. All its elements are multiplied by `factor`, and those on
/// the main diagonal also by `on_diagonal`.
struct TriangleAttributes {
  bool upper = false;
  int diagonal = 0;
  double factor = 1;
  double on_diagonal = 1;

  bool operator==(const TriangleAttributes& other) const {
    return upper == other.upper && diagonal == other.diagonal &&
           same_number(factor, other.factor) && same_number(on_diagonal, other.on_diagonal);
  }
};

/// The triangle of x. Linear and self-adjoint.
Var triangle(const Var& x, const TriangleAttributes& attributes, const Where& where);

/// The lower triangle with half the diagonal: Φ in the adjoints of symmetric factorizations.
inline Var half_tril(const Var& x, const Where& where) {
  return triangle(x, {.on_diagonal = 0.5}, where);
}

}  // namespace palimpsest
