#include "autodiff/operations/sparse.h"

#include <Eigen/Core>

#include "autodiff/gradient.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/matrices.h"
#include "autodiff/operations/registry.h"
#include "autodiff/operations/shape.h"
#include "autodiff/parallel.h"

namespace palimpsest {
namespace {

struct SparseAttributes {
  SparsePattern pattern;
  bool transpose = false;

  bool operator==(const SparseAttributes&) const = default;
};

template <class T>
using RowMap = Eigen::Map<Eigen::Array<T, 1, Eigen::Dynamic>>;

/// Calls `f(matrix, line)` in parallel for every line of every matrix. The cost of a line is its
/// number of entries times k.
template <class F>
void for_lines(std::int64_t matrices, const SparsePattern::Lines& lines, std::int64_t k, F f) {
  if (lines.lines == 0) return;
  const double each = static_cast<double>(lines.other.size()) / static_cast<double>(lines.lines);
  const double cost = (each + 1) * static_cast<double>(k);
  parallel_chunks(matrices * lines.lines, grain_for(cost),
                  [&](std::int64_t begin, std::int64_t end) {
                    std::int64_t matrix = begin / lines.lines;
                    std::int64_t line = begin % lines.lines;
                    for (std::int64_t at = begin; at < end; ++at) {
                      f(matrix, line);
                      if (++line < lines.lines) continue;
                      line = 0;
                      ++matrix;
                    }
                  });
}

template <class T>
void compute_product(const KernelCall& call) {
  const auto& [pattern, transpose] = call.attributes.as<SparseAttributes>();
  const SparsePattern::Lines& lines = transpose ? pattern.by_column() : pattern.by_row();
  const std::int64_t other_lines = transpose ? pattern.rows() : pattern.columns();
  const Shape& shape = call.output().shape();
  const std::int64_t k = shape.size(-1);
  const T* values = call.input(0).as<T>();
  T* x = call.input(1).as<T>();
  T* y = call.output().as<T>();
  const auto sum_line = [&](std::int64_t matrix, std::int64_t line, auto add) {
    const auto at = static_cast<std::size_t>(line);
    for (std::int64_t p = lines.starts[at]; p < lines.starts[at + 1]; ++p) {
      const auto place = static_cast<std::size_t>(p);
      const T value = values[lines.entry.empty() ? p : lines.entry[place]];
      add(value, x + (matrix * other_lines + lines.other[place]) * k);
    }
  };
  const std::int64_t matrices = batch_of(shape).elements();
  if (k == 1) {
    // Vectors are summed in registers; treated as rows of one element they took six times as long.
    for_lines(matrices, lines, k, [&](std::int64_t matrix, std::int64_t line) {
      T sum = 0;
      sum_line(matrix, line, [&](T value, const T* element) { sum += value * *element; });
      y[matrix * lines.lines + line] = sum;
    });
  } else {
    for_lines(matrices, lines, k, [&](std::int64_t matrix, std::int64_t line) {
      RowMap<T> sum(y + (matrix * lines.lines + line) * k, k);
      sum.setZero();
      sum_line(matrix, line, [&](T value, T* row) { sum += value * RowMap<T>(row, k); });
    });
  }
}

template <class T>
void compute_sampled(const KernelCall& call) {
  const SparsePattern& pattern = call.attributes.as<SparseAttributes>().pattern;
  const Shape& shape = call.input(0).shape();
  const std::int64_t k = shape.size(-1);
  const std::int64_t matrices = batch_of(shape).elements();
  const SparsePattern::Lines& rows = pattern.by_row();
  for_lines(1, rows, k * matrices, [&](std::int64_t, std::int64_t line) {
    const auto at = static_cast<std::size_t>(line);
    for (std::int64_t p = rows.starts[at]; p < rows.starts[at + 1]; ++p) {
      const std::int64_t column = rows.other[static_cast<std::size_t>(p)];
      T sum = 0;
      for (std::int64_t m = 0; m < matrices; ++m) {
        const RowMap<T> a(call.input(0).as<T>() + (m * rows.lines + line) * k, k);
        const RowMap<T> b(call.input(1).as<T>() + (m * pattern.columns() + column) * k, k);
        sum += (a * b).sum();
      }
      call.output().as<T>()[p] = sum;
    }
  });
}

Cost sparse_cost(const NodeView& node) {
  const SparsePattern& pattern = node.attributes().as<SparseAttributes>().pattern;
  const Shape dense = node.input(1).shape;
  const double matrices = static_cast<double>(batch_of(dense).elements());
  const double reads = static_cast<double>(pattern.entries() * dense.size(-1)) * matrices;
  const double element = static_cast<double>(size_of(node.output().dtype));
  return {2 * reads, reads * element + 12 * static_cast<double>(pattern.entries()) +
                         static_cast<double>(node.output().bytes())};
}

const Operation sparse_matmul_operation{
    .name = "sparse_matmul",
    .formula = "y = A(v)·x, x̄ = A(v)ᵀ·ȳ, v̄ = the entries of ȳ·xᵀ; likewise for Aᵀ",
    .summary = "product of a sparse matrix and dense matrices",
    .compute =
        [](const KernelCall& call) {
          visit_floating(call.output().dtype(), [&]<class T>(T) { compute_product<T>(call); });
        },
    .vjp =
        [](const Pullback& p) {
          const auto& [pattern, transpose] = p.attributes().as<SparseAttributes>();
          const Var x = p.input(1);
          const Var dy = p.adjoint();
          if (p.wants(0)) {
            p.set(0, sampled_matmul(pattern, transpose ? x : dy, transpose ? dy : x, p.where()));
          }
          if (p.wants(1)) {
            p.set(1, sparse_matmul(pattern, p.input(0), dy, {.transpose = !transpose}, p.where()));
          }
        },
    .cost = sparse_cost,
    .mixed = MixedPrecision::narrow,
};

const Operation sampled_matmul_operation{
    .name = "sampled_matmul",
    .formula = "y = the entries of a·bᵀ, ā = Y·b, b̄ = Yᵀ·a with Y the sparse matrix of ȳ",
    .summary = "elements of a dense product at the entries of a sparse matrix",
    .compute =
        [](const KernelCall& call) {
          visit_floating(call.output().dtype(), [&]<class T>(T) { compute_sampled<T>(call); });
        },
    .vjp =
        [](const Pullback& p) {
          const SparsePattern& pattern = p.attributes().as<SparseAttributes>().pattern;
          const Var dy = p.adjoint();
          if (p.wants(0)) p.set(0, sparse_matmul(pattern, dy, p.input(1), {}, p.where()));
          if (p.wants(1)) {
            p.set(1, sparse_matmul(pattern, dy, p.input(0), {.transpose = true}, p.where()));
          }
        },
    .cost = sparse_cost,
    .mixed = MixedPrecision::narrow,
};

std::string describe(const SparsePattern& pattern) {
  return "a sparse matrix (" + std::to_string(pattern.rows()) + ", " +
         std::to_string(pattern.columns()) + ") with " + std::to_string(pattern.entries()) +
         " entries";
}

}  // namespace

std::span<const Operation* const> sparse_operations() {
  static const Operation* const family[] = {&sparse_matmul_operation, &sampled_matmul_operation};
  return family;
}

Var sparse_matmul(const SparsePattern& pattern, const Var& values, const Var& x,
                  const SparseMatmulOptions& options, Where where) {
  const Var pair[] = {values, x};
  common_tape(pair, "sparse_matmul", where);
  if (x.rank() == 1) {
    const Var y =
        sparse_matmul(pattern, values, reshape(x, {x.shape()[0], 1}, where), options, where);
    return reshape(y, {y.shape()[0]}, where);
  }
  check_matrices("sparse_matmul", x, false, where);
  const Shape shape = x.shape();
  if (!is_floating(values.dtype())) {
    throw DTypeError("sparse_matmul",
                     "takes floating values, not " + to_string(values.type()) + "; cast them first",
                     where);
  }
  if (values.shape() != Shape{pattern.entries()}) {
    throw ShapeError("sparse_matmul",
                     describe(pattern) + " needs one value per entry, not values of shape " +
                         to_string(values.shape()) + "; give a vector of that length",
                     where);
  }
  const std::int64_t needed = options.transpose ? pattern.rows() : pattern.columns();
  if (shape.size(-2) != needed) {
    throw ShapeError("sparse_matmul",
                     describe(pattern) + (options.transpose ? ", transposed," : "") +
                         " does not multiply shape " + to_string(shape) + "; give matrices with " +
                         std::to_string(needed) + " rows",
                     where);
  }
  const DType dtype = promote(values.dtype(), x.dtype());
  const ValueType type{
      with_matrix(batch_of(shape), options.transpose ? pattern.columns() : pattern.rows(),
                  shape.size(-1)),
      dtype};
  const Var operands[] = {cast(values, dtype, where), cast(x, dtype, where)};
  return x.tape().record(sparse_matmul_operation, operands, {&type, 1},
                         SparseAttributes{pattern, options.transpose}, where);
}

Var sampled_matmul(const SparsePattern& pattern, const Var& a, const Var& b, Where where) {
  const Var pair[] = {a, b};
  common_tape(pair, "sampled_matmul", where);
  check_matrices("sampled_matmul", a, false, where);
  check_matrices("sampled_matmul", b, false, where);
  const Shape left = a.shape();
  if (b.shape() != with_matrix(batch_of(left), pattern.columns(), left.size(-1)) ||
      left.size(-2) != pattern.rows()) {
    throw ShapeError(
        "sampled_matmul",
        describe(pattern) + " does not sample shapes " + to_string(left) + " and " +
            to_string(b.shape()) +
            "; give one row of a per row, one row of b per column, and otherwise equal axes",
        where);
  }
  const DType dtype = promote(a.dtype(), b.dtype());
  const ValueType type{Shape{pattern.entries()}, dtype};
  const Var operands[] = {cast(a, dtype, where), cast(b, dtype, where)};
  return a.tape().record(sampled_matmul_operation, operands, {&type, 1},
                         SparseAttributes{pattern, false}, where);
}

}  // namespace palimpsest
