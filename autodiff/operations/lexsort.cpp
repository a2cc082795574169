#include <algorithm>
#include <numeric>

#include "autodiff/execute.h"
#include "autodiff/kernels/shares.h"
#include "autodiff/operations/registry.h"
#include "autodiff/operations/sort_line.h"
#include "autodiff/operations/sorting.h"
#include "autodiff/tape.h"

namespace palimpsest {
namespace {

/// Lines of n positions, and for each thread the entries of a line, a scratch of as many, and an
/// order.
struct KeyedLines {
  std::int64_t keys;
  std::int64_t count;
  std::int64_t size;
  Bytes entries;
  Shares shares;

  KeyedLines(const ValueType& type, int threads)
      : keys(type.shape[0]),
        count(1),
        size(type.shape[-1]),
        entries(visit(type.dtype,
                      [&]<class T>(T) { return aligned(size * Bytes{sizeof(SortEntry<T>)}); })),
        shares(lines_in(type.shape), grain_for(24 * static_cast<double>(size * keys)),
               2 * entries + aligned(size * Bytes{sizeof(std::int64_t)}), threads) {
    count = lines_in(type.shape);
  }

 private:
  static std::int64_t lines_in(const Shape& shape) {
    std::int64_t lines = 1;
    for (int axis = 1; axis + 1 < shape.rank(); ++axis) lines *= shape[axis];
    return shape[-1] == 0 ? 0 : lines;
  }
};

/// The entries of the elements of a line at `places`.
template <class T>
void fill_entries(const std::byte* line, const std::int64_t* places, SortEntry<T>* entries,
                  std::int64_t n) {
  const T* const x = reinterpret_cast<const T*>(line);
  for (std::int64_t i = 0; i < n; ++i) {
    entries[i] = make_entry(sort_key(x[places[i]]), static_cast<std::uint64_t>(i));
  }
}

/// Sorts by one key after the other, from the least important one on. Each sort is stable.
template <class Entry>
void order_by_keys(const KernelCall& call,
                   void (*fill)(const std::byte*, const std::int64_t*, Entry*, std::int64_t)) {
  const KeyedLines lines(call.input().type, call.threads);
  const std::int64_t n = lines.size;
  const std::int64_t bytes = n * size_of(call.input().dtype());
  lines.shares.run(call.workspace, [&](std::int64_t begin, std::int64_t end, std::byte* share) {
    auto* const entries = reinterpret_cast<Entry*>(share);
    auto* const scratch = reinterpret_cast<Entry*>(share + lines.entries);
    auto* const order = reinterpret_cast<std::int64_t*>(share + 2 * lines.entries);
    for (std::int64_t line = begin; line < end; ++line) {
      auto* const places = call.output().as<std::int64_t>() + line * n;
      std::iota(places, places + n, 0);
      for (std::int64_t key = 0; key < lines.keys; ++key) {
        fill(call.input().data + (key * lines.count + line) * bytes, places, entries, n);
        sort_entries(entries, scratch, n);
        for (std::int64_t i = 0; i < n; ++i) order[i] = places[palimpsest::place_of(entries[i])];
        std::copy_n(order, n, places);
      }
    }
  });
}

const Operation lexsort_operation{
    .name = "lexsort",
    .formula = "y = the positions in the order of the last key, then of the one before it, …",
    .summary = "positions along the last axis, ordered by several keys along the first; stable",
    .compute =
        [](const KernelCall& call) {
          visit(call.input().dtype(),
                [&]<class T>(T) { order_by_keys<SortEntry<T>>(call, fill_entries<T>); });
        },
    .cost =
        [](const NodeView& node) {
          const auto elements = static_cast<double>(node.input(0).shape.elements());
          return Cost{40 * elements, bytes_moved(node) + 112 * elements};
        },
    .workspace = [](const NodeView& node,
                    int threads) { return KeyedLines(node.input(0), threads).shares.bytes(); },
    .half = HalfSupport::native,
    .mixed = MixedPrecision::follows,
};

}  // namespace

std::span<const Operation* const> lexsort_operations() {
  static const Operation* const family[] = {&lexsort_operation};
  return family;
}

Var lexsort(const Var& keys, Where where) {
  require_value(keys, "lexsort", where);
  Shape shape = keys.shape();
  if (shape.rank() < 2 || shape[-1] > longest_line) {
    throw ShapeError("lexsort",
                     "the keys have shape " + to_string(shape) +
                         "; give keys along the first of at least 2 axes, and at most 2³² - 1 "
                         "elements along the last",
                     where);
  }
  shape.erase(0);
  const ValueType type{shape, DType::i64};
  return keys.tape().record(lexsort_operation, {&keys, 1}, {&type, 1}, {}, where);
}

}  // namespace palimpsest
