#include <algorithm>
#include <cmath>
#include <vector>

#include "autodiff/gradient.h"
#include "autodiff/number_text.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/fold.h"
#include "autodiff/operations/functions/arithmetic.h"
#include "autodiff/operations/index.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/places.h"
#include "autodiff/operations/registry.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/sort_line.h"
#include "autodiff/operations/sorting.h"
#include "autodiff/recording_guards.h"

namespace palimpsest {
namespace {

struct SearchAttributes {
  bool right;

  bool operator==(const SearchAttributes&) const = default;
};

/// The number of elements of a sorted line that precede `key`. Halves the line without branches.
template <class T>
std::int64_t preceding(const T* line, std::int64_t n, SortKey<T> key, bool right) {
  const auto precedes = [&](const T& x) { return right ? sort_key(x) <= key : sort_key(x) < key; };
  const T* first = line;
  while (n > 1) {
    const std::int64_t half = n / 2;
    first = precedes(first[half - 1]) ? first + half : first;
    n -= half;
  }
  return first - line + (n == 1 && precedes(*first) ? 1 : 0);
}

void compute_searchsorted(const KernelCall& call) {
  const bool right = call.attributes.as<SearchAttributes>().right;
  const Operand& sorted = call.input(0);
  const Operand& values = call.input(1);
  const std::int64_t n = sorted.shape()[-1];
  const std::int64_t per_line = sorted.shape().rank() == 1 ? values.elements() : values.shape()[-1];
  auto* const y = call.output().as<std::int64_t>();
  const double cost = 8 * std::log2(static_cast<double>(n) + 2);
  visit(sorted.dtype(), [&]<class T>(T) {
    const T* const lines = sorted.as<T>();
    const T* const x = values.as<T>();
    parallel_chunks(values.elements(), grain_for(cost), [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        y[i] = preceding(lines + i / per_line * n, n, sort_key(x[i]), right);
      }
    });
  });
}

const Operation searchsorted_operation{
    .name = "searchsorted",
    .formula = "y = the number of elements of a sorted line below x, or not above x",
    .summary = "positions at which values can be inserted into sorted lines",
    .compute = compute_searchsorted,
    .cost =
        [](const NodeView& node) {
          const auto steps = std::log2(static_cast<double>(node.input(0).shape[-1]) + 2);
          return Cost{8 * steps * static_cast<double>(node.output().shape.elements()),
                      bytes_moved(node)};
        },
    .half = HalfSupport::native,
};

struct BincountAttributes {
  /// The least length, if the recorded length was found by evaluation.
  std::optional<std::int64_t> minlength;
  Where where;

  bool operator==(const BincountAttributes& other) const {
    return minlength == other.minlength && same_line(where, other.where);
  }
};

/// Throws if the longest result would have another length than the recorded one.
void require_length(std::int64_t largest, std::int64_t length,
                    const BincountAttributes& attributes) {
  if (!attributes.minlength || std::max(*attributes.minlength, largest + 1) == length) return;
  throw ArgumentError(
      "bincount",
      "the largest element is " + std::to_string(largest) + " where a result of length " +
          std::to_string(length) +
          " was recorded; record the program again for these values, or give a size",
      attributes.where);
}

void compute_bincount(const KernelCall& call) {
  const auto& attributes = call.attributes.as<BincountAttributes>();
  const Operand& x = call.input(0);
  const Operand& y = call.output();
  const std::int64_t length = y.elements();
  const auto count = [&](const auto* places) {
    const auto* const end = places + x.elements();
    const auto* const largest = std::max_element(places, end);
    require_length(largest == end ? -1 : static_cast<std::int64_t>(*largest), length, attributes);
  };
  if (x.dtype() == DType::i64)
    count(x.as<std::int64_t>());
  else
    count(x.as<std::int32_t>());
  with_places(x, length, "bincount", attributes.where, [&](const auto* places) {
    if (call.inputs.size() == 1) {
      auto* const counts = y.as<std::int64_t>();
      std::fill_n(counts, length, 0);
      for (std::int64_t i = 0; i < x.elements(); ++i) ++counts[places[i]];
      return;
    }
    visit_numeric(y.dtype(), [&]<class T>(T) {
      T* const sums = y.as<T>();
      const T* const weights = call.input(1).as<T>();
      std::fill_n(sums, length, T{});
      for (std::int64_t i = 0; i < x.elements(); ++i) {
        sums[places[i]] = Summing::combine(sums[places[i]], weights[i]);
      }
    });
  });
}

const Operation bincount_operation{
    .name = "bincount",
    .formula = "yₖ = Σ over xᵢ = k of wᵢ, w̄ᵢ = ȳ at xᵢ; wᵢ = 1 without weights",
    .summary = "how often each integer occurs, or the sum of its weights",
    .compute = compute_bincount,
    .vjp = [](const Pullback& p) { p.set(1, index_select(p.adjoint(), 0, p.input(0), p.where())); },
    .cost =
        [](const NodeView& node) {
          return Cost{3 * static_cast<double>(node.input(0).shape.elements()), bytes_moved(node)};
        },
};

void require_weights(const Var& weights, const Var& x, const char* operation, const Where& where) {
  require_value(weights, operation, where);
  if (weights.dtype() == DType::boolean) {
    throw DTypeError(operation,
                     "the weights are " + to_string(weights.type()) + "; cast them first", where);
  }
  if (weights.shape() == x.shape()) return;
  throw ShapeError(operation,
                   "the weights have shape " + to_string(weights.shape()) + " for shape " +
                       to_string(x.shape()) + "; give one weight per element",
                   where);
}

/// The fraction of the way from the first to the last edge, of all edges but the last.
Var edge_shares(Tape& tape, std::int64_t bins, DType dtype, const Where& where) {
  const Tensor shares(Shape{bins}, DType::f64);
  for (std::int64_t i = 0; i < bins; ++i) {
    shares.data<double>()[static_cast<std::size_t>(i)] =
        static_cast<double>(i) / static_cast<double>(bins);
  }
  return tape.constant(shares.to(dtype), {}, where);
}

/// `bins` + 1 edges. The last one is exact, so that the largest element is counted.
Var edges_of(const Var& x, std::int64_t bins, const std::optional<HistogramRange>& range,
             const char* operation, const Where& where) {
  const Blame blame(x.tape().recording(), where);
  Var low, high;
  if (range) {
    if (!(range->low < range->high) || !std::isfinite(range->high - range->low)) {
      throw ArgumentError(operation,
                          "the range is from " + number_text(range->low) + " to " +
                              number_text(range->high) + "; give finite numbers that ascend",
                          where);
    }
    low = full(x.tape(), {1}, range->low, x.dtype(), where);
    high = full(x.tape(), {1}, range->high, x.dtype(), where);
  } else {
    const Var line = reshape(stop_gradient(x, where), {x.shape().elements()}, where);
    const Var least = min(line, {}, true, where);
    const Var most = max(line, {}, true, where);
    const Var are_equal = palimpsest::equal(least, most, where);
    low = palimpsest::where(are_equal, least - 1.0, least, where);
    high = palimpsest::where(are_equal, most + 1.0, most, where);
  }
  const Var shares = edge_shares(x.tape().recording(), bins, x.dtype(), where);
  return concat({low + (high - low) * shares, high}, 0, where);
}

}  // namespace

std::span<const Operation* const> search_operations() {
  static const Operation* const family[] = {&searchsorted_operation, &bincount_operation};
  return family;
}

Var searchsorted(const Var& sorted, const Var& values, bool right, Where where) {
  const Var given[] = {sorted, values};
  Tape& tape = common_tape(given, "searchsorted", where);
  const Shape lines = sorted.shape();
  const Shape shape = values.shape();
  Shape expected = lines;
  if (lines.rank() == shape.rank() && lines.rank() > 1) expected[-1] = shape[-1];
  if (lines.rank() == 0 || (lines.rank() > 1 && expected != shape)) {
    throw ShapeError("searchsorted",
                     "sorted elements of shape " + to_string(lines) + " for values of shape " +
                         to_string(shape) +
                         "; give one axis, or the axes of the values with another last one",
                     where);
  }
  const DType promoted = promote(sorted.dtype(), values.dtype());
  const DType dtype = is_narrow_integer(promoted) ? DType::i32 : promoted;
  const Var inputs[] = {cast(sorted, dtype, where), cast(values, dtype, where)};
  const ValueType type{shape, DType::i64};
  return tape.record(searchsorted_operation, inputs, {&type, 1}, SearchAttributes{right}, where);
}

Var bucketize(const Var& values, const Var& boundaries, bool right, Where where) {
  return searchsorted(boundaries, values, right, where);
}

Var bincount(const Var& x, const BincountOptions& options, Where where) {
  require_places(x, "bincount", where);
  if (options.minlength < 0) {
    throw ArgumentError("bincount",
                        "minlength is " + std::to_string(options.minlength) + "; give at least 0",
                        where);
  }
  std::vector<Var> inputs{widened(x, where)};
  DType dtype = DType::i64;
  if (options.weights.defined()) {
    require_weights(options.weights, x, "bincount", where);
    const DType given = options.weights.dtype();
    dtype = is_narrow_integer(given) ? DType::i64 : given;
    inputs.push_back(cast(options.weights, dtype, where));
  }
  BincountAttributes attributes{std::nullopt, where};
  std::int64_t length = 0;
  if (options.size) {
    length = *options.size;
  } else {
    attributes.minlength = options.minlength;
    length = options.minlength;
    if (x.shape().elements() > 0) {
      // Each run checks it, so it may be read while a `Program` is recorded.
      const Var largest = max(x, {}, false, where);
      length = std::max(length, largest.tape().value(largest.id()).item<std::int64_t>() + 1);
    }
  }
  const ValueType type{Shape({std::max(length, options.minlength)}, where), dtype};
  return x.tape().record(bincount_operation, inputs, {&type, 1}, attributes, where);
}

namespace {

Histogram equal_bins(const Var& x, std::int64_t bins, const HistogramOptions& options,
                     const char* operation, const Where& where) {
  require_floating(x, operation, where);
  if (bins < 1) {
    throw ArgumentError(operation, std::to_string(bins) + " bins; give at least 1", where);
  }
  return histogram(x, edges_of(x, bins, options.range, operation, where), options, where);
}

}  // namespace

Histogram histogram(const Var& x, std::int64_t bins, const HistogramOptions& options, Where where) {
  return equal_bins(x, bins, options, "histogram", where);
}

Var histc(const Var& x, std::int64_t bins, double low, double high, Where where) {
  HistogramOptions options;
  if (low != high) options.range = HistogramRange{low, high};
  return equal_bins(x, bins, options, "histc", where).counts;
}

Histogram histogram(const Var& x, const Var& edges, const HistogramOptions& options, Where where) {
  require_floating(x, "histogram", where);
  require_value(edges, "histogram", where);
  if (edges.rank() != 1 || edges.shape()[0] < 2) {
    throw ShapeError(
        "histogram",
        "the edges have shape " + to_string(edges.shape()) + "; give one axis of at least 2",
        where);
  }
  const std::int64_t bins = edges.shape()[0] - 1;
  const Var line = reshape(stop_gradient(x, where), {x.shape().elements()}, where);
  Var weights;
  if (options.weights.defined()) {
    require_weights(options.weights, x, "histogram", where);
    weights = reshape(options.weights, line.shape(), where);
  }
  // Bin 0 is below the first edge, and bin `bins` + 1 from the last one on, including NaN.
  const Var last = select(edges, 0, -1, where);
  const Var found = searchsorted(edges, line, true, where);
  const Var place = palimpsest::where(palimpsest::equal(line, last, where),
                                      static_cast<double>(bins), found, where);
  const Var all = bincount(place, {.weights = weights, .size = bins + 2}, where);
  Var counts = slice(all, 0, {.start = 1, .stop = bins + 1}, where);
  if (!weights.defined()) counts = cast(counts, x.dtype(), where);
  if (options.density) {
    const Blame blame(counts.tape(), where);
    const Var widths =
        slice(edges, 0, {.start = 1}, where) - slice(edges, 0, {.stop = bins}, where);
    counts = counts / (sum(counts, {}, false, where) * widths);
  }
  return {counts, edges};
}

}  // namespace palimpsest
