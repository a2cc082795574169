#include <algorithm>
#include <cmath>
#include <utility>

#include "autodiff/gradient.h"
#include "autodiff/kernels/shares.h"
#include "autodiff/operations/index.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/registry.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/sort_line.h"
#include "autodiff/operations/sorting.h"

namespace palimpsest {
namespace {

/// Attributes of `sort`, `topk` and `kthvalue`. They work on the last axis.
struct OrderAttributes {
  std::int64_t k;   ///< elements that are found; the axis's size for `sort`
  bool descending;  ///< otherwise ascending
  bool nan_first;   ///< a NaN is found before all numbers

  bool operator==(const OrderAttributes&) const = default;
};

struct OrderedLines {
  std::int64_t count;    ///< of lines
  std::int64_t size;     ///< elements of each
  std::int64_t entries;  ///< that are held at once
  Shares shares;
};

/// Entries that `find_first` holds: enough that few elements need a new selection.
std::int64_t held_entries(std::int64_t k, std::int64_t n) {
  return std::min(n, std::max(2 * k, k + 256));
}

/// So few found entries are sorted by comparisons.
constexpr std::int64_t few_entries = 64;

/// True if sorting the whole line is faster than selecting.
bool sorts_whole(const OrderAttributes& order, std::int64_t n) { return 4 * order.k > n; }

/// `held` entries and a scratch for sorting `sorted` of them.
OrderedLines lines_of(const ValueType& x, std::int64_t held, std::int64_t sorted, int threads) {
  const std::int64_t n = x.shape[-1];
  const std::int64_t lines = n == 0 ? 0 : x.shape.elements() / n;
  const std::int64_t bytes =
      visit(x.dtype, []<class T>(T) { return std::int64_t{sizeof(SortEntry<T>)}; });
  const Bytes share = round_up((held + sorted) * bytes, 64);
  return {lines, n, held, Shares(lines, grain_for(24 * static_cast<double>(n)), share, threads)};
}

OrderedLines lines_of(const OrderAttributes& order, const ValueType& x, bool sorts, int threads) {
  const std::int64_t n = x.shape[-1];
  const bool whole = sorts && sorts_whole(order, n);
  const std::int64_t held = whole ? n : held_entries(order.k, n);
  return lines_of(x, held, sorts ? (whole ? n : order.k) : 0, threads);
}

/// The keys of elements, from small to large in the wanted order.
template <class T>
struct LineKeys {
  const T* x;
  SortKey<T> flip;

  LineKeys(const T* line, bool descending)
      : x(line), flip(descending ? std::numeric_limits<SortKey<T>>::max() : 0) {}
  SortKey<T> operator()(std::int64_t i) const { return sort_key(x[i]) ^ flip; }
};

/// Moves the first k entries of the line's order to the front; entry k − 1 is the last of them.
template <class T>
void find_first(const LineKeys<T>& keys, std::int64_t n, std::int64_t k, SortEntry<T>* entries,
                std::int64_t held) {
  std::int64_t count = std::min(n, held);
  const auto select = [&] { std::nth_element(entries, entries + (k - 1), entries + count); };
  for (std::int64_t i = 0; i < count; ++i)
    entries[i] = make_entry(keys(i), static_cast<std::uint64_t>(i));
  select();
  SortKey<T> limit = key_of(entries[k - 1]);
  count = k;
  for (std::int64_t i = std::min(n, held); i < n; ++i) {
    const SortKey<T> key = keys(i);
    if (key >= limit) continue;  // equal ones come later
    entries[count++] = make_entry(key, static_cast<std::uint64_t>(i));
    if (count < held) continue;
    select();
    limit = key_of(entries[k - 1]);
    count = k;
  }
  select();
}

/// Finds the first k elements of each line, in order.
template <class T>
void order_lines(const KernelCall& call, const OrderAttributes& order) {
  const OrderedLines lines = lines_of(order, call.input().type, true, call.threads);
  if (order.k == 0) return;
  const bool whole = sorts_whole(order, lines.size);
  lines.shares.run(call.workspace, [&](std::int64_t begin, std::int64_t end, std::byte* share) {
    auto* const entries = reinterpret_cast<SortEntry<T>*>(share);
    for (std::int64_t line = begin; line < end; ++line) {
      const LineKeys<T> keys(call.input().as<T>() + line * lines.size, order.descending);
      const auto entry = [&](std::int64_t i) {
        return make_entry(keys(i), static_cast<std::uint64_t>(i));
      };
      std::int64_t count = 0;
      if (whole) {
        for (; count < lines.size; ++count) entries[count] = entry(count);
        sort_entries(entries, entries + lines.entries, count);
      } else {
        find_first(keys, lines.size, order.k, entries, lines.entries);
        if (order.k <= few_entries) {
          std::sort(entries, entries + order.k);
        } else {
          // The kernel wants them in the order of their positions.
          const SortEntry<T> last = entries[order.k - 1];
          for (std::int64_t i = 0; i < lines.size; ++i) {
            const SortEntry<T> each = entry(i);
            if (!(last < each)) entries[count++] = each;
          }
          sort_entries(entries, entries + lines.entries, count);
        }
      }
      T* const values = call.output(0).as<T>() + line * order.k;
      auto* const places = call.output(1).as<std::int64_t>() + line * order.k;
      for (std::int64_t i = 0; i < order.k; ++i) {
        places[i] = palimpsest::place_of(entries[i]);
        values[i] = keys.x[places[i]];
      }
    }
  });
}

template <class T>
void find_kth(const KernelCall& call, const OrderAttributes& order) {
  const OrderedLines lines = lines_of(order, call.input().type, false, call.threads);
  lines.shares.run(call.workspace, [&](std::int64_t begin, std::int64_t end, std::byte* share) {
    auto* const entries = reinterpret_cast<SortEntry<T>*>(share);
    for (std::int64_t line = begin; line < end; ++line) {
      const LineKeys<T> keys(call.input().as<T>() + line * lines.size, false);
      std::int64_t place = lines.size;
      if constexpr (!std::is_integral_v<T>) {
        for (place = 0; order.nan_first && place < lines.size; ++place) {
          if (keys(place) == nan_key<SortKey<T>>) break;
        }
        if (!order.nan_first) place = lines.size;
      }
      if (place == lines.size) {
        find_first(keys, lines.size, order.k, entries, lines.entries);
        place = palimpsest::place_of(entries[order.k - 1]);
      }
      call.output(0).as<T>()[line] = keys.x[place];
      call.output(1).as<std::int64_t>()[line] = place;
    }
  });
}

/// A radix sort reads and writes 12 bytes for each element in four passes, or eight.
Cost sort_cost(const NodeView& node) {
  const auto elements = static_cast<double>(node.input(0).shape.elements());
  return {32 * elements, bytes_moved(node) + 96 * elements};
}
/// Each element is compared once; a selection takes about ten operations per entry held.
Cost select_cost(const NodeView& node) {
  const ValueType x = node.input(0);
  const auto& order = node.attributes().as<OrderAttributes>();
  const std::int64_t n = x.shape[-1];
  if (n == 0) return {0, bytes_moved(node)};
  const double found = 10 * static_cast<double>(held_entries(order.k, n)) +
                       12 * static_cast<double>(node.output(0).shape.elements() > 0 ? order.k : 0);
  const double lines = static_cast<double>(x.shape.elements()) / static_cast<double>(n);
  return {lines * (2 * static_cast<double>(n) + found), bytes_moved(node)};
}

Bytes order_workspace(const NodeView& node, int threads) {
  return lines_of(node.attributes().as<OrderAttributes>(), node.input(0), true, threads)
      .shares.bytes();
}

/// Every element found gets its adjoint; the others get 0.
void pull_back_order(const Pullback& p) {
  const Shape shape = p.input().shape();
  const bool has_axis = p.output(0).shape().rank() == shape.rank();
  const auto with_axis = [&](const Var& v) {
    return has_axis ? v : unsqueeze(v, v.rank(), p.where());
  };
  p.set(0, scatter_add(with_axis(p.adjoint()), -1, with_axis(p.output(1)), shape[-1], p.where()));
}

void compute_order(const KernelCall& call) {
  visit(call.input().dtype(),
        [&]<class T>(T) { order_lines<T>(call, call.attributes.as<OrderAttributes>()); });
}

const Operation sort_operation{
    .name = "sort",
    .formula = "y = x at the positions p in order, x̄ = ȳ at the inverse of p",
    .summary = "elements along the last axis in order, and their positions; stable",
    .compute = compute_order,
    .vjp = pull_back_order,
    .cost = sort_cost,
    .workspace = order_workspace,
    .half = HalfSupport::native,
    .mixed = MixedPrecision::follows,
};

const Operation topk_operation{
    .name = "topk",
    .formula = "y = the first k of x in order, x̄ = ȳ at their positions, 0 elsewhere",
    .summary = "largest or smallest elements along the last axis, and their positions",
    .compute = compute_order,
    .vjp = pull_back_order,
    .cost = select_cost,
    .workspace = order_workspace,
    .half = HalfSupport::native,
    .mixed = MixedPrecision::follows,
};

const Operation kthvalue_operation{
    .name = "kthvalue",
    .formula = "y = the k-th smallest of x, x̄ = ȳ at its position, 0 elsewhere",
    .summary = "k-th smallest element along the last axis, and its position; medians",
    .compute =
        [](const KernelCall& call) {
          visit(call.input().dtype(),
                [&]<class T>(T) { find_kth<T>(call, call.attributes.as<OrderAttributes>()); });
        },
    .vjp = pull_back_order,
    .cost = select_cost,
    .workspace =
        [](const NodeView& node, int threads) {
          const auto& order = node.attributes().as<OrderAttributes>();
          return lines_of(order, node.input(0), false, threads).shares.bytes();
        },
    .half = HalfSupport::native,
    .mixed = MixedPrecision::follows,
};

/// `axis` in [0, rank), after checking x.
int require_line(const Var& x, int axis, const char* operation, const Where& where) {
  require_value(x, operation, where);
  const Shape shape = x.shape();
  const int wrapped = shape.wrap(axis, operation, where);
  if (shape[wrapped] <= longest_line) return wrapped;
  throw ShapeError(operation,
                   "shape " + to_string(shape) + " has more than 2³² - 1 elements along axis " +
                       std::to_string(axis) + "; split it",
                   where);
}

Var swap_with_last(const Var& x, int axis, const Where& where) {
  return axis == x.rank() - 1 ? x : transpose(x, axis, -1, where);
}

/// Records `operation` along an axis whose size becomes k.
ValuesAndIndices record_order(const Operation& operation, const Var& x, int axis,
                              const OrderAttributes& order, const Where& where) {
  const Var lines = swap_with_last(x, axis, where);
  Shape shape = lines.shape();
  shape[-1] = order.k;
  const ValueType types[] = {{shape, x.dtype()}, {shape, DType::i64}};
  const Var y = x.tape().record(operation, {&lines, 1}, types, order, where);
  return {swap_with_last(y, axis, where), swap_with_last(y.output(1), axis, where)};
}

ValuesAndIndices record_kth(const char* name, const Var& x, const OrderAttributes& order, int axis,
                            bool keep_axis, const Where& where) {
  const std::int64_t n = x.shape()[axis];
  if (order.k < 1 || order.k > n) {
    throw ArgumentError(name,
                        "k is " + std::to_string(order.k) + " for an axis of " + std::to_string(n) +
                            "; give 1 to the number of elements",
                        where);
  }
  const Var lines = swap_with_last(x, axis, where);
  Shape shape = lines.shape();
  shape.erase(shape.rank() - 1);
  const ValueType types[] = {{shape, x.dtype()}, {shape, DType::i64}};
  const Var y = x.tape().record(kthvalue_operation, {&lines, 1}, types, order, where);
  const auto arranged = [&](const Var& v) {
    // The axis was swapped with the last one, which is now at its position.
    const Var kept = swap_with_last(unsqueeze(v, v.rank(), where), axis, where);
    return keep_axis ? kept : squeeze(kept, {axis}, where);
  };
  return {arranged(y), arranged(y.output(1))};
}

ValuesAndIndices record_median(const char* name, const Var& x, int axis, bool keep_axis,
                               const Where& where) {
  const int wrapped = require_line(x, axis, name, where);
  const std::int64_t n = x.shape()[wrapped];
  if (n == 0) {
    throw ShapeError(name,
                     "shape " + to_string(x.shape()) +
                         " has no elements to choose from; check for empty tensors first",
                     where);
  }
  return record_kth(name, x, {(n + 1) / 2, false, true}, wrapped, keep_axis, where);
}

Var flattened(const Var& x, const char* operation, const Where& where) {
  require_value(x, operation, where);
  return reshape(x, {x.shape().elements()}, where);
}

}  // namespace

std::span<const Operation* const> sort_operations() {
  static const Operation* const family[] = {&sort_operation, &topk_operation, &kthvalue_operation};
  return family;
}

ValuesAndIndices sort(const Var& x, int axis, bool descending, Where where) {
  const int wrapped = require_line(x, axis, "sort", where);
  return record_order(sort_operation, x, wrapped, {x.shape()[wrapped], descending, false}, where);
}

Var argsort(const Var& x, int axis, bool descending, Where where) {
  return sort(x, require_line(x, axis, "argsort", where), descending, where).indices;
}

ValuesAndIndices topk(const Var& x, std::int64_t k, const TopkOptions& options, Where where) {
  const int wrapped = require_line(x, options.axis, "topk", where);
  const std::int64_t n = x.shape()[wrapped];
  if (k < 0 || k > n) {
    throw ArgumentError("topk",
                        "k is " + std::to_string(k) + " for an axis of " + std::to_string(n) +
                            "; give 0 to the number of elements",
                        where);
  }
  return record_order(topk_operation, x, wrapped, {k, options.largest, false}, where);
}

ValuesAndIndices kthvalue(const Var& x, std::int64_t k, int axis, bool keep_axis, Where where) {
  const int wrapped = require_line(x, axis, "kthvalue", where);
  return record_kth("kthvalue", x, {k, false, false}, wrapped, keep_axis, where);
}

ValuesAndIndices median(const Var& x, int axis, bool keep_axis, Where where) {
  return record_median("median", x, axis, keep_axis, where);
}

Var median(const Var& x, Where where) {
  return record_median("median", flattened(x, "median", where), 0, false, where).values;
}

}  // namespace palimpsest
