// Functions of matrices that are compositions of other operations.
#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "autodiff/enumerators.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/functions/arithmetic.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/linalg.h"
#include "autodiff/operations/matrices.h"
#include "autodiff/operations/products.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/unary.h"

namespace palimpsest {
namespace {

/// The order in which a chain of matrices is multiplied with the fewest operations, by dynamic
/// programming. Matrix i has `sizes[i]` rows and `sizes[i + 1]` columns.
class ChainOrder {
 public:
  explicit ChainOrder(const std::vector<std::int64_t>& sizes)
      : n_(sizes.size() - 1), cut_(n_ * n_), cost_(n_ * n_, 0) {
    for (std::size_t length = 2; length <= n_; ++length) {
      for (std::size_t first = 0; first + length <= n_; ++first) {
        const std::size_t last = first + length - 1;
        double& least = cost_[first * n_ + last];
        least = std::numeric_limits<double>::infinity();
        for (std::size_t cut = first; cut < last; ++cut) {
          const double cost = cost_[first * n_ + cut] + cost_[(cut + 1) * n_ + last] +
                              static_cast<double>(sizes[first]) *
                                  static_cast<double>(sizes[cut + 1]) *
                                  static_cast<double>(sizes[last + 1]);
          if (cost < least) least = cost, cut_[first * n_ + last] = cut;
        }
      }
    }
  }
  Var multiply(std::span<const Var> chain, std::size_t first, std::size_t last,
               const Where& where) const {
    if (first == last) return chain[first];
    const std::size_t cut = cut_[first * n_ + last];
    const Var left = multiply(chain, first, cut, where);
    return matmul(left, multiply(chain, cut + 1, last, where), {}, where);
  }

 private:
  std::size_t n_;
  std::vector<std::size_t> cut_;
  std::vector<double> cost_;
};

/// Moves the axes `summed` of x to the end, or to the front, and merges both groups into a matrix.
Var merged_axes(const Var& x, const std::vector<int>& summed, bool at_end, const Where& where) {
  Axes kept;
  Axes order;
  const Shape shape = x.shape();
  std::int64_t inner = 1;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (std::find(summed.begin(), summed.end(), axis) == summed.end()) kept.push_back(axis);
  }
  for (const int axis : summed) inner *= shape[axis];
  if (at_end) order.insert(order.end(), kept.begin(), kept.end());
  order.insert(order.end(), summed.begin(), summed.end());
  if (!at_end) order.insert(order.end(), kept.begin(), kept.end());
  std::int64_t outer = 1;
  for (const int axis : kept) outer *= shape[axis];
  const bool same = std::is_sorted(order.begin(), order.end());
  const Var moved = same ? x : permute(x, order, where);
  return reshape(moved, at_end ? Shape{outer, inner} : Shape{inner, outer}, where);
}

/// The axes of x in [0, rank). Throws `ShapeError` for axes that do not exist or are repeated.
std::vector<int> summed_axes(const Var& x, const Axes& axes, const Where& where) {
  std::vector<int> result;
  for (const int axis : axes) {
    const int wrapped = x.shape().wrap(axis, "tensordot", where);
    if (std::find(result.begin(), result.end(), wrapped) != result.end()) {
      throw ShapeError("tensordot",
                       "axis " + std::to_string(axis) + " of shape " + to_string(x.shape()) +
                           " is named twice; name each axis once",
                       where);
    }
    result.push_back(wrapped);
  }
  return result;
}

}  // namespace

Var tensordot(const Var& a, const Var& b, const Axes& axes_a, const Axes& axes_b, Where where) {
  const Var both[] = {a, b};
  common_tape(both, "tensordot", where);
  const std::vector<int> of_a = summed_axes(a, axes_a, where);
  const std::vector<int> of_b = summed_axes(b, axes_b, where);
  const Shape left = a.shape();
  const Shape right = b.shape();
  bool fits = of_a.size() == of_b.size();
  for (std::size_t i = 0; fits && i < of_a.size(); ++i) fits = left[of_a[i]] == right[of_b[i]];
  if (!fits) {
    throw ShapeError("tensordot",
                     "the summed axes of shapes " + to_string(left) + " and " + to_string(right) +
                         " do not have equal sizes in pairs; name as many axes of each, in the "
                         "same order",
                     where);
  }
  Shape result;
  for (const auto& [shape, summed] : {std::pair(&left, &of_a), std::pair(&right, &of_b)}) {
    for (int axis = 0; axis < shape->rank(); ++axis) {
      if (std::find(summed->begin(), summed->end(), axis) != summed->end()) continue;
      require_axes(result.rank() + 1, "tensordot", where);
      result.push_back((*shape)[axis]);
    }
  }
  const Var rows = merged_axes(a, of_a, true, where);
  return reshape(matmul(rows, merged_axes(b, of_b, false, where), {}, where), result, where);
}

Var tensordot(const Var& a, const Var& b, int count, Where where) {
  const Var both[] = {a, b};
  common_tape(both, "tensordot", where);
  if (count < 0 || count > a.rank() || count > b.rank()) {
    throw ShapeError("tensordot",
                     "cannot sum over " + std::to_string(count) + " axes of shapes " +
                         to_string(a.shape()) + " and " + to_string(b.shape()) +
                         "; give at most as many as each has",
                     where);
  }
  Axes last;
  Axes first;
  for (int i = 0; i < count; ++i) {
    last.push_back(a.rank() - count + i);
    first.push_back(i);
  }
  return tensordot(a, b, last, first, where);
}

Var vecdot(const Var& a, const Var& b, int axis, Where where) {
  for (const Var& x : {a, b}) require_value(x, "vecdot", where);
  broadcast(a.shape(), b.shape(), "vecdot", where);
  const Var product = multiply(a, b, where);
  if (!is_floating(product.dtype())) {
    throw DTypeError(
        "vecdot", "takes floating vectors, not " + to_string(product.type()) + "; cast one", where);
  }
  return sum(product, {axis}, false, where);
}

Var multi_dot(std::span<const Var> factors, Where where) {
  if (factors.empty()) {
    throw ArgumentError("multi_dot", "there are no matrices; give at least one", where);
  }
  common_tape(factors, "multi_dot", where);
  std::vector<Var> chain(factors.begin(), factors.end());
  if (chain.size() == 1) return chain[0];
  const bool row = chain.front().rank() == 1;
  const bool column = chain.back().rank() == 1;
  if (row) chain.front() = unsqueeze(chain.front(), 0, where);
  if (column) chain.back() = unsqueeze(chain.back(), 1, where);
  std::vector<std::int64_t> sizes;
  for (const Var& x : chain) {
    const Shape shape = x.shape();
    if (shape.rank() != 2 || (!sizes.empty() && sizes.back() != shape[0])) {
      throw ShapeError("multi_dot",
                       "matrix " + to_string(shape) +
                           " does not continue the chain; give matrices, each with as many rows "
                           "as the one before has columns",
                       where);
    }
    if (sizes.empty()) sizes.push_back(shape[0]);
    sizes.push_back(shape[1]);
  }
  const Var product = ChainOrder(sizes).multiply(chain, 0, chain.size() - 1, where);
  Axes single;
  if (row) single.push_back(0);
  if (column) single.push_back(1);
  return single.empty() ? product : squeeze(product, single, where);
}

Var multi_dot(std::initializer_list<Var> factors, Where where) {
  return multi_dot(std::span(factors.begin(), factors.size()), where);
}

Var matrix_power(const Var& a, std::int64_t n, Where where) {
  check_matrices("matrix_power", a, true, where);
  if (n == 0) return tril(triu(full_like(a, 1, where), 0, where), 0, where);
  Var square = n < 0 ? inverse(a, where) : a;
  Var result;
  auto rest = n < 0 ? -static_cast<std::uint64_t>(n) : static_cast<std::uint64_t>(n);
  for (;; square = matmul(square, square, {}, where)) {
    if (rest % 2 == 1) result = result.defined() ? matmul(result, square, {}, where) : square;
    rest /= 2;
    if (rest == 0) return result;
  }
}

Var lstsq(const Var& a, const Var& b, Where where) {
  check_matrices("lstsq", a, false, where);
  const Var both[] = {a, b};
  common_tape(both, "lstsq", where);
  const bool vector = b.rank() == 1;
  const Shape shape = a.shape();
  if (b.rank() == 0 || b.shape().size(vector ? -1 : -2) != shape.size(-2)) {
    throw ShapeError("lstsq",
                     "a " + to_string(shape) + " and b " + to_string(b.shape()) +
                         " do not have equally many rows",
                     where);
  }
  const Var right = vector ? unsqueeze(b, 1, where) : b;
  Var x;
  if (shape.size(-2) >= shape.size(-1)) {
    const auto [q, r] = qr(a, where);
    const Var turned = matmul(q, right, {.transpose_a = true}, where);
    x = triangular_solve(r, turned, {.upper = true}, where);
  } else {
    const auto [q, r] = qr(transpose(a, -2, -1, where), where);
    x = matmul(q, triangular_solve(r, right, {.upper = true, .transpose = true}, where), {}, where);
  }
  return vector ? squeeze(x, {-1}, where) : x;
}

Var matrix_norm(const Var& x, MatrixNorm kind, bool keep_axes, Where where) {
  check_matrices("matrix_norm", x, false, where);
  using enum MatrixNorm;
  require_enumerator(kind, {frobenius, nuclear, spectral, one, infinity}, "matrix_norm", "the kind",
                     where);
  const auto of_values = [&](const Var& value) {
    return keep_axes ? reshape(value, with_matrix(value.shape(), 1, 1), where) : value;
  };
  switch (kind) {
    case MatrixNorm::nuclear:
      return of_values(sum(svdvals(x, where), {-1}, false, where));
    case MatrixNorm::spectral:
      return of_values(select(svdvals(x, where), -1, 0, where));  // the largest
    case MatrixNorm::one:
    case MatrixNorm::infinity: {
      const int summed = kind == MatrixNorm::one ? -2 : -1;
      const Var sums = norm(x, 1, {summed}, true, where);
      const Var largest = max(sums, {summed == -2 ? -1 : -2}, true, where);
      return keep_axes ? largest : squeeze(largest, {-2, -1}, where);
    }
    default:
      return norm(x, 2, {-2, -1}, keep_axes, where);
  }
}

}  // namespace palimpsest
