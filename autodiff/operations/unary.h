#pragma once

#include <array>

#include "autodiff/export.h"
#include "autodiff/gradient.h"
#include "autodiff/operations/functions/function.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// Parameters of a function apart from its variable: a slope, bounds or an exponent.
struct Parameters {
  std::array<double, 2> numbers{};

  const double* data() const { return numbers.data(); }
  bool operator==(const Parameters& other) const {
    return same_number(numbers[0], other.numbers[0]) && same_number(numbers[1], other.numbers[1]);
  }
};

/// Index of the function among all families, in the order of the documentation.
std::size_t unary_index(functions::Place function);

/// Records a function; `parameters` is null if it has none. Floating dtypes; negate and abs also
/// support integers. Throws `DTypeError` for other dtypes.
Var record_unary(functions::Place function, const Var& x, const Parameters* parameters,
                 const Where& where);

/// Throws `ArgumentError` when `problem` is not null. Each `{}` in it stands for the next
/// parameter.
void require_sound(const char* operation, const char* problem, const Parameters& parameters,
                   const Where& where);

/// Records the function `F` of x, elementwise; the headers of the families define the functions.
/// Throws `DTypeError` if the function does not support x's dtype, `ArgumentError` for invalid
/// parameters.
template <class F>
Var unary(const Var& x, const Where& where) {
  return record_unary(functions::place_of<F>, x, nullptr, where);
}
template <class F>
Var unary(const Var& x, const Where& where, const Parameters& parameters) {
  if constexpr (requires { F::problem(parameters.data()); }) {
    require_sound(F::text.name, F::problem(parameters.data()), parameters, where);
  }
  return record_unary(functions::place_of<F>, x, &parameters, where);
}

}  // namespace palimpsest
