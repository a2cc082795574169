#include "tests/autodiff/lattice/lattice_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace palimpsest::lattice {
namespace {

bool names(const LatticeRow& row, std::string_view name) {
  return name.find(row.rows) != name.npos;
}

bool is_nan(const Found& f) { return std::isnan(f.derivative); }

/// Whether the derivative is this number, which f32 may not hold.
bool equals(const Found& f, double expected) {
  const double most = f.dtype == DType::f64 ? std::numeric_limits<double>::max()
                                            : std::numeric_limits<float>::max();
  if (std::abs(expected) > most / 4) {
    return f.derivative == std::copysign(std::numeric_limits<double>::infinity(), expected);
  }
  return f.derivative == expected || std::abs(f.derivative - expected) <= 1e-6 * std::abs(expected);
}

/// Where 1/x of a subnormal number x leaves the range.
bool is_beyond_range(const Found& f) {
  return !std::isfinite(f.derivative) && f.pattern == "neighbours";
}

bool are_infinite(const Found& f) {
  return std::ranges::all_of(f.at, [](double each) { return std::isinf(each); });
}

/// Which of them a sort takes first decides about second derivatives of different weights.
const Convention order_of_ties{
    "numbers that differ by less than a step have their own order; quotients see that of equal "
    "ones",
    [](const Found& f) { return f.order == 2 && f.pattern.starts_with("neighbours"); }};

}  // namespace

std::span<const LatticeRow> lattice_rows() {
  static const std::vector<LatticeRow> rows{
      {.rows = "clamp", .points = {-1, 2}},
      {.rows = "hardtanh", .points = {-0.8, 2}},
      {.rows = "huber", .points = {0.7, -0.7, 1, -1}},
      {.rows = "smooth_l1", .points = {0.7, -0.7}},
      {.rows = "multi_margin", .points = {0.7, -0.7, 1.7}},
      {.rows = "margin", .points = {0.3, -0.3, 0.7}},
      {.rows = "hinge", .points = {1, -1}},
      {.rows = "relu6", .points = {0, 6}},
      {.rows = "hardsigmoid", .points = {-3, 3}},
      {.rows = "hardswish", .points = {-3, 3}},
      {.rows = "shrink", .points = {0.5, -0.5}},
      {.rows = "threshold", .points = {0.5, -0.5}},
      {.rows = "histogram", .points = {-1.5, -0.75, 0.75, 1.5}},
      {.rows = "logit", .points = {0, 1, 0.5}},
      {.rows = "grid_sample",
       .points = {-1, 1, -0.75, 0.75, 0.8, -0.8, 2.0 / 3, -2.0 / 3, -1.25, 1.25}},
      {.rows = "lerp", .points = {0, 0.5, 1}},
      {.rows = "remainder",
       .points = {-2, 2, 4, -4},
       .conventions = {{"∂y/∂a = 1 and ∂y/∂b = -⌊a/b⌋ where a step of the quotient is many times b",
                        [](const Found& f) {
                          if (f.order != 1) return false;
                          if (f.input == 0) return equals(f, 1);
                          return f.at.size() == 2 && equals(f, -std::floor(f.at[0] / f.at[1]));
                        }}}},
      {.rows = "fmod",
       .points = {-2, 2, 4, -4},
       .conventions = {{"∂y/∂a = 1 and ∂y/∂b = -trunc(a/b) where a step is many times b",
                        [](const Found& f) {
                          if (f.order != 1) return false;
                          if (f.input == 0) return equals(f, 1);
                          return f.at.size() == 2 && equals(f, -std::trunc(f.at[0] / f.at[1]));
                        }}}},
      {.rows = "sqrt: ",
       .conventions = {{"dy/dx = 1/2y = -∞ at x = -0, since IEEE 754 defines √-0 = -0",
                        [](const Found& f) {
                          return f.x == 0 && std::signbit(f.x) && std::isinf(f.derivative);
                        }}}},
      {.rows = "atan2: ",
       .conventions = {{"NaN at (0, 0) and infinities, where a/(a² + b²) is 0/0 or ∞/∞", is_nan}}},
      {.rows = "sin: ",
       .conventions = {{"dy/dx = cos x where a step of the quotient has many periods",
                        [](const Found& f) { return f.order == 1 && equals(f, std::cos(f.x)); }}}},
      {.rows = "pow: ",
       .conventions =
           {{"NaN where a and b are infinite: y·log a and b·y/a are 0·∞",
             [](const Found& f) { return is_nan(f) && are_infinite(f) && f.order == 1; }},
            {"∂y/∂b = y·log a is 0 where a = 0 ≤ b, also for the power b·aᵇ⁻¹ of ∂y/∂a",
             [](const Found& f) { return f.order == 2 && std::isfinite(f.derivative); }}}},
      {.rows = "xlogy: kl_div",
       .conventions = {{"a·log a at a = 0 by the parts of xlogy: log a and a/a are 0",
                        [](const Found& f) { return f.x == 0 && std::isfinite(f.derivative); }}}},
      {.rows = "xlogy: entr",
       .conventions = {{"-a·log a at a = 0 by the parts of xlogy: log a and a/a are 0",
                        [](const Found& f) { return f.x == 0 && f.derivative == 0; }}}},
      {.rows = "logit_adjoint",
       .conventions = {{"NaN outside of [0, 1], where y is NaN",
                        [](const Found& f) { return is_nan(f) && (f.at[0] < 0 || f.at[0] > 1); }}}},
      {.rows = "atanh_adjoint",
       .conventions = {{"NaN outside of [-1, 1], where y is NaN",
                        [](const Found& f) { return is_nan(f) && std::abs(f.at[0]) > 1; }}}},
      {.rows = "where: numbers",
       .conventions = {{"NaN at ±∞: the adjoint 0 of the branch x² that is not taken, times 2x",
                        [](const Found& f) { return is_nan(f) && std::isinf(f.x); }}}},
      {.rows = "grid_sample_grid_adjoint: ",
       .conventions =
           {{"NaN where image and adjoint are infinite: their weights 0 outside, times ∞",
             [](const Found& f) { return is_nan(f) && !f.pattern.starts_with("neighbours"); }}}},
      {.rows = "igamma",
       .conventions = {{"xᵃ⁻¹·log x in ∂²y/∂x∂a is 0 at x = 0, as that of pow",
                        [](const Found& f) {
                          return f.order == 2 && std::isfinite(f.derivative);
                        }}}},
      {.rows = "xlogy: column",
       .conventions =
           {{"∂y/∂a and ∂y/∂b are 0 at a = 0 ≥ b, also in ∂²y/∂a∂b, where y has no value beside",
             [](const Found& f) {
               return f.order == 2 && f.x == 0 && std::isfinite(f.derivative);
             }}}},
      {.rows = "xlogy: ",
       .conventions = {{"∂y/∂b = a/b where a step of the quotient is many times b",
                        [](const Found& f) {
                          return f.order == 1 && f.input == 1 && std::abs(f.x) < 1e-30 &&
                                 std::isfinite(f.derivative);
                        }}}},
      {.rows = "weight_norm",
       .conventions = {{"1/|v| of a subnormal v is ∞, and ∞ - ∞ NaN", is_beyond_range}}},
      {.rows = "grid_sample: ",
       .conventions = {{"NaN where the image is infinite: its weights 0 outside, times ∞",
                        [](const Found& f) {
                          return is_nan(f) && f.order == 2 && f.pattern == "infinities";
                        }}}},
      {.rows = "inverse: ", .condition = Condition::inverse},
      {.rows = "solve: ", .condition = Condition::inverse},
      {.rows = "qr: ", .condition = Condition::inverse},
      {.rows = "eigh: ", .condition = Condition::eigen_gaps},
      {.rows = "gap_quotients: ", .condition = Condition::eigen_gaps},
      {.rows = "svd: ", .condition = Condition::singular_gaps},
      {.rows = "sort: ", .conventions = {order_of_ties}, .shares_ties = true},
      {.rows = "topk: ", .conventions = {order_of_ties}, .shares_ties = true},
      {.rows = "kthvalue: ", .conventions = {order_of_ties}, .shares_ties = true},
  };
  return rows;
}

const Convention* convention_of(std::string_view name, const Found& found) {
  for (const LatticeRow& row : lattice_rows()) {
    if (!names(row, name)) continue;
    for (const Convention& each : row.conventions) {
      if (each.holds(found)) return &each;
    }
  }
  return nullptr;
}

bool shares_ties(std::string_view name) {
  return std::ranges::any_of(
      lattice_rows(), [&](const LatticeRow& row) { return row.shares_ties && names(row, name); });
}

Condition condition_of(std::string_view name) {
  for (const LatticeRow& row : lattice_rows()) {
    if (row.condition != Condition::none && names(row, name)) return row.condition;
  }
  return Condition::none;
}

}  // namespace palimpsest::lattice
