#pragma once

#include "autodiff/var.h"

namespace palimpsest {

/// Which triangle of a matrix is taken, and times what: one factor for all of it and one more for
/// the main diagonal.
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

/// The triangle of x; linear and its own adjoint.
Var triangle(const Var& x, const TriangleAttributes& attributes, const Where& where);

/// The lower triangle with half the diagonal: Φ in the adjoints of symmetric factorisations.
inline Var half_tril(const Var& x, const Where& where) {
  return triangle(x, {.on_diagonal = 0.5}, where);
}

}  // namespace palimpsest
