#include <algorithm>
#include <cmath>
#include <limits>

#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/factor_batch.h"
#include "autodiff/operations/functions/arithmetic.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/linalg.h"
#include "autodiff/operations/lu.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/registry.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/unary.h"

namespace palimpsest {
namespace {

/// Matrices of f64 in a workspace, for every dtype: 6 of the method, and one with its row exchanges
/// for the solution of the system.
Bytes matrix_exp_bytes(std::int64_t n) {
  return 6 * aligned(n * n * Bytes{sizeof(double)}) + aligned(Factors<double>::bytes(n));
}

/// c = a·b.
void multiply_into(View<double> c, View<double> a, View<double> b, Products<double>& products) {
  const std::int64_t size = c.rows * c.columns;
  std::fill_n(c.data, size, 0.0);
  products.subtract(a, b, c);
  for (std::int64_t i = 0; i < size; ++i) c.data[i] = -c.data[i];
}

void add_to(View<double> c, double factor, View<double> a) {
  for (std::int64_t i = 0; i < c.rows * c.columns; ++i) c.data[i] += factor * a.data[i];
}

void set_diagonal(View<double> c, double value) {
  std::fill_n(c.data, c.rows * c.columns, 0.0);
  for (std::int64_t i = 0; i < c.rows; ++i) c(i, i) = value;
}

double one_norm(View<double> a) {
  double most = 0;
  for (std::int64_t j = 0; j < a.columns; ++j) {
    double sum = 0;
    for (std::int64_t i = 0; i < a.rows; ++i) sum += std::abs(a(i, j));
    if (!(sum <= most)) most = sum;  // also NaN
  }
  return most;
}

/// Degree of the Padé approximation, and how often the matrix is halved before (Higham, 2005, table
/// 2.3).
struct Scaling {
  int degree = 0;
  int halvings = 0;

  explicit Scaling(double norm) {
    struct Bound {
      int degree;
      double norm;
    };
    for (const auto& [most, bound] :
         {Bound{3, 1.495585217958292e-2}, Bound{5, 2.539398330063230e-1},
          Bound{7, 9.504178996162932e-1}, Bound{9, 2.097847961257068},
          Bound{13, 5.371920351148152}}) {
      degree = most;
      if (norm <= bound) return;
      halvings = std::max(0, static_cast<int>(std::ceil(std::log2(norm / bound))));
    }
  }
};

/// The exponential of a, which it overwrites. N. Higham, "The scaling and squaring method for the
/// matrix exponential revisited" (2005).
void exponentiate(View<double> a, std::span<std::byte> space, Products<double>& products) {
  const std::int64_t n = a.rows;
  const auto matrix = [&](std::int64_t i) {
    std::byte* const at = space.data() + i * aligned(n * n * Bytes{sizeof(double)});
    return View<double>{reinterpret_cast<double*>(at), n, n, n};
  };
  const double norm = one_norm(a);
  if (!std::isfinite(norm)) {
    std::fill_n(a.data, n * n, std::numeric_limits<double>::quiet_NaN());
    return;
  }
  const Scaling scaling(norm);
  const double scale = std::ldexp(1.0, -scaling.halvings);
  for (std::int64_t i = 0; i < n * n; ++i) a.data[i] *= scale;
  const View<double> square = matrix(0), odd = matrix(1), even = matrix(2);
  View<double> power = matrix(3), next = matrix(4);
  multiply_into(square, a, a, products);
  // Coefficients cⱼ of the numerator; the denominator has them with alternating signs.
  const int m = scaling.degree;
  double coefficient = 1;
  const auto step = [&](int j) {
    coefficient *= static_cast<double>(m - j + 1) / static_cast<double>((2 * m - j + 1) * j);
    return coefficient;
  };
  set_diagonal(even, 1);
  set_diagonal(odd, step(1));
  std::copy_n(square.data, n * n, power.data);
  for (int j = 2; j <= m; j += 2) {
    add_to(even, step(j), power);
    add_to(odd, step(j + 1), power);
    if (j + 2 > m) break;
    multiply_into(next, power, square, products);
    std::swap(power, next);
  }
  multiply_into(next, a, odd, products);
  // (even − next)·x = even + next
  for (std::int64_t i = 0; i < n * n; ++i) {
    const double numerator = even.data[i] + next.data[i];
    even.data[i] -= next.data[i];
    a.data[i] = numerator;
  }
  const Factors<double> factors(
      space.subspan(static_cast<std::size_t>(6 * aligned(n * n * Bytes{sizeof(double)}))),
      even.data, n);
  factor_lu(factors.lu, factors.exchanges, products);
  solve_factored(factors, false, a, products);
  for (int k = 0; k < scaling.halvings; ++k) {
    multiply_into(square, a, a, products);
    std::copy_n(square.data, n * n, a.data);
  }
}

template <class T>
void compute_matrix_exp(const KernelCall& call) {
  const FactorBatch batch = batch_for(call.input().shape());
  const std::int64_t size = batch.n * batch.n;
  const Bytes matrix = aligned(size * Bytes{sizeof(double)});
  batch.run<double>(call, matrix_exp_bytes(batch.n),
                    [&](std::int64_t index, std::span<std::byte> own, Products<double>& products) {
                      auto* const last = reinterpret_cast<double*>(own.data() + 5 * matrix);
                      const T* a = call.input().as<T>() + index * size;
                      for (std::int64_t i = 0; i < size; ++i) last[i] = static_cast<double>(a[i]);
                      exponentiate({last, batch.n, batch.n, batch.n}, own, products);
                      T* y = call.output().as<T>() + index * size;
                      for (std::int64_t i = 0; i < size; ++i) y[i] = static_cast<T>(last[i]);
                      return std::int64_t{-1};
                    });
}

// Let L be the derivative of the exponential at aᵀ in the direction ȳ, which is ā. The exponential
// of the matrix (aᵀ, ȳ; 0, aᵀ) has L above its diagonal (Mathias, 1996). It is linear in ȳ, so a
// factor keeps ȳ from adding halvings; the factor itself needs no derivative.
void pull_back_matrix_exp(const Pullback& p) {
  const Where where = p.where();
  const DType dtype = p.input().dtype();
  const DType wide = compute_dtype(dtype);
  const Var a = transpose(cast(p.input(), wide, where), -2, -1, where);
  const Var d = cast(p.adjoint(), wide, where);
  const std::int64_t n = a.shape().size(-1);
  if (n == 0) return p.set_none(0);
  const Var most = max(stop_gradient(abs(d, where), where), {-2, -1}, true, where);
  const Var factor = palimpsest::where(greater(most, 0, where), most, 1.0, where);
  const Var top = concat({a, divide(d, factor, where)}, -1, where);
  const Var bottom = concat({full_like(a, 0, where), a}, -1, where);
  const Var both = matrix_exp(concat({top, bottom}, -2, where), where);
  const Var corner = slice(slice(both, -2, {.stop = n}, where), -1, {.start = n}, where);
  p.set(0, cast(multiply(corner, factor, where), dtype, where));
}

const Operation matrix_exp_operation{
    .name = "matrix_exp",
    .formula = "y = Σ aᵏ/k!, ā = the corner of exp(aᵀ, ȳ; 0, aᵀ)",
    .summary = "matrix exponential",
    .compute =
        [](const KernelCall& call) {
          visit_floating(call.output().dtype(), [&]<class T>(T) { compute_matrix_exp<T>(call); });
        },
    .vjp = pull_back_matrix_exp,
    .cost =
        [](const NodeView& node) {
          // some 7 products, a solution and 4 squarings
          const auto n = static_cast<double>(node.output().shape.size(-1));
          return Cost{28 * n * static_cast<double>(node.output().shape.elements()),
                      bytes_moved(node)};
        },
    .workspace =
        [](const NodeView& node, int threads) {
          const FactorBatch batch = batch_for(node.output().shape);
          const View<double> any{nullptr, batch.n, batch.n, batch.n};
          return batch.workspace<double>(threads, matrix_exp_bytes(batch.n),
                                         [&](Products<double>& products) {
                                           products.subtract(any, any, any);
                                           factor_lu(any, nullptr, products);
                                           solve_triangular(any, {.unit = true}, any, products);
                                           solve_triangular(any, {.upper = true}, any, products);
                                         });
        },
};

}  // namespace

std::span<const Operation* const> matrix_exp_operations() {
  static const Operation* const family[] = {&matrix_exp_operation};
  return family;
}

Var matrix_exp(const Var& a, Where where) {
  check_matrices("matrix_exp", a, true, where);
  const ValueType type = a.type();
  return a.tape().record(matrix_exp_operation, {&a, 1}, {&type, 1}, {}, where);
}

}  // namespace palimpsest
