#include "autodiff/operations/fold.h"

#include <algorithm>

namespace palimpsest {

FoldPlan::FoldPlan(const ReductionWalk& reduction, bool is_narrow) {
  const std::int64_t columns = reduction.columns();
  tiles = divide_up(columns, fold_columns);
  width = tiles <= 1 ? std::max<std::int64_t>(columns, 1) : round_up(divide_up(columns, tiles), 16);
  tiles = divide_up(columns, width);
  items = reduction.groups() * tiles;
  segments = 1;
  segment_rows = reduction.rows();
  // Enough tasks for any machine; each has about 16 Ki elements.
  constexpr std::int64_t few = 64;
  constexpr std::int64_t work = 16384;
  if (items == 0 || items >= few || reduction.rows() * width < 2 * work) return;
  std::int64_t wanted = std::min(divide_up(reduction.rows() * width, work), 4 * few / items);
  constexpr std::int64_t most_totals = 8192;
  if (is_narrow) wanted = std::clamp<std::int64_t>(most_totals / (items * width), 1, wanted);
  segment_rows = divide_up(reduction.rows(), wanted);
  // Whole blocks of sums: the segments of an array that begins with a cache line do so too. With
  // few segments, threads would get unequal shares.
  constexpr std::int64_t many = 16;
  if (columns == 1 && wanted >= many) segment_rows = round_up(segment_rows, fold_lanes * fold_rows);
  segments = divide_up(reduction.rows(), segment_rows);
}

Bytes fold_bytes(const FoldPlan& plan) {
  return plan.partials() * static_cast<Bytes>(sizeof(double));
}

Bytes fold_workspace(const NodeView& node, int) {
  const AxisMask& mask = node.attributes().as<ReduceAttributes>().mask;
  const ValueType x = node.input(0);
  return fold_bytes(FoldPlan(ReductionWalk(x.shape, mask), is_narrow_or_bool(x.dtype)));
}

std::int64_t groups_together(const ReductionWalk& reduction) {
  const std::int64_t rows = reduction.rows();
  const std::int64_t columns = reduction.columns();
  const bool is_adjacent = reduction.run() == rows;
  if (!is_adjacent || rows < 2 || rows >= fold_lanes || columns < 1 || columns > 8) return 1;
  // As many that sums of all lanes have a place.
  const std::int64_t results = rows <= 32 ? 32 : 16;
  static_assert(32 * 32 <= most_short_elements && (fold_lanes - 1) * 16 <= most_short_elements);
  static_assert(32 / 2 * 32 <= fold_columns && (fold_lanes - 1) / 2 * 16 <= fold_columns);
  return std::min(results / columns, reduction.groups());
}

Cost fold_cost(const NodeView& node, double flops, double passes) {
  // Locating a contiguous run takes about as long as this many operations.
  constexpr double flops_of_run = 200;
  const ReductionWalk walk(node.input(0).shape, node.attributes().as<ReduceAttributes>().mask);
  const std::int64_t together = groups_together(walk);
  const auto runs = together > 1 ? static_cast<double>(divide_up(walk.groups(), together))
                                 : static_cast<double>(walk.groups() * walk.rows() /
                                                       std::max<std::int64_t>(1, walk.run()));
  return {flops * static_cast<double>(node.input(0).shape.elements()) + flops_of_run * runs,
          passes * static_cast<double>(node.input(0).bytes()) +
              static_cast<double>(node.output().bytes())};
}

}  // namespace palimpsest
