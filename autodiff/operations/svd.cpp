#include <algorithm>
#include <cmath>

#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/factor_batch.h"
#include "autodiff/operations/gap_quotients.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/linalg.h"
#include "autodiff/operations/products.h"
#include "autodiff/operations/registry.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/singular_values.h"

namespace palimpsest {
namespace {

struct PinvAttributes {
  double tolerance;  // relative to the largest singular value
  Where where;

  bool operator==(const PinvAttributes& other) const {
    return same_number(tolerance, other.tolerance) && same_line(where, other.where);
  }
};

/// Factors every matrix of the input and calls `f(index, decomposition)`. Throws for matrices that
/// are not finite.
template <class T, class F>
void for_decompositions(const KernelCall& call, const char* operation, const Where& where, F f) {
  const Shape& shape = call.input().shape();
  const std::int64_t m = shape.size(-2);
  const std::int64_t n = shape.size(-1);
  const FactorBatch batch = batch_for(shape, false);
  const auto failed = batch.run<T>(call, SingularValues::bytes(m, n),
                                   [&](std::int64_t index, std::span<std::byte> own, Products<T>&) {
                                     SingularValues parts(own.data(), m, n);
                                     const T* a = call.input().as<T>() + index * m * n;
                                     const auto at = [&](std::int64_t i, std::int64_t j) {
                                       return static_cast<double>(a[i * n + j]);
                                     };
                                     if (!parts.factor(m, n, at)) return std::int64_t{0};
                                     f(index, parts);
                                     return std::int64_t{-1};
                                   });
  if (failed.first < 0) return;
  throw ArgumentError(operation,
                      "the singular values of matrix " + std::to_string(failed.first) +
                          " of shape " + to_string(shape) +
                          " do not converge; check for elements that are not finite",
                      where);
}

/// Changes signs so that in each left vector the first element of at least 0.9 times the largest
/// magnitude is positive.
void fix_signs(const SingularValues& parts, std::int64_t m, std::int64_t n) {
  for (std::int64_t j = 0; j < std::min(m, n); ++j) {
    double* const u = parts.u + j * m;
    double most = 0;
    for (std::int64_t i = 0; i < m; ++i) most = std::max(most, std::abs(u[i]));
    const double* first =
        std::find_if(u, u + m, [&](double x) { return std::abs(x) >= 0.9 * most; });
    if (first == u + m || *first >= 0) continue;
    std::transform(u, u + m, u, std::negate());
    std::transform(parts.v + j * n, parts.v + (j + 1) * n, parts.v + j * n, std::negate());
  }
}

template <class T>
void compute_svd(const KernelCall& call) {
  const Shape& shape = call.input().shape();
  const std::int64_t m = shape.size(-2);
  const std::int64_t n = shape.size(-1);
  const std::int64_t k = std::min(m, n);
  const auto where = call.attributes.as<Blamed>().where;
  for_decompositions<T>(call, "svd", where, [&](std::int64_t index, const SingularValues& parts) {
    fix_signs(parts, m, n);
    T* u = call.output(0).as<T>() + index * m * k;
    for (std::int64_t i = 0; i < m * k; ++i) u[i] = static_cast<T>(parts.u[i % k * m + i / k]);
    T* values = call.output(1).as<T>() + index * k;
    T* vh = call.output(2).as<T>() + index * k * n;
    for (std::int64_t i = 0; i < k; ++i) values[i] = static_cast<T>(parts.values[i]);
    for (std::int64_t i = 0; i < k * n; ++i) vh[i] = static_cast<T>(parts.v[i]);
  });
}

template <class T>
void compute_pinv(const KernelCall& call) {
  const Shape& shape = call.input().shape();
  const std::int64_t m = shape.size(-2);
  const std::int64_t n = shape.size(-1);
  const auto& [tolerance, where] = call.attributes.as<PinvAttributes>();
  for_decompositions<T>(
      call, "pinv", where,
      [&, tolerance = tolerance](std::int64_t index, const SingularValues& parts) {
        T* y = call.output().as<T>() + index * n * m;
        const std::int64_t k = std::min(m, n);
        std::int64_t rank = 0;
        while (rank < k && parts.values[rank] > tolerance * parts.values[0]) ++rank;
        for (std::int64_t j = 0; j < rank; ++j) {
          for (std::int64_t i = 0; i < n; ++i) parts.v[j * n + i] /= parts.values[j];
        }
        for (std::int64_t i = 0; i < n; ++i) {
          for (std::int64_t c = 0; c < m; ++c) {
            double sum = 0;
            for (std::int64_t j = 0; j < rank; ++j) sum += parts.v[j * n + i] * parts.u[j * m + c];
            y[i * m + c] = static_cast<T>(sum);
          }
        }
      });
}

constexpr MatmulOptions left_transposed{.transpose_a = true};
constexpr MatmulOptions right_transposed{.transpose_b = true};

Var antisymmetric(const Var& x, const Where& where) { return x - transpose(x, -2, -1, where); }

/// x/s. If `may_be_0`, 0 where x = s = 0: vectors of a singular value 0 that nothing depends on.
Var quotient(const Var& x, const Var& s, bool may_be_0, const Where& where) {
  if (!may_be_0) return x / s;
  const Var none = logical_and(equal(x, 0, where), equal(s, 0, where), where);
  return palimpsest::where(none, 0, x / palimpsest::where(none, 1, s, where), where);
}

// Townsend, "Differentiating the singular value decomposition" (2016). Let skew(x) = x − xᵀ,
// p = skew(uᵀ·ū) and q = skew(vᵀ·v̄):
//   ā = u·(inner + s̄)·vᵀ + (1 − u·uᵀ)·ū/s·vᵀ + u/s·v̄ᵀ·(1 − v·vᵀ)
//   innerᵢⱼ = (pᵢⱼ·sⱼ + sᵢ·qᵢⱼ)/(sⱼ² − sᵢ²) = (p + q)ᵢⱼ/2(sⱼ − sᵢ) + (p − q)ᵢⱼ/2(sⱼ + sᵢ)
// In the second form, only the first quotient is not defined where two values are equal.
// Derivatives of 16-bit matrices are computed in f32, from recomputed factors.
void pull_back_svd(const Pullback& p) {
  const Where where = p.where();
  const DType dtype = p.input().dtype();
  const DType wide = compute_dtype(dtype);
  const Svd again = wide == dtype ? Svd{p.output(0), p.output(1), p.output(2)}
                                  : svd(cast(p.input(), wide, where), where);
  const Var& u = again.u;
  const Var& vh = again.vh;
  const std::int64_t k = again.values.shape().size(-1);
  const Var row = unsqueeze(again.values, -2, where);     // s as a factor of columns
  const Var column = unsqueeze(again.values, -1, where);  // s as a factor of rows
  const auto adjoint = [&](std::size_t i) { return cast(p.adjoint(i), wide, where); };
  const auto plus = [](const Var& a, const Var& b) { return a.defined() ? a + b : b; };
  Var left;  // ā = left·vᵀ + rest
  Var rest;
  Var of_sum;  // p + q
  Var of_difference;
  Var scale;
  GapOptions options{.spectrum = Spectrum::singular_values};
  bool may_be_0 = true;  // the limit of 0/0
  const auto note = [&](std::size_t i, int axis) {
    const Var dv = adjoint(i);
    scale = plus(scale, gap_scale(dv, axis, where));
    GapOptions own;
    set_tolerances(own, p.adjoint(i), p.output(1), wide, dv.shape().size(axis));
    may_be_0 = may_be_0 && own.close >= 0;
    options.close = std::max(options.close, own.close);
    options.noise = std::max(options.noise, own.noise);
    return own.close >= 0;
  };
  if (p.has_adjoint(0)) {
    const Var du = adjoint(0);
    const Var turned = matmul(u, du, left_transposed, where);
    of_sum = of_difference = antisymmetric(turned, where);
    const bool is_known = note(0, -2);
    if (u.shape().size(-2) > k)
      left = quotient(du - matmul(u, turned, {}, where), row, is_known, where);
  }
  if (p.has_adjoint(2)) {
    const Var dvh = adjoint(2);
    const Var turned = matmul(vh, dvh, right_transposed, where);
    const Var q = antisymmetric(turned, where);
    of_difference = of_difference.defined() ? of_difference - q : -q;
    of_sum = plus(of_sum, q);
    const bool is_known = note(2, -1);
    if (vh.shape().size(-1) > k) {
      const Var outside = dvh - matmul(turned, vh, left_transposed, where);
      rest = matmul(u, quotient(outside, column, is_known, where), {}, where);
    }
  }
  if (of_sum.defined()) {
    if (!may_be_0) options.close = options.noise = -1;
    const Var by_gaps = gap_quotients(of_sum, again.values, scale, options, where);
    options.by_sums = true;
    const Var by_sums = gap_quotients(of_difference, again.values, scale, options, where);
    left = plus(left, matmul(u, (by_gaps + by_sums) * 0.5, {}, where));
  }
  if (p.has_adjoint(1)) left = plus(left, u * unsqueeze(adjoint(1), -2, where));
  p.set(0, cast(plus(rest, matmul(left, vh, {}, where)), dtype, where));
}

// Golub and Pereyra (1973): for matrices of constant rank,
//   ā = −pᵀ·p̄·pᵀ + (1 − a·p)·p̄ᵀ·p·pᵀ + pᵀ·p·p̄ᵀ·(1 − p·a)
void pull_back_pinv(const Pullback& pull) {
  const Where where = pull.where();
  const DType dtype = pull.input().dtype();
  const DType wide = compute_dtype(dtype);
  const Var a = cast(pull.input(), wide, where);
  const Var p = wide == dtype ? pull.output()
                              : pinv(a, pull.attributes().as<PinvAttributes>().tolerance, where);
  const Var d = cast(pull.adjoint(), wide, where);
  const Var first = matmul(matmul(p, d, left_transposed, where), p, right_transposed, where);
  const Var columns = matmul(matmul(d, p, left_transposed, where), p, right_transposed, where);
  const Var outside = columns - matmul(a, matmul(p, columns, {}, where), {}, where);
  const Var rows = matmul(p, matmul(p, d, right_transposed, where), left_transposed, where);
  const Var beside = rows - matmul(matmul(rows, p, {}, where), a, {}, where);
  pull.set(0, cast(outside + beside - first, dtype, where));
}

Cost svd_cost(const NodeView& node) {
  const Shape a = node.input(0).shape;
  const auto n = static_cast<double>(std::min(a.size(-2), a.size(-1)));
  return {60 * n * static_cast<double>(a.elements()), bytes_moved(node)};
}

Bytes svd_workspace(const NodeView& node, int threads) {
  const Shape a = node.input(0).shape;
  return batch_for(a, false).workspace<float>(
      threads, SingularValues::bytes(a.size(-2), a.size(-1)), [](Products<float>&) {});
}

const Operation svd_operation{
    .name = "svd",
    .formula =
        "a = u·diag(s)·vᵀ, ā = u·(skew(uᵀ·ū)/E·s + s·skew(vᵀ·v̄)/E + s̄)·vᵀ + "
        "(1 - u·uᵀ)·ū/s·vᵀ + u/s·v̄ᵀ·(1 - v·vᵀ), E(i, j) = sⱼ² - sᵢ², skew(x) = x - xᵀ",
    .summary = "singular values and vectors",
    .compute =
        [](const KernelCall& call) {
          visit_floating(call.output().dtype(), [&]<class T>(T) { compute_svd<T>(call); });
        },
    .vjp = pull_back_svd,
    .cost = svd_cost,
    .workspace = svd_workspace,
};

const Operation pinv_operation{
    .name = "pinv",
    .formula = "p = a⁺, ā = -pᵀ·p̄·pᵀ + (1 - a·p)·p̄ᵀ·p·pᵀ + pᵀ·p·p̄ᵀ·(1 - p·a)",
    .summary = "Moore-Penrose inverse",
    .compute =
        [](const KernelCall& call) {
          visit_floating(call.output().dtype(), [&]<class T>(T) { compute_pinv<T>(call); });
        },
    .vjp = pull_back_pinv,
    .cost = svd_cost,
    .workspace = svd_workspace,
};

}  // namespace

std::span<const Operation* const> svd_operations() {
  static const Operation* const family[] = {&svd_operation, &pinv_operation};
  return family;
}

Svd svd(const Var& a, Where where) {
  check_matrices("svd", a, false, where);
  const Shape shape = a.shape();
  const Shape batch = batch_of(shape);
  const std::int64_t k = std::min(shape.size(-2), shape.size(-1));
  Shape values = batch;
  values.push_back(k);
  const ValueType types[] = {{with_matrix(batch, shape.size(-2), k), a.dtype()},
                             {values, a.dtype()},
                             {with_matrix(batch, k, shape.size(-1)), a.dtype()}};
  const Var u = a.tape().record(svd_operation, {&a, 1}, types, Blamed{where}, where);
  return {u, u.output(1), u.output(2)};
}

Var svdvals(const Var& a, Where where) { return svd(a, where).values; }

Var pinv(const Var& a, std::optional<double> tolerance, Where where) {
  check_matrices("pinv", a, false, where);
  if (tolerance && !(*tolerance >= 0)) {
    throw ArgumentError(
        "pinv", "the tolerance is " + std::to_string(*tolerance) + "; give 0 or more", where);
  }
  const Shape shape = a.shape();
  const std::int64_t m = shape.size(-2);
  const std::int64_t n = shape.size(-1);
  const ValueType type{with_matrix(batch_of(shape), n, m), a.dtype()};
  const double usual = epsilon_of(a.dtype()) * static_cast<double>(std::max(m, n));
  return a.tape().record(pinv_operation, {&a, 1}, {&type, 1},
                         PinvAttributes{tolerance.value_or(usual), where}, where);
}

}  // namespace palimpsest
