#pragma once

namespace palimpsest::lattice {

/// The numbers between the left and the right difference quotient of a sum, with infinite ends
/// where quotients grow without bound.
struct Hull {
  double low = 0;
  double high = 0;
  double size = 0;  ///< of the terms, whose rounding errors the derivative has
  bool known = true;

  /// Adds the hull of another term of the sum.
  void add(const Hull& term);
  bool contains(double derivative, double tolerance) const;
};

/// The values of one output next to a point: at −h, −h/2, 0, h/2 and h.
struct Neighbourhood {
  double at[5];
};

/// The hull of one output times `weight`. Not known where the output has no finite value on either
/// side.
Hull hull_of(const Neighbourhood& y, double h, double weight);

}  // namespace palimpsest::lattice
