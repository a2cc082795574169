#include <cstdint>

#include "autodiff/kernels/kernels.h"
#include "autodiff/operations/functions/binary_functions.h"
#include "autodiff/operations/functions/unary_functions.h"
#include "tests/catch.h"

namespace palimpsest::empty_arrays_test {
namespace {

// Uses null pointers, so that a kernel that accesses an element of an empty array crashes the test.

template <class T>
void unary_and_adjoints() {
  const double parameters[] = {0.5, 1};
  for (std::size_t k = 0; k < functions::Unary::size; ++k) {
    kernels().unary<T>()[k](nullptr, nullptr, 0, parameters);
    const AdjointKernel<T> adjoint = kernels().adjoint<T>()[k];
    if (adjoint != nullptr) adjoint(nullptr, nullptr, nullptr, 0, parameters);
  }
}

template <class T, class Y>
void binary(const BinaryKernel<T, Y>* table, std::size_t size) {
  for (std::size_t k = 0; k < size; ++k) {
    if (table[k] == nullptr) continue;
    table[k](nullptr, 1, nullptr, 1, nullptr, 0);
    table[k](nullptr, 1, nullptr, 0, nullptr, 0);
    table[k](nullptr, 0, nullptr, 1, nullptr, 0);
    table[k](nullptr, 0, nullptr, 0, nullptr, 0);
  }
}

TEST_CASE("elementwise kernels touch nothing of empty arrays", "[elementwise]") {
  CHECK_NOTHROW(unary_and_adjoints<float>());
  CHECK_NOTHROW(unary_and_adjoints<double>());
  const Kernels& all = kernels();
  CHECK_NOTHROW(binary(all.binary_f32, functions::Binary::size));
  CHECK_NOTHROW(binary(all.binary_f64, functions::Binary::size));
  CHECK_NOTHROW(binary(all.binary_i64, functions::Binary::size));
  CHECK_NOTHROW(binary(all.binary_i32, functions::Binary::size));
  CHECK_NOTHROW(binary(all.compare_f32, functions::Comparison::size));
  CHECK_NOTHROW(binary(all.compare_f64, functions::Comparison::size));
  CHECK_NOTHROW(binary(all.compare_i64, functions::Comparison::size));
  CHECK_NOTHROW(binary(all.compare_i32, functions::Comparison::size));
}

}  // namespace
}  // namespace palimpsest::empty_arrays_test
