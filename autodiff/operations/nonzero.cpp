#include <algorithm>

#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/functions/arithmetic.h"
#include "autodiff/operations/index.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/registry.h"
#include "autodiff/operations/shape.h"
#include "autodiff/recording_guards.h"

namespace palimpsest {
namespace {

struct NonzeroAttributes {
  Where where;

  bool operator==(const NonzeroAttributes& other) const { return same_line(where, other.where); }
};

/// Writes the positions of the true elements. Their number is the output's first size.
void compute_nonzero(const KernelCall& call) {
  const Operand& x = call.input();
  const bool* const truth = x.as<bool>();
  const std::int64_t n = x.elements();
  const std::int64_t count = call.output().shape()[0];
  const std::int64_t found = std::count(truth, truth + n, true);
  if (found != count) {
    throw ArgumentError("nonzero",
                        std::to_string(found) + " elements of " + to_string(x.type) +
                            " are not zero where " + std::to_string(count) +
                            " were recorded; record the program again for these values",
                        call.attributes.as<NonzeroAttributes>().where);
  }
  const Shape& shape = x.shape();
  auto* to = call.output().as<std::int64_t>();
  if (shape.rank() == 1) {
    for (std::int64_t i = 0; i < n; ++i) {
      if (truth[i]) *to++ = i;
    }
    return;
  }
  const Strides strides = strides_of(shape);
  for (std::int64_t i = 0; i < n; ++i) {
    if (!truth[i]) continue;
    for (int axis = 0; axis < shape.rank(); ++axis) {
      *to++ = i / strides[static_cast<std::size_t>(axis)] % shape[axis];
    }
  }
}

const Operation nonzero_operation{
    .name = "nonzero",
    .formula = "y = the positions where x is true",
    .summary = "positions of elements that are not zero, whose number was recorded",
    .compute = compute_nonzero,
    .cost =
        [](const NodeView& node) {
          return Cost{2 * static_cast<double>(node.input(0).shape.elements()), bytes_moved(node)};
        },
    .half = HalfSupport::native,
};

Var truth_of(const Var& x, const char* operation, const Where& where) {
  require_value(x, operation, where);
  return x.dtype() == DType::boolean ? x : not_equal(x, 0.0, where);
}

/// The positions of the true elements of a vector: (count).
Var true_places(const Var& truth, std::optional<std::int64_t> count, const Where& where) {
  return reshape(nonzero(truth, count, where), {-1}, where);
}

/// The first of runs of equal elements in a vector, or of equal rows in a matrix.
struct Runs {
  Var places;  ///< of the first ones
  Var number;  ///< of each one's run
};
Runs find_runs(const Var& lines, std::optional<std::int64_t> count, const Where& where) {
  const Blame blame(lines.tape().recording(), where);
  const std::int64_t n = lines.shape()[0];
  Var changes = not_equal(slice(lines, 0, {.start = 1}, where),
                          slice(lines, 0, {.stop = n == 0 ? 0 : n - 1}, where), where);
  if (lines.rank() > 1) changes = any(changes, {1}, false, where);
  const Var first = full(lines.tape(), {std::min<std::int64_t>(n, 1)}, 1, DType::boolean, where);
  const Var begins = concat({first, changes}, 0, where);
  return {true_places(begins, count, where), cumsum(begins, 0, false, where) - 1.0};
}

/// How many elements are in each run of n elements.
Var lengths_of(const Var& places, std::int64_t n, const Where& where) {
  const Blame blame(places.tape().recording(), where);
  const Var end = full(places.tape(), {1}, static_cast<double>(n), DType::i64, where);
  const Var all = concat({places, end}, 0, where);
  return slice(all, 0, {.start = 1}, where) - places;
}

Var as_line(const Var& x, const char* operation, const Where& where) {
  require_value(x, operation, where);
  return reshape(x, {x.shape().elements()}, where);
}

/// The slices of x along an axis as the rows of a matrix.
Var as_rows(const Var& x, int axis, const Where& where) {
  const Shape shape = x.shape();
  std::int64_t width = 1;
  for (int i = 0; i < shape.rank(); ++i) width *= i == axis ? 1 : shape[i];
  return reshape(movedim(x, axis, 0, where), {shape[axis], width}, where);
}

Unique unique_slices(const char* operation, const Var& x, bool sorts, const UniqueOptions& options,
                     const Where& where) {
  require_value(x, operation, where);
  const int axis = x.shape().wrap(*options.axis, operation, where);
  const std::int64_t n = x.shape()[axis];
  Var rows = as_rows(x, axis, where);
  Var order;
  if (sorts) {
    // The first column counts most.
    order = lexsort(flip(transpose(rows, 0, 1, where), {0}, where), where);
    rows = index_select(rows, 0, order, where);
  }
  const Runs runs = find_runs(rows, options.size, where);
  const Var places = sorts ? index_select(order, 0, runs.places, where) : runs.places;
  Unique result{index_select(x, axis, places, where), {}, {}};
  if (options.inverse) {
    result.inverse = sorts ? scatter_add(runs.number, 0, order, n, where) : runs.number;
  }
  if (options.counts) result.counts = lengths_of(runs.places, n, where);
  return result;
}

}  // namespace

std::span<const Operation* const> nonzero_operations() {
  static const Operation* const family[] = {&nonzero_operation};
  return family;
}

Var nonzero(const Var& x, std::optional<std::int64_t> count, Where where) {
  const Var truth = truth_of(x, "nonzero", where);
  if (!count) {
    // Each run checks it, so it may be read while a `Program` is recorded.
    const Var trues = sum(truth, {}, false, where);
    count = trues.tape().value(trues.id()).item<std::int64_t>();
  }
  const ValueType type{Shape({*count, truth.rank()}, where), DType::i64};
  return truth.tape().record(nonzero_operation, {&truth, 1}, {&type, 1}, NonzeroAttributes{where},
                             where);
}

Var masked_select(const Var& x, const Var& mask, std::optional<std::int64_t> count, Where where) {
  require_value(x, "masked_select", where);
  require_value(mask, "masked_select", where);
  if (mask.dtype() != DType::boolean) {
    throw DTypeError("masked_select",
                     "the mask is " + to_string(mask.type()) + "; give bool, for example x > 0",
                     where);
  }
  const Shape shape = broadcast(x.shape(), mask.shape(), "masked_select", where);
  const auto line = [&](const Var& v) {
    const Var wide = v.shape() == shape ? v : broadcast_to(v, shape, where);
    return reshape(wide, {shape.elements()}, where);
  };
  return index_select(line(x), 0, true_places(line(mask), count, where), where);
}

Unique unique(const Var& x, const UniqueOptions& options, Where where) {
  if (options.axis) return unique_slices("unique", x, true, options, where);
  const Var line = as_line(x, "unique", where);
  const std::int64_t n = line.shape()[0];
  const auto [sorted, from] = sort(line, 0, false, where);
  const Runs runs = find_runs(sorted, options.size, where);
  Unique result{index_select(sorted, 0, runs.places, where), {}, {}};
  if (options.inverse) {
    result.inverse = reshape(scatter_add(runs.number, 0, from, n, where), x.shape(), where);
  }
  if (options.counts) result.counts = lengths_of(runs.places, n, where);
  return result;
}

Unique unique_consecutive(const Var& x, const UniqueOptions& options, Where where) {
  if (options.axis) return unique_slices("unique_consecutive", x, false, options, where);
  const Var line = as_line(x, "unique_consecutive", where);
  const Runs runs = find_runs(line, options.size, where);
  Unique result{index_select(line, 0, runs.places, where), {}, {}};
  if (options.inverse) result.inverse = reshape(runs.number, x.shape(), where);
  if (options.counts) result.counts = lengths_of(runs.places, line.shape()[0], where);
  return result;
}

}  // namespace palimpsest
