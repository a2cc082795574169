#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "autodiff/dtype.h"
#include "tests/autodiff/lattice/condition.h"

namespace palimpsest::lattice {

/// A derivative that lies outside the difference quotients.
struct Found {
  std::string_view pattern;
  DType dtype;
  int order;
  std::size_t input;
  double x;                ///< the element by which is differentiated
  std::vector<double> at;  ///< the elements of all inputs at its place, if the row is elementwise
  double derivative;
};

/// A value that the library defines where quotients do not determine it.
struct Convention {
  const char* statement;  ///< in mathematics, with the reason
  bool (*holds)(const Found& found);
};

/// What the lattice adds to the rows of an operation in tests/autodiff/*_rows.cpp.
struct LatticeRow {
  std::string_view rows;            ///< a part of "operation: label" of each of them
  std::vector<double> points = {};  ///< where parameters put the ends of ranges
  std::vector<Convention> conventions = {};
  /// One of several equal elements gets the derivative of each place. Their sum is compared.
  bool shares_ties = false;
  /// What rounding errors grow with, besides those of the operands.
  Condition condition = Condition::none;
};

std::span<const LatticeRow> lattice_rows();

/// The convention that states this derivative, or null. `name` is "operation: label".
const Convention* convention_of(std::string_view name, const Found& found);
bool shares_ties(std::string_view name);
Condition condition_of(std::string_view name);

}  // namespace palimpsest::lattice
