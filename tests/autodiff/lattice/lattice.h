#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "tests/autodiff/lattice/lattice_points.h"

/// The lattice oracle: derivatives of every operation at points where formulas change their branch.
/// A derivative is right if it lies between the left and the right difference quotient in f64, or
/// equals a convention that is stated for the row (lattice_rows.h).
namespace palimpsest::lattice {

/// What one run of the oracle covers.
struct Limits {
  int rounds = 1;                     ///< draws of each pattern
  int elements = 4;                   ///< of an input that are moved one by one
  int second = 2;                     ///< of these, for second derivatives
  std::int64_t most_elements = 1000;  ///< of all inputs of a row
};

struct Findings {
  std::vector<std::string> complaints;
  std::set<std::string> checked;   ///< operations with derivatives or values that were checked
  std::set<std::string> rows;      ///< "operation: label" of the same
  std::set<std::string> refusing;  ///< operations that refuse some points
  std::set<std::string> used;      ///< conventions that were needed
  std::int64_t derivatives = 0;
  std::int64_t conventions = 0;  ///< derivatives that equal a convention only
  std::int64_t unknown = 0;      ///< derivatives where the value is not finite on either side
  std::int64_t unstable = 0;     ///< derivatives that inputs a few digits away have
  std::int64_t refused = 0;      ///< points that the operation refuses
};

/// Checks derivatives of a row, up to its order, by each floating input at these points.
void check(const OperationRow& row, const Points& points, DType dtype, const Limits& limits,
           Findings& findings);

}  // namespace palimpsest::lattice
