#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>

#include "autodiff/operations/gather_rows.h"
#include "autodiff/operations/narrow.h"
#include "autodiff/operations/piece_fold.h"
#include "autodiff/operations/reduction.h"
#include "autodiff/parallel.h"
#include "autodiff/tape.h"

/// The loop of all reductions. Rows are folded elementwise, whole vectors at a time, so memory is
/// read in order whichever axes are reduced. Short rows are first combined into longer ones. Blocks
/// of rows are summed in the elements' precision and added to totals in f64, so the rounding error
/// does not grow with the length. The order depends on the shape only.
namespace palimpsest {

inline constexpr std::int64_t fold_columns = 512;          ///< most columns folded at once
inline constexpr std::int64_t most_short_elements = 1024;  ///< most elements of short rows at once

/// Partition of a reduction into tasks: tiles of columns and, if there are few results, segments of
/// rows. The segments' totals are then added in order.
struct FoldPlan {
  /// The totals of narrow elements take at most 64 KiB, since the elements take little.
  explicit FoldPlan(const ReductionWalk& reduction, bool is_narrow = false);
  /// The plan for elements of type `From`.
  template <class From>
  static FoldPlan of(const ReductionWalk& reduction) {
    return FoldPlan(reduction, sizeof(From) < 4);
  }
  std::int64_t tiles;
  std::int64_t width;  ///< columns of a tile; the last tile may have fewer
  std::int64_t items;  ///< groups × tiles
  std::int64_t segments;
  std::int64_t segment_rows;
  /// Totals of all segments; none if there is only one.
  std::int64_t partials() const { return segments > 1 ? items * segments * width : 0; }
};

/// Bytes of workspace for `fold`, and `Operation::workspace` of the reductions.
Bytes fold_bytes(const FoldPlan& plan);
Bytes fold_workspace(const NodeView& node, int threads);

// A rule says how elements are folded:
//   template <class V> static V combine(V, V);  template <class V> static V identity();
//   T finish(Total<T> total, T center) const;   returns the result; `center` is that of `fold`;
//                                               may take the result's index as a third parameter
// To fold a function of the elements instead of the elements, a rule also has both
//   void map(const T* x, const T* center, T* to, std::int64_t n) const;
//   void map_tile(T* x, std::int64_t n) const;  applied to many mapped rows at once
template <class Rule, class T>
concept Mapping = requires(const Rule& rule, T* x) { rule.map(x, x, x, std::int64_t{}); };

/// `combine_rows` of the mapped elements, or of the elements themselves if the rule has no map.
/// Elements of another type than T are widened first.
template <class Rule, class T, class From>
void map_rows(const Rule& rule, const From* x, std::int64_t rows, std::int64_t stride,
              std::int64_t width, const T* center, T* sums) {
  if constexpr (Mapping<Rule, T>) {
    constexpr std::int64_t tile_size = 2048;
    alignas(64) T tile[tile_size];
    const std::int64_t step = tile_size / width;
    for (std::int64_t row = 0; row < rows; row += step) {
      const std::int64_t count = std::min(step, rows - row);
      for (std::int64_t i = 0; i < count; ++i) {
        rule.map(x + (row + i) * stride, center, tile + i * width, width);
      }
      rule.map_tile(tile, count * width);
      combine_rows<Rule>(tile, count, width, width, sums);
    }
  } else if constexpr (!std::is_same_v<T, From>) {
    alignas(64) T tile[narrow_piece];
    const std::int64_t step = narrow_piece / width;
    for (std::int64_t row = 0; row < rows; row += step) {
      const std::int64_t count = std::min(step, rows - row);
      for (std::int64_t i = 0; i < count; ++i) {
        widen(x + (row + i) * stride, width, tile + i * width);
      }
      combine_rows<Rule>(tile, count, width, width, sums);
    }
  } else {
    combine_rows<Rule>(x, rows, stride, width, sums);
  }
}

/// Folds `rows` rows of `width` elements, `stride` apart, into the totals of their columns.
/// `lanes` consecutive rows are folded as one; if there are several, rows are adjacent.
template <class Rule, class T, class From>
void fold_lanes_of(const Rule& rule, const From* x, std::int64_t rows, std::int64_t stride,
                   std::int64_t width, std::int64_t lanes, const T* center, Total<T>* totals) {
  alignas(64) T sums[fold_columns];
  const auto join = [&] {
    for (std::int64_t i = 0; i < width; ++i) {
      totals[i] = Rule::template combine<Total<T>>(totals[i], static_cast<Total<T>>(sums[i]));
    }
  };
  if (lanes > 1) {
    const std::int64_t together = lanes * width;
    T lane_centers[fold_columns];
    if (center != nullptr) {
      for (std::int64_t i = 0; i < together; i += width) {
        std::copy_n(center, width, lane_centers + i);
      }
    }
    while (rows >= lanes) {
      const std::int64_t count = std::min(rows / lanes, fold_rows);
      std::fill_n(sums, together, Rule::template identity<T>());
      map_rows(rule, x, count, together, together, lane_centers, sums);
      combine_lanes<Rule>(sums, lanes, width);
      join();
      x += count * together;
      rows -= count * lanes;
    }
  }
  while (rows > 0) {
    const std::int64_t count = std::min(rows, fold_rows);
    std::fill_n(sums, width, Rule::template identity<T>());
    map_rows(rule, x, count, stride, width, center, sums);
    join();
    x += count * stride;
    rows -= count;
  }
}

/// Folds `rows` rows of `width` elements, `stride` apart, into the totals of their columns.
template <class Rule, class T, class From>
void fold_run(const Rule& rule, const From* x, std::int64_t rows, std::int64_t stride,
              std::int64_t width, const T* center, Total<T>* totals) {
  if constexpr (!Mapping<Rule, T> && std::is_same_v<T, From>) {
    if (width == 1 && stride == 1) {
      alignas(64) T sums[fold_lanes];
      PieceFold<Rule, T> fold(1, rows, sums, totals);
      fold.add(x, rows);
      fold.finish();
      return;
    }
  }
  const std::int64_t lanes = width == stride ? std::min(fold_lanes / width, rows / 2) : 1;
  fold_lanes_of<Rule, T>(rule, x, rows, stride, width, lanes, center, totals);
}

/// The groups of a reduction that `fold_short_rows` folds together; 1 if that does not pay. Then
/// groups are adjacent, and have few rows and columns.
std::int64_t groups_together(const ReductionWalk& reduction);

/// Folds `groups` adjacent groups of few short rows into `totals`, with the bits of `fold_run` for
/// each group. In the tile, rows of equal number are next to each other (see `gather_rows`), so
/// that the loops over columns are long. Inlined where the tile is made, since only then does the
/// compiler know that it does not overlap with the totals.
template <class Rule, class T, class From>
[[gnu::always_inline]] inline void fold_gathered(const Rule& rule, const ReductionWalk& reduction,
                                                 const From* tile, std::int64_t groups,
                                                 const T* center, Total<T>* totals) {
  const std::int64_t rows = reduction.rows();
  const std::int64_t columns = reduction.columns();
  const std::int64_t width = groups * columns;
  const std::int64_t lanes = std::max<std::int64_t>(std::min(fold_lanes / columns, rows / 2), 1);
  std::fill_n(totals, width, Rule::template identity<Total<T>>());
  fold_lanes_of<Rule, T>(rule, tile, rows, width, width, lanes, center, totals);
}

/// Likewise, of groups as they are in memory, by code for their number of rows if there is any.
template <class Rule, class T, class From>
void fold_short_rows(const Rule& rule, const ReductionWalk& reduction, const From* x,
                     std::int64_t groups, const T* center, Total<T>* totals) {
  const std::int64_t rows = reduction.rows();
  const std::int64_t columns = reduction.columns();
  if constexpr (std::is_floating_point_v<T> && !Mapping<Rule, T>) {
    if (columns == 1 && fold_short_rows_directly<Rule>(x, groups, rows, totals)) return;
  }
  alignas(64) From tile[most_short_elements];
  gather_rows(x, groups, rows, columns, tile);
  fold_gathered<Rule, T>(rule, reduction, tile, groups, center, totals);
}

/// Calls `f(first, count)` for adjacent groups that are folded together, from group `first` on.
template <class F>
void for_groups_together(const ReductionWalk& reduction, std::int64_t together, F f) {
  const std::int64_t groups = reduction.groups();
  const double cost = static_cast<double>(reduction.rows() * reduction.columns() * together);
  parallel_chunks(divide_up(groups, together), grain_for(cost), [&](auto begin, auto end) {
    for (std::int64_t first = begin * together; first < std::min(end * together, groups);
         first += together) {
      f(first, std::min(together, groups - first));
    }
  });
}

/// Folds x into y by `rule`. `center` is null or holds one number per result for the rule. It may
/// be y. `From` is T or a narrow type.
template <class Rule, class T, class From>
void fold(const Rule& rule, const ReductionWalk& reduction, const From* x, const T* center, T* y,
          std::span<std::byte> workspace) {
  const auto plan = FoldPlan::of<From>(reduction);
  const std::int64_t columns = reduction.columns();
  const auto first_of = [&](std::int64_t item) { return item % plan.tiles * plan.width; };
  const auto result_of = [&](std::int64_t item) {
    return item / plan.tiles * columns + first_of(item);
  };
  const auto width_of = [&](std::int64_t item) {
    return std::min(plan.width, columns - first_of(item));
  };
  const auto fold_rows_of = [&](std::int64_t item, std::int64_t begin, std::int64_t end,
                                Total<T>* totals) {
    const std::int64_t width = width_of(item);
    const From* from = x + reduction.group_offset(item / plan.tiles) + first_of(item);
    std::fill_n(totals, width, Rule::template identity<Total<T>>());
    for (std::int64_t row = begin; row < end;) {
      const std::int64_t count = std::min(end - row, reduction.run() - row % reduction.run());
      fold_run<Rule, T>(rule, from + reduction.row_offset(row), count, columns, width,
                        center == nullptr ? nullptr : center + result_of(item), totals);
      row += count;
    }
  };
  const auto finish = [&](std::int64_t first, std::int64_t count, const Total<T>* totals) {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t result = first + i;
      const T given = center == nullptr ? T{} : center[result];
      if constexpr (requires { rule.finish(totals[i], given, result); }) {
        y[result] = rule.finish(totals[i], given, result);
      } else {
        y[result] = rule.finish(totals[i], given);
      }
    }
  };

  if (const std::int64_t together = groups_together(reduction); together > 1) {
    for_groups_together(reduction, together, [&](std::int64_t first, std::int64_t count) {
      alignas(64) Total<T> totals[fold_columns];
      fold_short_rows<Rule, T>(rule, reduction, x + reduction.group_offset(first), count,
                               center == nullptr ? nullptr : center + first * columns, totals);
      finish(first * columns, count * columns, totals);
    });
    return;
  }
  if (plan.segments <= 1) {
    const double cost = static_cast<double>(reduction.rows()) * static_cast<double>(plan.width);
    parallel_chunks(plan.items, grain_for(cost), [&](std::int64_t begin, std::int64_t end) {
      alignas(64) Total<T> totals[fold_columns];
      for (std::int64_t item = begin; item < end; ++item) {
        fold_rows_of(item, 0, reduction.rows(), totals);
        finish(result_of(item), width_of(item), totals);
      }
    });
    return;
  }
  auto* partials = reinterpret_cast<Total<T>*>(workspace.data());
  const double cost = static_cast<double>(plan.segment_rows) * static_cast<double>(plan.width);
  parallel_chunks(plan.items * plan.segments, grain_for(cost), [&](auto first, auto last) {
    for (std::int64_t task = first; task < last; ++task) {
      const std::int64_t begin = task % plan.segments * plan.segment_rows;
      const std::int64_t end = std::min(begin + plan.segment_rows, reduction.rows());
      fold_rows_of(task / plan.segments, begin, end, partials + task * plan.width);
    }
  });
  parallel_chunks(plan.items, 1, [&](std::int64_t item, std::int64_t) {
    Total<T>* totals = partials + item * plan.segments * plan.width;
    combine_rows<Rule>(totals + plan.width, plan.segments - 1, plan.width, plan.width, totals);
    finish(result_of(item), width_of(item), totals);
  });
}

/// A reduction in execution: folds input 0 into output 0.
template <class T>
class Folding {
 public:
  explicit Folding(const KernelCall& call)
      : call_(call),
        attributes_(call.attributes.as<ReduceAttributes>()),
        reduction_(call.input().shape(), attributes_.mask) {}

  const ReductionWalk& reduction() const { return reduction_; }
  double number() const { return attributes_.number; }
  std::span<const T> results() const {
    const Operand& y = call_.output();
    return {y.as<T>(), static_cast<std::size_t>(y.elements())};
  }

  template <class Rule>
  void run(const Rule& rule) const {
    run(rule, nullptr);
  }
  /// Sets each output to the first element reduced into it; each must have at least one.
  void take_first() const {
    const std::int64_t columns = reduction_.columns();
    for (std::int64_t group = 0; group < reduction_.groups(); ++group) {
      std::copy_n(call_.input().as<T>() + reduction_.group_offset(group), columns,
                  call_.output().as<T>() + group * columns);
    }
  }
  /// The part of the workspace that `Operation::workspace` requested in addition to
  /// `fold_workspace`.
  std::byte* own_workspace() const {
    return call_.workspace.data() + fold_bytes(FoldPlan(reduction_));
  }
  /// Like `run`; the output holds the rule's center on entry.
  template <class Rule>
  void run_centered(const Rule& rule) const {
    run(rule, call_.output().as<T>());
  }

 private:
  template <class Rule>
  void run(const Rule& rule, const T* center) const {
    fold<Rule, T>(rule, reduction_, call_.input().as<T>(), center, call_.output().as<T>(),
                  call_.workspace);
  }

  const KernelCall& call_;
  const ReduceAttributes& attributes_;
  ReductionWalk reduction_;
};

/// Calls `f` with a `Folding` of the call's dtype.
template <class F>
void fold_numeric(const KernelCall& call, F f) {
  visit_numeric(call.input().dtype(), [&]<class T>(T) { f(Folding<T>(call)); });
}
template <class F>
void fold_floating(const KernelCall& call, F f) {
  visit_floating(call.input().dtype(), [&]<class T>(T) { f(Folding<T>(call)); });
}

/// Cost of `passes` over the elements with `flops` operations for each.
Cost fold_cost(const NodeView& node, double flops, double passes);

/// Sums; integers wrap around.
struct Summing {
  template <class V>
  static V combine(V a, V b) {
    if constexpr (std::is_integral_v<V>) {
      using U = std::make_unsigned_t<V>;
      return static_cast<V>(static_cast<U>(a) + static_cast<U>(b));
    } else {
      return a + b;
    }
  }
  template <class V>
  static V identity() {
    return V{};
  }
};

/// Sums divided by `count`.
struct Averaging : Summing {
  double count;
  static Averaging of(const Attributes& attributes) {
    return {{}, attributes.as<ReduceAttributes>().number};
  }
  template <class T>
  T finish(Total<T> total, T) const {
    return static_cast<T>(total / count);
  }
};

/// The largest or smallest element; NaN takes precedence.
template <bool largest>
struct Extreme {
  template <class V>
  static V of_two(V a, V b) {
    const V better = (largest ? b > a : b < a) ? b : a;
    return b != b ? b : better;
  }
  /// Likewise, for loops over arrays. A NaN has any sign and payload.
  template <class V>
  static V combine(V a, V b) {
    if constexpr (std::is_same_v<V, float> || std::is_same_v<V, double>) {
      // A NaN stays one whichever bits are added. GCC 12 turns nested selections into several times
      // as many instructions.
      const V better = (largest ? b > a : b < a) ? b : a;
      using Word = std::conditional_t<sizeof(V) == 4, std::uint32_t, std::uint64_t>;
      const Word nan = b != b ? std::bit_cast<Word>(b) : Word{0};
      return std::bit_cast<V>(std::bit_cast<Word>(better) | nan);
    } else {
      return of_two(a, b);
    }
  }
  template <class V>
  static V identity() {
    using Limits = std::numeric_limits<V>;
    if constexpr (Limits::has_infinity) return largest ? -Limits::infinity() : Limits::infinity();
    return largest ? Limits::lowest() : Limits::max();
  }
};

}  // namespace palimpsest
