#include "autodiff/operations/construction.h"

#include <algorithm>
#include <string>

#include "autodiff/enumerators.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/placed.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/shape.h"
#include "autodiff/tape.h"

namespace palimpsest {
namespace {

/// The first element and the number of elements of a diagonal of (m, n) matrices.
struct DiagonalPlaces {
  std::int64_t start;
  std::int64_t count;
};

DiagonalPlaces places_of(std::int64_t m, std::int64_t n, std::int64_t offset) {
  const std::int64_t rows = m + std::min<std::int64_t>(offset, 0);
  const std::int64_t columns = n - std::max<std::int64_t>(offset, 0);
  const std::int64_t count = std::max<std::int64_t>(std::min(rows, columns), 0);
  return {count == 0 ? 0 : offset < 0 ? -offset * n : offset, count};
}

/// x with the axes a and b moved to the end, in this order.
Var with_matrices_last(const Var& x, int a, int b, const char* operation, const Where& where) {
  const int row = x.shape().wrap(a, operation, where);
  const int column = x.shape().wrap(b, operation, where);
  if (row == column) {
    throw ShapeError(operation,
                     "axes " + std::to_string(a) + " and " + std::to_string(b) +
                         " are the same; give two axes of shape " + to_string(x.shape()),
                     where);
  }
  Axes axes;
  for (int axis = 0; axis < x.rank(); ++axis) {
    if (axis != row && axis != column) axes.push_back(axis);
  }
  axes.push_back(row);
  axes.push_back(column);
  return permute(x, axes, where);
}

/// `shape` with leading axes of size 1, up to the given rank.
Shape lengthened(const Shape& shape, int rank) {
  Shape longer;
  for (int axis = shape.rank(); axis < rank; ++axis) longer.push_back(1);
  for (const std::int64_t size : shape) longer.push_back(size);
  return longer;
}

void require_some(std::span<const Var> parts, const char* operation, const Where& where) {
  if (parts.empty())
    throw ArgumentError(operation, "no tensors are given; give at least one", where);
  common_tape(parts, operation, where);
}

}  // namespace

Var zeros(Tape& tape, const Shape& shape, DType dtype, Where where) {
  return full(tape, shape, 0, dtype, where);
}

Var ones(Tape& tape, const Shape& shape, DType dtype, Where where) {
  return full(tape, shape, 1, dtype, where);
}

Var zeros_like(const Var& x, Where where) { return full_like(x, 0, where); }

Var ones_like(const Var& x, Where where) { return full_like(x, 1, where); }

Var eye(Tape& tape, std::int64_t n, DType dtype, Where where) {
  return eye(tape, n, n, dtype, where);
}

Var eye(Tape& tape, std::int64_t n, std::int64_t m, DType dtype, Where where) {
  const Var diagonal = full(tape, {std::min(n, m)}, 1, dtype, where);
  const std::int64_t elements = multiply_sizes(n, m);
  return reshape(spread_among_zeros(diagonal, 0, m + 1, elements, where), Shape{n, m}, where);
}

Var diagonal(const Var& x, int offset, int a, int b, Where where) {
  require_value(x, "diagonal", where);
  const Var matrices = with_matrices_last(x, a, b, "diagonal", where);
  const std::int64_t n = matrices.shape().size(-1);
  const auto [start, count] = places_of(matrices.shape().size(-2), n, offset);
  const Slice range{start, count == 0 ? start : start + (count - 1) * (n + 1) + 1, n + 1};
  return slice(flatten(matrices, -2, -1, where), -1, range, where);
}

Var diag_embed(const Var& x, int offset, int a, int b, Where where) {
  require_value(x, "diag_embed", where);
  if (x.rank() == 0) {
    throw ShapeError("diag_embed", "a scalar has no axis for the diagonal; give a vector", where);
  }
  Shape shape = x.shape();
  require_axes(shape.rank() + 1, "diag_embed", where);
  const std::int64_t count = shape.size(-1);
  const std::int64_t n = add_sizes(count, std::abs(static_cast<std::int64_t>(offset)));
  const std::int64_t start = places_of(n, n, offset).start;
  const Var flat = spread_among_zeros(x, start, n + 1, multiply_sizes(n, n), where);
  shape[shape.rank() - 1] = n;
  shape.push_back(n);
  const Var matrices = reshape(flat, shape, where);
  const int row = shape.wrap(a, "diag_embed", where);
  const int column = shape.wrap(b, "diag_embed", where);
  if (row == column) {
    throw ShapeError("diag_embed",
                     "axes " + std::to_string(a) + " and " + std::to_string(b) +
                         " are the same; give two axes of the result " + to_string(shape),
                     where);
  }
  Axes axes;
  int next = 0;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    axes.push_back(axis == row ? shape.rank() - 2 : axis == column ? shape.rank() - 1 : next++);
  }
  return permute(matrices, axes, where);
}

Var diag(const Var& x, int offset, Where where) {
  require_value(x, "diag", where);
  if (x.rank() == 1) return diag_embed(x, offset, 0, 1, where);
  if (x.rank() == 2) return diagonal(x, offset, 0, 1, where);
  throw ShapeError("diag",
                   "takes a vector or a matrix, not shape " + to_string(x.shape()) +
                       "; for batches use diag_embed or diagonal",
                   where);
}

Var trace(const Var& x, int offset, int a, int b, Where where) {
  require_value(x, "trace", where);
  return sum(diagonal(x, offset, a, b, where), {-1}, false, where);
}

Var block_diag(std::span<const Var> blocks, Where where) {
  require_some(blocks, "block_diag", where);
  std::vector<Var> matrices;
  std::int64_t width = 0;
  for (const Var& block : blocks) {
    if (block.rank() > 2) {
      throw ShapeError("block_diag",
                       "takes matrices, not shape " + to_string(block.shape()) +
                           "; give one block for each matrix",
                       where);
    }
    matrices.push_back(reshape(block, lengthened(block.shape(), 2), where));
    width = add_sizes(width, matrices.back().shape()[1]);
  }
  std::int64_t before = 0;
  for (Var& matrix : matrices) {
    const std::int64_t columns = matrix.shape()[1];
    matrix = pad(matrix, {{0, 0}, {before, width - before - columns}}, 0, where);
    before += columns;
  }
  return concat(matrices, 0, where);
}

Var block_diag(std::initializer_list<Var> blocks, Where where) {
  return block_diag(std::span(blocks.begin(), blocks.size()), where);
}

std::vector<Var> meshgrid(std::span<const Var> vectors, GridIndexing indexing, Where where) {
  require_some(vectors, "meshgrid", where);
  const int rank = static_cast<int>(vectors.size());
  require_axes(rank, "meshgrid", where);
  require_enumerator(indexing, {GridIndexing::ij, GridIndexing::xy}, "meshgrid", "the indexing",
                     where);
  const auto axis_of = [&](int vector) {
    return indexing == GridIndexing::xy && rank > 1 && vector < 2 ? 1 - vector : vector;
  };
  Shape shape;
  for (int axis = 0; axis < rank; ++axis) shape.push_back(1);
  const Shape one = shape;
  for (int i = 0; i < rank; ++i) {
    const Var& vector = vectors[static_cast<std::size_t>(i)];
    if (vector.rank() > 1) {
      throw ShapeError("meshgrid",
                       "takes vectors, not shape " + to_string(vector.shape()) + "; flatten it",
                       where);
    }
    shape[axis_of(i)] = vector.shape().elements();
  }
  std::vector<Var> grids;
  for (int i = 0; i < rank; ++i) {
    Shape own = one;
    own[axis_of(i)] = shape[axis_of(i)];
    const Var aligned = reshape(vectors[static_cast<std::size_t>(i)], own, where);
    grids.push_back(broadcast_to(aligned, shape, where));
  }
  return grids;
}

std::vector<Var> meshgrid(std::initializer_list<Var> vectors, GridIndexing indexing, Where where) {
  return meshgrid(std::span(vectors.begin(), vectors.size()), indexing, where);
}

Var kron(const Var& a, const Var& b, Where where) {
  const Var both[] = {a, b};
  common_tape(both, "kron", where);
  const int rank = std::max(a.rank(), b.rank());
  require_axes(2 * rank, "kron", where);
  const Shape of_a = lengthened(a.shape(), rank);
  const Shape of_b = lengthened(b.shape(), rank);
  Shape apart_a, apart_b, result;
  for (int axis = 0; axis < rank; ++axis) {
    for (const std::int64_t size : {of_a[axis], std::int64_t{1}}) apart_a.push_back(size);
    for (const std::int64_t size : {std::int64_t{1}, of_b[axis]}) apart_b.push_back(size);
    result.push_back(multiply_sizes(of_a[axis], of_b[axis]));
  }
  const Var left = reshape(a, apart_a, where);
  const Var right = reshape(b, apart_b, where);
  return reshape(multiply(left, right, where), result, where);
}

Var cross(const Var& a, const Var& b, int axis, Where where) {
  const Var both[] = {a, b};
  common_tape(both, "cross", where);
  for (const Var& x : both) {
    const int wrapped = x.shape().wrap(axis, "cross", where);
    if (x.shape()[wrapped] == 3) continue;
    throw ShapeError("cross",
                     "axis " + std::to_string(axis) + " of shape " + to_string(x.shape()) +
                         " has size " + std::to_string(x.shape()[wrapped]) +
                         "; give vectors of three elements",
                     where);
  }
  const auto next = [&](const Var& x, std::int64_t by) { return roll(x, -by, axis, where); };
  const Var first = multiply(next(a, 1), next(b, 2), where);
  const Var second = multiply(next(a, 2), next(b, 1), where);
  return subtract(first, second, where);
}

Var movedim(const Var& x, int from, int to, Where where) {
  require_value(x, "movedim", where);
  const int source = x.shape().wrap(from, "movedim", where);
  const int target = x.shape().wrap(to, "movedim", where);
  std::vector<int> order;
  for (int axis = 0; axis < x.rank(); ++axis) {
    if (axis != source) order.push_back(axis);
  }
  order.insert(order.begin() + target, source);
  Axes axes;
  for (const int axis : order) axes.push_back(axis);
  return permute(x, axes, where);
}

Var swapaxes(const Var& x, int a, int b, Where where) { return transpose(x, a, b, where); }

Var unflatten(const Var& x, int axis, std::initializer_list<std::int64_t> sizes, Where where) {
  require_value(x, "unflatten", where);
  const Shape shape = x.shape();
  const int wrapped = shape.wrap(axis, "unflatten", where);
  const Shape split = [&] {
    try {
      return infer_shape({sizes.begin(), sizes.size()}, shape[wrapped]);
    } catch (const ShapeError& error) {
      throw ShapeError(std::string(error.what()) + " (recorded at " + to_string(where) + ")");
    }
  }();
  require_axes(shape.rank() - 1 + split.rank(), "unflatten", where);
  Shape result;
  for (int i = 0; i < shape.rank(); ++i) {
    if (i != wrapped) result.push_back(shape[i]);
    for (int j = 0; i == wrapped && j < split.rank(); ++j) result.push_back(split[j]);
  }
  return reshape(x, result, where);
}

Var fliplr(const Var& x, Where where) { return flip(x, {1}, where); }

Var flipud(const Var& x, Where where) { return flip(x, {0}, where); }

Var rot90(const Var& x, int times, int a, int b, Where where) {
  require_value(x, "rot90", where);
  const int first = x.shape().wrap(a, "rot90", where);
  const int second = x.shape().wrap(b, "rot90", where);
  if (first == second) {
    throw ShapeError("rot90",
                     "axes " + std::to_string(a) + " and " + std::to_string(b) +
                         " are the same; give two axes of shape " + to_string(x.shape()),
                     where);
  }
  switch ((times % 4 + 4) % 4) {
    case 1:
      return flip(transpose(x, first, second, where), {first}, where);
    case 2:
      return flip(x, {first, second}, where);
    case 3:
      return flip(transpose(x, first, second, where), {second}, where);
    default:
      return x;
  }
}

}  // namespace palimpsest
