#include "autodiff/operations/linalg.h"

#include <cmath>

#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/functions/arithmetic.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/unary.h"
#include "tests/autodiff/operation_rows.h"

namespace palimpsest {
namespace {

/// Matrices far from singular: the eigenvalues of their symmetric part are around 3. The symmetric
/// matrix in the lower triangle is positive definite.
Tensor definite(const Shape& shape, std::uint64_t seed) {
  const Tensor a = normal_numbers(shape, seed);
  const std::int64_t n = shape.size(-1);
  const auto data = a.data<double>();
  for (std::int64_t i = 0; i < a.elements(); ++i) {
    double& x = data[static_cast<std::size_t>(i)];
    x *= 0.5 / std::sqrt(static_cast<double>(n));
    if (i / n % n == i % n) x += 3;
  }
  return a;
}

/// Rows of an operation with two outputs: both outputs together, and each one alone.
template <class F>
void add_pair(std::vector<OperationRow>& rows, const char* name, const char* label,
              const Tensor& input, F f) {
  rows.push_back({name, std::string(label) + ", first output", {input}, [f](auto xs) {
                    return f(xs[0]).first;
                  }});
  rows.push_back({name, std::string(label) + ", second output", {input}, [f](auto xs) {
                    return f(xs[0]).second;
                  }});
  rows.push_back({name, std::string(label) + ", both outputs", {input}, [f](auto xs) {
                    const auto [a, b] = f(xs[0]);
                    return sum(a * a) + sum(b * b * b);
                  }});
}

OperationRow system(const char* name, const char* label, const Shape& a, const Shape& b,
                    const TriangularSolveOptions& options) {
  return {name, label, {definite(a, 51), normal_numbers(b, 52)}, [options](auto xs) {
            return triangular_solve(xs[0], xs[1], options);
          }};
}

/// Matrices whose rank is lower than n by `missing`.
Tensor singular(std::int64_t n, std::int64_t missing, std::uint64_t seed) {
  const Tensor a = normal_numbers({n, n}, seed);
  const auto data = a.data<double>();
  const auto row = [&](std::int64_t i) { return data.subspan(static_cast<std::size_t>(i * n)); };
  for (std::int64_t i = n - missing; i < n; ++i) {
    for (std::size_t j = 0; j < static_cast<std::size_t>(n); ++j) {
      row(i)[j] = row(0)[j] - static_cast<double>(i) * row(1)[j];
    }
  }
  return a;
}

}  // namespace

std::vector<OperationRow> linalg_rows() {
  std::vector<OperationRow> rows = {
      {"triangle", "lower", {normal_numbers({2, 3, 4}, 50)}, [](auto xs) { return tril(xs[0]); }},
      {"triangle",
       "upper, tall",
       {normal_numbers({4, 3}, 50)},
       [](auto xs) { return triu(xs[0], -1); }},
      {"triangle",
       "no rows",
       {normal_numbers({2, 0, 3}, 50)},
       [](auto xs) { return tril(xs[0], 1); }},
      {"cholesky", "one matrix", {definite({4, 4}, 51)}, [](auto xs) { return cholesky(xs[0]); }},
      {"cholesky", "batch", {definite({2, 3, 3, 3}, 51)}, [](auto xs) { return cholesky(xs[0]); }},
      {"cholesky", "one element", {definite({1, 1}, 51)}, [](auto xs) { return cholesky(xs[0]); }},
      {"cholesky",
       "no rows",
       {normal_numbers({2, 0, 0}, 51)},
       [](auto xs) { return cholesky(xs[0]); }},
      {"cholesky", "blocked", {definite({37, 37}, 51)}, [](auto xs) { return cholesky(xs[0]); }},
      system("triangular_solve", "lower", {4, 4}, {4, 3}, {}),
      system("triangular_solve", "upper", {2, 4, 4}, {2, 4, 3}, {.upper = true}),
      system("triangular_solve", "transposed", {4, 4}, {4, 3}, {.transpose = true}),
      system("triangular_solve", "upper, transposed, shared", {4, 4}, {2, 4, 1},
             {.upper = true, .transpose = true}),
      system("triangular_solve", "right, many for one", {3, 2, 4, 4}, {2, 3, 4}, {.right = true}),
      system("triangular_solve", "right, upper", {4, 4}, {3, 4}, {.upper = true, .right = true}),
      system("triangular_solve", "right, transposed", {4, 4}, {3, 4},
             {.transpose = true, .right = true}),
      system("triangular_solve", "right, upper, transposed", {2, 4, 4}, {1, 3, 4},
             {.upper = true, .transpose = true, .right = true}),
      system("triangular_solve", "blocked", {39, 39}, {39, 5}, {.upper = true}),
      system("triangular_solve", "blocked, right", {39, 39}, {5, 39}, {.right = true}),
      system("triangular_solve", "nothing to solve for", {3, 3}, {3, 0}, {}),
      {"solve",
       "one system",
       {definite({4, 4}, 53), normal_numbers({4, 3}, 54)},
       [](auto xs) { return solve(xs[0], xs[1]); }},
      {"solve",
       "a vector for many, transposed",
       {definite({2, 4, 4}, 53), normal_numbers({4}, 54)},
       [](auto xs) { return solve(xs[0], xs[1], {.transpose = true}); }},
      {"solve",
       "many for one",
       {definite({4, 4}, 53), normal_numbers({2, 3, 4, 2}, 54)},
       [](auto xs) { return solve(xs[0], xs[1]); }},
      {"solve",
       "pivots, blocked",
       {definite({35, 35}, 55), normal_numbers({35, 2}, 54)},
       [](auto xs) { return solve(flip(xs[0], {-2}), xs[1]); }},
      {"solve",
       "no rows",
       {normal_numbers({0, 0}, 53), normal_numbers({0, 2}, 54)},
       [](auto xs) { return solve(xs[0], xs[1]); }},
      {"inverse", "batch", {definite({3, 4, 4}, 56)}, [](auto xs) { return inverse(xs[0]); }},
      {"inverse", "blocked", {definite({33, 33}, 56)}, [](auto xs) { return inverse(xs[0]); }, 1},
      {"det", "batch", {definite({2, 3, 3}, 57)}, [](auto xs) { return det(xs[0]); }},
      {"det", "negative", {normal_numbers({3, 3}, 60)}, [](auto xs) { return det(xs[0]); }},
      {"det", "singular", {singular(4, 1, 66)}, [](auto xs) { return det(xs[0]) + sum(xs[0]); }},
      {"det", "of rank two", {singular(4, 2, 66)}, [](auto xs) { return det(xs[0]) + sum(xs[0]); }},
      {"cofactors",
       "regular and singular matrices",
       {singular(3, 1, 67), normal_numbers({3, 3}, 68)},
       [](auto xs) {
         const Var both = stack({xs[0], xs[1]}, 0);
         return gradient(det(both), both);
       },
       2,
       false},
      {"cofactors",
       "the second derivative of a determinant",
       {singular(4, 2, 69), normal_numbers({4, 4}, 70)},
       [](auto xs) { return gradient(gradient(det(xs[0]), xs[0]) * xs[1], xs[0]); },
       2,
       false},
      {"cofactors",
       "one element",
       {normal_numbers({2, 1, 1}, 71)},
       [](auto xs) { return gradient(square(det(xs[0])), xs[0]); }},
      {"logdet", "batch", {definite({2, 3, 3}, 57)}, [](auto xs) { return logdet(xs[0]); }},
      {"logdet", "no rows", {normal_numbers({2, 0, 0}, 57)}, [](auto xs) { return logdet(xs[0]); }},
      {"slogdet",
       "any sign",
       {normal_numbers({5, 3, 3}, 65)},
       [](auto xs) {
         const auto [sign, magnitude] = slogdet(xs[0]);
         return magnitude + sign;
       }},
  };
  const auto both = [](auto pair) {
    const auto [first, second] = pair;
    return std::pair<Var, Var>(first, second);
  };
  const auto factor = [both](const Var& x) { return both(qr(x)); };
  add_pair(rows, "qr", "square", normal_numbers({3, 3}, 60), factor);
  add_pair(rows, "qr", "tall, batch", normal_numbers({2, 5, 3}, 61), factor);
  add_pair(rows, "qr", "wide, batch", normal_numbers({2, 3, 5}, 85), factor);
  rows.push_back(
      {"qr", "no columns", {normal_numbers({3, 0}, 61)}, [](auto xs) { return qr(xs[0]).q; }});
  const auto spectrum = [both](const Var& x) { return both(eigh(x)); };
  add_pair(rows, "eigh", "one matrix", normal_numbers({4, 4}, 62), spectrum);
  add_pair(rows, "eigh", "batch", normal_numbers({2, 3, 3}, 63), spectrum);
  rows.push_back({"eigh", "one element", {normal_numbers({2, 1, 1}, 63)}, [](auto xs) {
                    return eigh(xs[0]).values;
                  }});
  rows.push_back({"eigh", "no rows", {normal_numbers({2, 0, 0}, 63)}, [](auto xs) {
                    return eigh(xs[0]).vectors;
                  }});
  rows.push_back({"gap_quotients", "in eigh's adjoint", {normal_numbers({3, 3}, 64)}, [](auto xs) {
                    return gradient(sum(eigh(xs[0]).vectors), xs[0]);
                  }});
  return rows;
}

}  // namespace palimpsest
