#pragma once

#include <array>

#include "autodiff/gradient.h"
#include "autodiff/operations/functions/function.h"

namespace palimpsest {

/// Numbers a function was given beside its variable: a slope, bounds, an exponent.
struct Parameters {
  std::array<double, 2> numbers{};

  const double* data() const { return numbers.data(); }
  bool operator==(const Parameters& other) const {
    return same_number(numbers[0], other.numbers[0]) && same_number(numbers[1], other.numbers[1]);
  }
};

/// Where the function is among those of all families, in the order of the documentation.
std::size_t unary_index(functions::Place function);

/// Records a function; `parameters` is null where it takes none. Floating dtypes; negating and
/// absolute values take integers too. Others throw `DTypeError`.
Var record_unary(functions::Place function, const Var& x, const Parameters* parameters,
                 const Where& where);

/// Throws `ArgumentError` when `problem` is not null.
void require_sound(const char* operation, const char* problem, const Where& where);

/// Records the function `F` of x, element by element; its family's header says which there are.
/// Throws `DTypeError` for an x that is not floating, `ArgumentError` for parameters that `F` does
/// not take.
template <class F>
Var unary(const Var& x, const Where& where) {
  return record_unary(functions::place_of<F>, x, nullptr, where);
}
template <class F>
Var unary(const Var& x, const Where& where, const Parameters& parameters) {
  if constexpr (requires { F::problem(parameters.data()); }) {
    require_sound(F::text.name, F::problem(parameters.data()), where);
  }
  return record_unary(functions::place_of<F>, x, &parameters, where);
}

}  // namespace palimpsest
