#include "strategy/compile/native/element_walk.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace palimpsest {
namespace {

using Access = ElementRange::Access;
using Ranges = std::vector<ElementRange>;

constexpr std::size_t most_ranges = 1 << 14;  // before repetitions are found
constexpr std::size_t most_leaves = 64;       // after that

/// A range of a load, which begins at an element of the group.
struct Piece {
  std::int64_t begin;
  Access access;
};

/// The pieces of a part: one for each row of its access map. `shift` elements come before the
/// current repetition.
void append_pieces(const LoadedPart& loaded, std::int64_t shift, std::vector<Piece>& pieces) {
  if (loaded.from == nullptr) {
    pieces.push_back({shift + loaded.begin, {loaded.part, 0, 0}});
    return;
  }
  const StridedBox& box = loaded.from->box();
  const int last = box.sizes.rank() - 1;
  const std::int64_t length = box.sizes[last];
  const std::int64_t rows = length == 0 ? 0 : (loaded.end - loaded.begin) / length;
  for (std::int64_t row = 0; row < rows && pieces.size() <= most_ranges; ++row) {
    std::int64_t offset = shift + loaded.from->offset();
    std::int64_t rest = row;
    for (int axis = last - 1; axis >= 0; --axis) {
      offset += rest % box.sizes[axis] * box.from[at(axis)];
      rest /= box.sizes[axis];
    }
    pieces.push_back(
        {shift + loaded.begin + row * length, {loaded.part, offset, box.from[at(last)]}});
  }
}

/// The part of a load that is one box as a whole, from the innermost axis outwards.
struct Box {
  explicit Box(const LoadedPart& loaded) : access{loaded.part, 0, 0} {
    if (loaded.from == nullptr) {
      append(loaded.end - loaded.begin, 0);
      return;
    }
    const StridedBox& box = loaded.from->box();
    access.offset = loaded.from->offset();
    for (int axis = box.sizes.rank() - 1; axis >= 0; --axis) {
      append(box.sizes[axis], box.from[at(axis)]);
    }
  }
  void append(std::int64_t size, std::int64_t step) {
    if (size == 1) return;
    sizes.push_back(size);
    steps.push_back(step);
  }

  Access access;
  std::vector<std::int64_t> sizes = {};
  std::vector<std::int64_t> steps = {};
  std::size_t axis = 0;  // the first one that is not walked in full
};

/// The ranges of loads of one box each, one loop for each axis; nothing if there are others, or if
/// their axes do not divide each other.
std::optional<Ranges> box_walk(std::span<const std::vector<LoadedPart>> loads, std::int64_t n) {
  std::vector<Box> boxes;
  for (const std::vector<LoadedPart>& parts : loads) {
    const bool is_box = parts.size() == 1 && parts[0].begin == 0 && parts[0].end == n &&
                        parts[0].period == 0 &&
                        (parts[0].from == nullptr || parts[0].from->box().sizes.elements() == n);
    if (!is_box) return {};
    boxes.emplace_back(parts[0]);
  }
  if (boxes.empty() || n < 2) return {};
  std::vector<std::int64_t> counts;  // of the loops, from the innermost
  for (std::int64_t left = n; left > 1; left /= counts.back()) {
    std::int64_t count = left;
    for (const Box& box : boxes) count = std::min(count, box.sizes[box.axis]);
    for (Box& box : boxes) {
      std::int64_t& size = box.sizes[box.axis];
      if (size % count != 0) return {};
      std::int64_t& step = box.steps[box.axis];
      (counts.empty() ? box.access.step : box.access.moves.emplace_back()) = step;
      size /= count;
      step *= count;
      if (size == 1) ++box.axis;
    }
    counts.push_back(count);
  }
  Ranges ranges{{counts[0]}};
  for (Box& box : boxes) ranges[0].accesses.push_back(std::move(box.access));
  for (std::size_t level = 1; level < counts.size(); ++level) {
    ranges = {ElementRange{counts[level], {}, std::move(ranges)}};
  }
  return ranges;
}

/// True if `next` continues the walk of a leaf of `count` elements.
bool continues(const ElementRange& before, const ElementRange& next) {
  for (std::size_t load = 0; load < next.accesses.size(); ++load) {
    const Access& a = before.accesses[load];
    const Access& b = next.accesses[load];
    if (a.part != b.part || a.step != b.step || b.offset != a.offset + before.count * a.step) {
      return false;
    }
  }
  return true;
}

/// Ranges without repetitions: all loads' pieces cut at each other's begins.
Ranges flat_ranges(std::span<const std::vector<Piece>> loads, std::int64_t n) {
  std::vector<std::int64_t> begins;
  for (const auto& pieces : loads) {
    for (const Piece& piece : pieces) begins.push_back(piece.begin);
  }
  std::ranges::sort(begins);
  begins.erase(std::ranges::unique(begins).begin(), begins.end());
  Ranges ranges;
  std::vector<std::size_t> current(loads.size());
  for (std::size_t i = 0; i < begins.size(); ++i) {
    const std::int64_t begin = begins[i];
    const std::int64_t end = i + 1 < begins.size() ? begins[i + 1] : n;
    ElementRange range{end - begin};
    for (std::size_t load = 0; load < loads.size(); ++load) {
      const std::vector<Piece>& pieces = loads[load];
      std::size_t& at = current[load];
      while (at + 1 < pieces.size() && pieces[at + 1].begin <= begin) ++at;
      Access access = pieces[at].access;
      access.offset += (begin - pieces[at].begin) * access.step;
      range.accesses.push_back(std::move(access));
    }
    if (!ranges.empty() && continues(ranges.back(), range)) {
      ranges.back().count += range.count;
    } else {
      ranges.push_back(std::move(range));
    }
  }
  return ranges;
}

/// Whether two rows differ in offsets only. The differences are collected in order.
bool match(const Ranges& a, const Ranges& b, std::vector<std::int64_t>& moves) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].count != b[i].count || a[i].accesses.size() != b[i].accesses.size()) return false;
    for (std::size_t load = 0; load < a[i].accesses.size(); ++load) {
      const Access& x = a[i].accesses[load];
      const Access& y = b[i].accesses[load];
      if (x.part != y.part || x.step != y.step || x.moves != y.moves) return false;
      moves.push_back(y.offset - x.offset);
    }
    if (!match(a[i].body, b[i].body, moves)) return false;
  }
  return true;
}

void add_moves(Ranges& ranges, const std::vector<std::int64_t>& moves, std::size_t& next) {
  for (ElementRange& range : ranges) {
    for (Access& access : range.accesses) access.moves.push_back(moves[next++]);
    add_moves(range.body, moves, next);
  }
}

/// A row, repeated. One range without repetitions that continues from row to row becomes longer.
void append_rows(const Ranges& row, std::int64_t count, const std::vector<std::int64_t>& moves,
                 Ranges& to) {
  if (count == 1) {
    to.insert(to.end(), row.begin(), row.end());
    return;
  }
  if (row.size() == 1 && !row[0].is_repeated()) {
    bool is_long = true;
    for (std::size_t load = 0; load < moves.size(); ++load) {
      is_long = is_long && moves[load] == row[0].count * row[0].accesses[load].step;
    }
    if (is_long) {
      to.push_back(row[0]);
      to.back().count *= count;
      return;
    }
  }
  ElementRange repeated{count, {}, row};
  std::size_t next = 0;
  add_moves(repeated.body, moves, next);
  to.push_back(std::move(repeated));
}

/// The ranges in rows of `period` elements; empty if a repeated range crosses the end of a row.
std::vector<Ranges> rows_of(Ranges ranges, std::int64_t period) {
  std::vector<Ranges> rows(1);
  std::int64_t left = period;
  for (ElementRange& range : ranges) {
    while (range.count > 0) {
      if (left == 0) {
        rows.emplace_back();
        left = period;
      }
      const std::int64_t elements = range.elements();
      if (elements <= left) {
        rows.back().push_back(range);
        left -= elements;
        break;
      }
      if (range.is_repeated()) return {};
      rows.back().push_back(take_front(range, left));
      left = 0;
    }
  }
  return rows;
}

Ranges with_repetitions(Ranges ranges, std::int64_t period) {
  const std::vector<Ranges> rows = rows_of(ranges, period);
  if (rows.size() < 2) return ranges;
  Ranges found;
  for (std::size_t first = 0; first < rows.size();) {
    std::size_t end = first + 1;
    std::vector<std::int64_t> moves;
    for (; end < rows.size(); ++end) {
      std::vector<std::int64_t> these;
      if (!match(rows[end - 1], rows[end], these)) break;
      if (end > first + 1 && these != moves) break;
      moves = std::move(these);
    }
    append_rows(rows[first], static_cast<std::int64_t>(end - first), moves, found);
    first = end;
  }
  Ranges joined;
  for (ElementRange& range : found) {
    const bool can_join = !joined.empty() && !range.is_repeated() && !joined.back().is_repeated();
    if (can_join && continues(joined.back(), range)) {
      joined.back().count += range.count;
    } else {
      joined.push_back(std::move(range));
    }
  }
  return joined;
}

std::size_t leaves(const Ranges& ranges) {
  return std::accumulate(ranges.begin(), ranges.end(), std::size_t{0},
                         [](std::size_t sum, const ElementRange& range) {
                           return sum + (range.is_repeated() ? leaves(range.body) : 1);
                         });
}

}  // namespace

ElementRange take_front(ElementRange& range, std::int64_t n) {
  ElementRange front = range;
  front.count = n;
  range.count -= n;
  for (ElementRange::Access& access : range.accesses) access.offset += n * access.step;
  return front;
}

std::int64_t ElementRange::elements() const {
  if (!is_repeated()) return count;
  return std::accumulate(
      body.begin(), body.end(), std::int64_t{0},
      [&](std::int64_t sum, const ElementRange& range) { return sum + count * range.elements(); });
}

std::optional<std::vector<ElementRange>> element_walk(
    std::span<const std::vector<LoadedPart>> loads, std::int64_t n,
    std::span<const std::int64_t> periods) {
  if (std::optional<Ranges> ranges = box_walk(loads, n)) return ranges;
  std::vector<std::vector<Piece>> pieces(loads.size());
  std::size_t count = 0;
  for (std::size_t load = 0; load < loads.size(); ++load) {
    const std::int64_t period = loads[load].empty() ? 0 : loads[load][0].period;
    for (std::int64_t shift = 0; shift < n && pieces[load].size() <= most_ranges;
         shift += period > 0 ? period : n) {
      for (const LoadedPart& part : loads[load]) {
        if (part.begin < part.end) append_pieces(part, shift, pieces[load]);
      }
    }
    count += pieces[load].size();
  }
  if (count > most_ranges) return {};
  if (loads.empty()) return Ranges{{n}};
  Ranges ranges = flat_ranges(pieces, n);
  for (const std::int64_t period : periods) {
    if (period < n && ranges.size() > 1) ranges = with_repetitions(std::move(ranges), period);
  }
  if (leaves(ranges) > most_leaves) return {};
  return ranges;
}

}  // namespace palimpsest
