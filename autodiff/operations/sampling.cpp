#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "autodiff/execute.h"
#include "autodiff/kernels/shares.h"
#include "autodiff/operations/index.h"
#include "autodiff/operations/random.h"
#include "autodiff/operations/random_attributes.h"
#include "autodiff/operations/registry.h"
#include "autodiff/parallel.h"
#include "autodiff/philox.h"

namespace palimpsest {
namespace {

struct MultinomialAttributes {
  StreamAttributes drawn;
  std::int64_t count;
  bool replacement;

  bool operator==(const MultinomialAttributes&) const = default;
  friend MultinomialAttributes in_round(MultinomialAttributes attributes, std::uint32_t round) {
    attributes.drawn = in_round(attributes.drawn, round);
    return attributes;
  }
};

/// The kernel for one row of n weights at a time, and its workspace.
class MultinomialRow {
 public:
  using Keyed = std::pair<double, std::int64_t>;

  MultinomialRow(std::int64_t n, const MultinomialAttributes& attributes)
      : n_(n),
        count_(attributes.count),
        replacement_(attributes.replacement),
        numbers_(round_up(replacement_ ? count_ : n_, 4)) {}

  Bytes bytes() const {
    const Bytes table = replacement_ ? n_ * Bytes{sizeof(double)} : n_ * Bytes{sizeof(Keyed)};
    return aligned(numbers_ * Bytes{sizeof(double)}) + aligned(table);
  }
  double cost() const { return 20 * static_cast<double>(n_ + count_); }

  /// Returns what is wrong with the weights, or null.
  template <class T>
  const char* draw(const RandomStream& stream, std::int64_t row, const T* weights, std::int64_t* to,
                   std::byte* space) const {
    std::int64_t positive = 0;
    double largest = 0;
    for (std::int64_t j = 0; j < n_; ++j) {
      const auto weight = static_cast<double>(weights[j]);
      if (!(weight >= 0) || std::isinf(weight)) return "has a weight that is negative or infinite";
      positive += weight > 0 ? 1 : 0;
      largest = std::max(largest, weight);
    }
    if (count_ == 0) return nullptr;
    if (positive == 0) return "has no positive weight";
    if (!replacement_ && positive < count_) return "has too few positive weights";
    auto* const u = reinterpret_cast<double*>(space);
    fill_uniform(stream, u, numbers_, row * numbers_);
    std::byte* const table = space + aligned(numbers_ * Bytes{sizeof(double)});
    // Very small and very large weights are scaled, so that sums and quotients stay in the range. A
    // power of two changes no bits of what is drawn.
    const double scale = largest < 0x1p-500 ? 0x1p500 : (largest > 0x1p500 ? 0x1p-500 : 1);
    if (replacement_) {
      draw_again(u, weights, scale, to, reinterpret_cast<double*>(table));
    } else {
      draw_once(u, weights, std::max(scale, 1.0), to, reinterpret_cast<Keyed*>(table));
    }
    return nullptr;
  }

 private:
  /// Inverts the cumulative sums.
  template <class T>
  void draw_again(const double* u, const T* weights, double scale, std::int64_t* to,
                  double* sums) const {
    double sum = 0;
    std::int64_t last = 0;
    for (std::int64_t j = 0; j < n_; ++j) {
      if (weights[j] > 0) last = j;
      sums[j] = sum += static_cast<double>(weights[j]) * scale;
    }
    for (std::int64_t i = 0; i < count_; ++i) {
      to[i] = std::min(last, std::upper_bound(sums, sums + n_, u[i] * sum) - sums);
    }
  }
  /// The first arrivals of exponential variables with the weights as rates (Efraimidis and
  /// Spirakis, 2006).
  template <class T>
  void draw_once(const double* u, const T* weights, double scale, std::int64_t* to,
                 Keyed* keys) const {
    constexpr double most = std::numeric_limits<double>::max();
    constexpr double infinity = std::numeric_limits<double>::infinity();
    for (std::int64_t j = 0; j < n_; ++j) {
      const auto weight = static_cast<double>(weights[j]);
      const double arrival = std::min(-std::log1p(-u[j]) / (weight * scale), most);
      keys[j] = {weight > 0 ? arrival : infinity, j};
    }
    std::partial_sort(keys, keys + count_, keys + n_);
    for (std::int64_t i = 0; i < count_; ++i) to[i] = keys[i].second;
  }

  std::int64_t n_, count_;
  bool replacement_;
  std::int64_t numbers_;  // random numbers for each row; the first of a row is a multiple of 4
};

std::int64_t rows_of(const Shape& weights) {
  const std::int64_t n = weights.size(-1);
  return n == 0 ? 0 : weights.elements() / n;
}

Shares shares_of(const MultinomialRow& row, const Shape& weights, int threads) {
  return {rows_of(weights), grain_for(row.cost()), row.bytes(), threads};
}

void compute_multinomial(const KernelCall& call) {
  const auto& attributes = call.attributes.as<MultinomialAttributes>();
  const RandomStream stream = in_round(attributes.drawn.stream, call.round);
  const Shape& shape = call.input().shape();
  const std::int64_t n = shape.size(-1);
  const MultinomialRow row(n, attributes);
  std::atomic<std::int64_t> failed = rows_of(shape);
  const auto draw = [&]<class T>(std::int64_t r, std::byte* space, T) {
    std::int64_t* to = call.output().as<std::int64_t>() + r * attributes.count;
    return row.draw(stream, r, call.input().as<T>() + r * n, to, space);
  };
  visit_floating(call.input().dtype(), [&]<class T>(T zero) {
    shares_of(row, shape, call.threads)
        .run(call.workspace, [&](std::int64_t begin, std::int64_t end, std::byte* space) {
          for (std::int64_t r = begin; r < end; ++r) {
            if (draw(r, space, zero) == nullptr) continue;
            std::int64_t first = failed;
            while (r < first && !failed.compare_exchange_weak(first, r)) {
            }
          }
        });
    if (failed == rows_of(shape)) return;
    throw ArgumentError("multinomial",
                        "row " + std::to_string(failed) + " of the weights " + to_string(shape) +
                            " " + draw(failed, call.workspace.data(), zero) +
                            "; give finite weights of 0 or more, with a positive one for each "
                            "different position to draw",
                        attributes.drawn.where);
  });
}

const Operation multinomial_operation{
    .name = "multinomial",
    .formula = "P(y = i) = xᵢ/Σ x, no derivative",
    .summary = "random positions along the last axis by weight, with or without replacement",
    .compute = compute_multinomial,
    .cost =
        [](const NodeView& node) {
          const Shape shape = node.input(0).shape;
          const MultinomialRow row(shape.size(-1), node.attributes().as<MultinomialAttributes>());
          return Cost{row.cost() * static_cast<double>(rows_of(shape)), bytes_moved(node)};
        },
    .workspace =
        [](const NodeView& node, int threads) {
          const Shape shape = node.input(0).shape;
          const MultinomialRow row(shape.size(-1), node.attributes().as<MultinomialAttributes>());
          return shares_of(row, shape, threads).bytes();
        },
    .mixed = MixedPrecision::recorded,
    .random = true,
};

/// Shuffles 0 … n − 1 (Fisher and Yates; Durstenfeld, 1964).
template <class T>
void fill_permutation(const RandomStream& stream, T* to, std::int64_t n) {
  std::iota(to, to + n, T(0));
  constexpr std::int64_t part = 256;
  double u[part];
  for (std::int64_t begin = 0; begin + 1 < n; begin += part) {
    const std::int64_t count = std::min(part, n - 1 - begin);
    fill_uniform(stream, u, count, begin);
    for (std::int64_t k = 0; k < count; ++k) {
      const std::int64_t last = n - 1 - begin - k;
      std::swap(to[last], to[static_cast<std::int64_t>(u[k] * static_cast<double>(last + 1))]);
    }
  }
}

const Operation randperm_operation{
    .name = "randperm",
    .formula = "y = a permutation of 0 … n - 1, no derivative",
    .summary = "random permutation",
    .compute =
        [](const KernelCall& call) {
          const Operand& y = call.output();
          const RandomStream stream =
              in_round(call.attributes.as<StreamAttributes>().stream, call.round);
          if (y.dtype() == DType::i64) {
            fill_permutation(stream, y.as<std::int64_t>(), y.elements());
          } else {
            fill_permutation(stream, y.as<std::int32_t>(), y.elements());
          }
        },
    .cost =
        [](const NodeView& node) {
          return Cost{20 * static_cast<double>(node.output().shape.elements()),
                      2 * bytes_moved(node)};
        },
    .mixed = MixedPrecision::recorded,
    .serial = true,
    .random = true,
};

}  // namespace

std::span<const Operation* const> sampling_operations() {
  static const Operation* const family[] = {&multinomial_operation, &randperm_operation};
  return family;
}

Var multinomial(const Var& weights, std::int64_t count, bool replacement, Where where) {
  require_floating(weights, "multinomial", where);
  Shape shape = weights.shape();
  if (shape.rank() == 0 || shape.size(-1) == 0) {
    throw ShapeError("multinomial",
                     "the weights have the shape " + to_string(shape) +
                         "; give at least one weight along the last axis",
                     where);
  }
  if (count < 0 || (!replacement && count > shape.size(-1))) {
    throw ArgumentError("multinomial",
                        "cannot draw " + std::to_string(count) + " of " +
                            std::to_string(shape.size(-1)) +
                            " positions; give a smaller count, or draw with replacement",
                        where);
  }
  shape[shape.rank() - 1] = count;
  const ValueType type{shape, DType::i64};
  Tape& tape = weights.tape();
  return tape.record(multinomial_operation, {&weights, 1}, {&type, 1},
                     MultinomialAttributes{{tape.fresh_stream(), where}, count, replacement},
                     where);
}

Var randperm(Tape& tape, std::int64_t n, DType dtype, Where where) {
  if (dtype != DType::i64 && dtype != DType::i32) {
    throw DTypeError("randperm",
                     "makes i64 or i32, not " + std::string(name_of(dtype)) + "; cast the result",
                     where);
  }
  const std::int64_t most =
      dtype == DType::i32 ? std::numeric_limits<std::int32_t>::max() : std::int64_t{1} << 53;
  if (n < 0 || n > most) {
    throw ArgumentError("randperm",
                        "n is " + std::to_string(n) + "; give 0 to " + std::to_string(most), where);
  }
  const ValueType type{Shape{n}, dtype};
  return tape.record(randperm_operation, {}, {&type, 1},
                     StreamAttributes{tape.fresh_stream(), where}, where);
}

Var permutation(const Var& x, int axis, Where where) {
  require_value(x, "permutation", where);
  const int along = x.shape().wrap(axis, "permutation", where);
  return index_select(x, along, randperm(x.tape(), x.shape()[along], DType::i64, where), where);
}

}  // namespace palimpsest
