#include "autodiff/operations/gap_quotients.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/matrices.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/registry.h"
#include "autodiff/parallel.h"

namespace palimpsest {
namespace {

struct GapAttributes {
  GapOptions options;
  Where where;

  bool operator==(const GapAttributes& other) const {
    return options == other.options && same_line(where, other.where);
  }
};

[[noreturn]] void throw_equal(const GapAttributes& a, const Shape& shape, std::int64_t matrix,
                              std::int64_t i, std::int64_t j) {
  const bool singular = a.options.spectrum == Spectrum::singular_values;
  const std::string values = singular ? "singular values" : "eigenvalues";
  throw ArgumentError(singular ? "svd" : "eigh",
                      values + " " + std::to_string(i) + " and " + std::to_string(j) +
                          " of matrix " + std::to_string(matrix) + " of shape " + to_string(shape) +
                          " are equal, so their " + (singular ? "" : "eigen") +
                          "vectors have no derivative; use only the " + values +
                          ", use a wider dtype, or perturb the matrix slightly",
                      a.where);
}

/// Divides the numerators of row i of a matrix. `noise`, times the scales of row and column, bounds
/// numerators that are 0 within rounding, and `close` bounds the denominators. Returns the first
/// column that cannot be divided, or n.
template <class T>
std::int64_t divide_row(const T* numerators, const T* w, const T* scales, std::int64_t n,
                        std::int64_t i, const GapOptions& options, double close, T* y) {
  for (std::int64_t j = 0; j < n; ++j) {
    const T gap = options.by_sums ? w[j] + w[i] : w[j] - w[i];
    const double noise = options.noise * (double{scales[i]} + double{scales[j]});
    const double numerator = std::abs(static_cast<double>(numerators[j]));
    if (j == i || (std::abs(static_cast<double>(gap)) <= close && numerator <= noise)) {
      y[j] = T(0);
    } else if (gap == T(0)) {
      return j;
    } else {
      y[j] = numerators[j] / gap;
    }
  }
  return n;
}

template <class T>
void compute_gap_quotients(const KernelCall& call) {
  const auto& a = call.attributes.as<GapAttributes>();
  const Shape& shape = call.output().shape();
  const std::int64_t n = shape.size(-1);
  const std::int64_t matrices = n == 0 ? 0 : call.output().elements() / (n * n);
  const double size = static_cast<double>(n);
  parallel_chunks(matrices, grain_for(size * size), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t matrix = begin; matrix < end; ++matrix) {
      const T* w = call.input(1).as<T>() + matrix * n;
      const double largest = std::max(std::abs(double{w[0]}), std::abs(double{w[n - 1]}));
      const T* scales = call.input(2).as<T>() + matrix * n;
      const double close = a.options.close < 0 ? -1 : a.options.close * largest;
      for (std::int64_t i = 0; i < n; ++i) {
        const std::int64_t row = (matrix * n + i) * n;
        const std::int64_t j = divide_row(call.input(0).as<T>() + row, w, scales, n, i, a.options,
                                          close, call.output().as<T>() + row);
        if (j < n) throw_equal(a, shape, matrix, std::min(i, j), std::max(i, j));
      }
    }
  });
}

/// The quotients of the adjoint by the same gaps. Its rounding errors are not known, so that 0/0 is
/// an error.
Var adjoint_of_numerators(const Pullback& p) {
  auto a = p.attributes().as<GapAttributes>();
  a.options.noise = a.options.close = -1;
  return gap_quotients(p.adjoint(), p.input(1), p.input(2), a.options, a.where);
}

const Operation gap_quotients_operation{
    .name = "gap_quotients",
    .formula =
        "yᵢⱼ = nᵢⱼ/(wⱼ ∓ wᵢ), yᵢᵢ = 0, 0/0 = 0; n̄ᵢⱼ = ȳᵢⱼ/(wⱼ ∓ wᵢ), "
        "w̄ⱼ = Σᵢ gᵢⱼ ∓ Σᵢ gⱼᵢ with g = -y·n̄",
    .summary = "quotients by differences or sums of eigenvalues or singular values",
    .compute =
        [](const KernelCall& call) {
          visit_floating(call.output().dtype(),
                         [&]<class T>(T) { compute_gap_quotients<T>(call); });
        },
    .vjp =
        [](const Pullback& p) {
          const Var dn = adjoint_of_numerators(p);
          if (p.wants(0)) p.set(0, dn);
          if (p.wants(1)) {
            const Var g = -(p.output() * dn);
            const Var columns = sum(g, {-2}, false, p.where());
            const Var rows = sum(g, {-1}, false, p.where());
            const bool sums = p.attributes().as<GapAttributes>().options.by_sums;
            p.set(1, sums ? columns + rows : columns - rows);
          }
          p.set_none(2);
        },
};

/// Marks the nodes that a node is computed from.
std::vector<bool> sources_of(const Tape& tape, NodeId node) {
  std::vector<bool> marked(node);
  std::vector<NodeId> open{node};
  while (!open.empty()) {
    const NodeId last = open.back();
    open.pop_back();
    for (const ValueId input : tape.inputs(last)) {
      const NodeId from = tape.producer(input);
      if (!marked[from]) open.push_back(from);
      marked[from] = true;
    }
  }
  return marked;
}

/// True if dv is computed from the vectors that were made together with the values, and from
/// nothing else that may depend on their matrix. A leaf that has no value yet may depend on it:
/// bodies of loops have such leaves.
bool depends_by_vectors_only(const Var& dv, const Var& values) {
  const Tape& tape = values.tape();
  const NodeId node = values.node();
  const std::vector<bool> sources = sources_of(tape, node);
  std::vector<bool> seen(dv.node() + std::size_t{1});
  std::vector<ValueId> open{dv.id()};
  bool uses_vectors = false;
  while (!open.empty()) {
    const ValueId value = open.back();
    const NodeId from = tape.producer(value);
    open.pop_back();
    if (value == values.id() || (from < node && sources[from])) return false;
    if (tape.is_leaf(from) && !tape.has_value(value)) return false;
    uses_vectors = uses_vectors || from == node;
    if (from == node || seen[from]) continue;
    seen[from] = true;
    const auto inputs = tape.inputs(from);
    open.insert(open.end(), inputs.begin(), inputs.end());
  }
  return uses_vectors;
}

}  // namespace

std::span<const Operation* const> gap_operations() {
  static const Operation* const family[] = {&gap_quotients_operation};
  return family;
}

Var gap_quotients(const Var& n, const Var& w, const Var& scale, const GapOptions& options,
                  const Where& where) {
  const ValueType type = n.type();
  const Var inputs[] = {n, w, scale};
  return n.tape().record(gap_quotients_operation, inputs, {&type, 1}, GapAttributes{options, where},
                         where);
}

Var gap_scale(const Var& dv, int axis, const Where& where) {
  return stop_gradient(norm(dv, 2, {axis}, false, where), where);
}

// Values have the rounding errors of the dtype in which they are computed. A numerator vᵀ·v̄ − v̄ᵀ·v
// also has those of v̄, which may be narrower.
void set_tolerances(GapOptions& options, const Var& dv, const Var& values, DType wide,
                    std::int64_t size) {
  if (!depends_by_vectors_only(dv, values)) return;
  const double units = 4 + std::sqrt(static_cast<double>(size));
  options.close = units * epsilon_of(wide);
  options.noise = std::max(2 * epsilon_of(dv.dtype()), units * epsilon_of(wide));
}

}  // namespace palimpsest
