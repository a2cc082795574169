#include "autodiff/operations/triangle.h"

#include <algorithm>

#include "autodiff/gradient.h"
#include "autodiff/operations/linalg.h"
#include "autodiff/operations/matrices.h"
#include "autodiff/operations/registry.h"
#include "autodiff/parallel.h"

namespace palimpsest {
namespace {

template <class T>
void compute_triangle(const KernelCall& call) {
  const auto& [upper, diagonal, factor, on_diagonal] = call.attributes.as<TriangleAttributes>();
  const std::int64_t m = call.output().shape().size(-2);
  const std::int64_t n = call.output().shape().size(-1);
  const T all = static_cast<T>(factor);
  const T main = static_cast<T>(factor * on_diagonal);
  const std::int64_t rows = n == 0 ? 0 : call.output().elements() / n;
  parallel_chunks(rows, grain_for(static_cast<double>(n)),
                  [&, upper = upper, diagonal = diagonal](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t row = begin; row < end; ++row) {
                      const std::int64_t i = row % m;
                      // The row's part inside the triangle: up to the diagonal, or from it on.
                      const std::int64_t edge =
                          std::clamp<std::int64_t>(i + diagonal + (upper ? 0 : 1), 0, n);
                      const std::int64_t first = upper ? edge : 0;
                      const std::int64_t last = upper ? n : edge;
                      const T* x = call.input().as<T>() + row * n;
                      T* y = call.output().as<T>() + row * n;
                      std::fill_n(y, first, T(0));
                      for (std::int64_t j = first; j < last; ++j) y[j] = all * x[j];
                      std::fill(y + last, y + n, T(0));
                      if (i >= first && i < last) y[i] = main * x[i];
                    }
                  });
}

const Operation triangle_operation{
    .name = "triangle",
    .formula = "y = x where j - i ≤ d (lower) or j - i ≥ d (upper), else 0; x̄ = the same of ȳ",
    .summary = "lower or upper triangle of matrices",
    .compute =
        [](const KernelCall& call) {
          visit_floating(call.output().dtype(), [&]<class T>(T) { compute_triangle<T>(call); });
        },
    .vjp =
        [](const Pullback& p) {
          p.set(0, triangle(p.adjoint(), p.attributes().as<TriangleAttributes>(), p.where()));
        },
    .mixed = MixedPrecision::follows,
};

}  // namespace

std::span<const Operation* const> triangle_operations() {
  static const Operation* const family[] = {&triangle_operation};
  return family;
}

Var triangle(const Var& x, const TriangleAttributes& attributes, const Where& where) {
  check_matrices("triangle", x, false, where);
  const ValueType type = x.type();
  return x.tape().record(triangle_operation, {&x, 1}, {&type, 1}, attributes, where);
}

Var tril(const Var& x, int diagonal, Where where) {
  check_matrices("tril", x, false, where);
  return triangle(x, {.diagonal = diagonal}, where);
}

Var triu(const Var& x, int diagonal, Where where) {
  check_matrices("triu", x, false, where);
  return triangle(x, {.upper = true, .diagonal = diagonal}, where);
}

}  // namespace palimpsest
