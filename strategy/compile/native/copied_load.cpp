#include "strategy/compile/native/copied_load.h"

#include <algorithm>
#include <numeric>

#include "strategy/compile/native/formulas.h"
#include "strategy/compile/native/source_text.h"

namespace palimpsest {
namespace {

using Ranges = std::vector<ElementRange>;

/// Rows of at most so many elements are copied as a whole. A buffer has room for one before and
/// after the strip.
constexpr std::int64_t longest_row = 64;
/// Bytes that vectors of repeated rows repeat, as in native_prelude.cpp.
constexpr std::int64_t repeated_bytes = 16;
/// The narrowest elements of such rows, and how many a vector may write beyond its row.
constexpr std::int64_t narrowest_bytes = 4;
constexpr std::int64_t most_beyond_row = 64 / narrowest_bytes - 1;
/// So few ranges may be short.
constexpr std::int64_t few_ranges = 8;
/// A shorter range takes longer to enter than to compute.
constexpr std::int64_t long_range_bytes = 256;

/// Number of times that the code of a range without repetitions runs.
std::int64_t entries(const Ranges& ranges) {
  return std::accumulate(ranges.begin(), ranges.end(), std::int64_t{0},
                         [](std::int64_t sum, const ElementRange& range) {
                           return sum +
                                  (range.is_repeated() ? range.count * entries(range.body) : 1);
                         });
}

std::int64_t elements_of(std::span<const ElementRange> ranges) {
  return std::accumulate(
      ranges.begin(), ranges.end(), std::int64_t{0},
      [](std::int64_t sum, const ElementRange& range) { return sum + range.elements(); });
}

std::string plus(const std::string& base, std::int64_t number) {
  return number == 0 ? base : base + " + " + text_of(number);
}

std::string repetition(int depth) { return "r" + text_of(depth); }

/// The length of rows that are all equal; 0 if there are none.
std::int64_t period_of(const Ranges& ranges) {
  if (ranges.size() != 1 || !ranges[0].is_repeated()) return 0;
  const auto stays = [](const auto& self, const ElementRange& range) -> bool {
    return std::ranges::all_of(range.accesses,
                               [](const auto& access) { return access.moves.back() == 0; }) &&
           std::ranges::all_of(range.body, [&](const auto& each) { return self(self, each); });
  };
  return stays(stays, ranges[0]) ? elements_of(ranges[0].body) : 0;
}

}  // namespace

std::optional<Ranges> walk_of(const GroupParts& parts, const std::vector<std::uint32_t>& slots) {
  std::vector<std::vector<LoadedPart>> loads;
  for (const std::uint32_t slot : slots) {
    loads.push_back(parts.loads[parts.values[slot].index].parts);
  }
  return element_walk(loads, parts.elements, parts.periods);
}

bool is_better_copied(const Ranges& ranges, std::int64_t element_bytes) {
  const std::int64_t count = entries(ranges);
  return count > few_ranges && elements_of(ranges) * element_bytes < count * long_range_bytes;
}

std::int64_t whole_row(const GroupParts& parts, const Ranges& ranges) {
  constexpr std::int64_t shortest = 8;
  const auto row_in = [](const auto& self, const Ranges& each) -> std::int64_t {
    if (each.size() != 1) return 0;
    return each[0].is_repeated() ? self(self, each[0].body) : each[0].count;
  };
  if (ranges.empty() || !ranges[0].is_repeated()) return 0;
  const std::int64_t row = row_in(row_in, ranges[0].body);
  const bool has_one_length = std::ranges::all_of(ranges, [&](const ElementRange& range) {
    return range.is_repeated() && row_in(row_in, range.body) == row;
  });
  const bool is_one = has_one_length && row >= shortest && row <= longest_row;
  return is_one && parts.keeps_whole(row) ? row : 0;
}

CopiedLoad::CopiedLoad(const GroupParts& parts, std::uint32_t slot, std::int64_t strip, bool whole)
    : parts_(parts),
      slot_(slot),
      strip_(strip),
      whole_(whole),
      ranges_(walk_of(parts, {slot}).value()),
      type_(c_type(parts.values[slot].dtype)),
      name_("t" + GroupParts::name(slot)) {
  const std::int64_t period = period_of(ranges_);
  if (!whole && period <= strip) period_ = period;
}

std::int64_t CopiedLoad::room() const {
  return std::min(parts_.elements, strip_ + period_) + 2 * longest_row;
}

std::string CopiedLoad::before_strips() const {
  const std::int64_t elements = room() - 2 * longest_row;
  const std::string storage = "s" + name_;
  const std::string begin =
      "  " + type_ + "* const " + name_ + " = " + storage + " + " + text_of(longest_row) + ";\n";
  std::string text = "  _Alignas(64) " + type_ + " " + storage + "[" + text_of(room()) + "];\n";
  if (period_ == 0) return text + begin;
  text += "  {\n" + begin + "  const i64 first = 0, end = " + text_of(elements) + ";\n";
  write(ranges_, "0", 0, text);
  return text + "  }\n";
}

std::string CopiedLoad::in_strip() const {
  std::string text;
  if (period_ == 0) {
    write(ranges_, "0", 0, text);
  } else {
    text = "  " + type_ + "* const " + name_ + " = s" + name_ + " + " + text_of(longest_row) +
           " + first % " + text_of(period_) + ";\n";
  }
  return text;
}

void CopiedLoad::write(std::span<const ElementRange> ranges, const std::string& base, int depth,
                       std::string& to) const {
  std::int64_t before = 0;
  for (const ElementRange& range : ranges) {
    const std::string begin = plus(base, before);
    const std::int64_t elements = range.elements();
    before += elements;
    if (elements <= longest_row) {
      if (!whole_) {
        to += "  if (" + begin + " < end && " + plus(begin, elements) + " > first) {\n";
      }
      write_row({&range, 1}, begin, depth, to);
      if (!whole_) to += "  }\n";
      continue;
    }
    if (!range.is_repeated()) {
      write_leaf(range, begin, to);
      continue;
    }
    const std::string row = repetition(depth);
    const std::int64_t length = elements / range.count;
    const std::string at = moved(begin, row, length);
    const std::int64_t repeated = repeated_elements(range.body);
    // Vectors of repeated rows overlap with the next row.
    const bool is_independent = range.body.size() == 1 && length <= longest_row && repeated == 0;
    to += is_independent ? "  INDEPENDENT for" : "  for";
    to += " (i64 " + row + " = from_row(first, " + begin + ", " + text_of(length) + "), end_" +
          row + " = to_row(end, " + begin + ", " + text_of(length) + ", " + text_of(range.count) +
          "); " + row + " < end_" + row + "; ++" + row + ") {\n";
    if (repeated > 0) {
      to += repeat(range.body[0], repeated, at);
    } else if (length <= longest_row) {
      write_row(range.body, at, depth + 1, to);
    } else {
      write(range.body, at, depth + 1, to);
    }
    to += "  }\n";
  }
}

/// The number of elements that a row repeats, if vectors of them are better than copies; otherwise
/// 0.
std::int64_t CopiedLoad::repeated_elements(std::span<const ElementRange> row) const {
  const std::int64_t bytes = size_of(parts_.values[slot_].dtype);
  const std::int64_t length = elements_of(row);
  if (row.size() != 1 || bytes < narrowest_bytes) return 0;
  // Vectors are not better than copies for rows that are as short as the narrowest vector.
  if (length + most_beyond_row > longest_row || length * bytes <= repeated_bytes) return 0;
  if (!row[0].is_repeated()) return row[0].accesses[0].step == 0 ? 1 : 0;
  const Ranges& body = row[0].body;
  if (body.size() != 1 || body[0].is_repeated()) return 0;
  const ElementRange::Access& access = body[0].accesses[0];
  const bool fills_vector = repeated_bytes % (body[0].count * bytes) == 0;
  return access.step == 1 && access.moves[0] == 0 && fills_vector ? body[0].count : 0;
}

/// Copies all elements, whether they are in the strip or not.
void CopiedLoad::write_row(std::span<const ElementRange> ranges, const std::string& base, int depth,
                           std::string& to) const {
  std::int64_t before = 0;
  for (const ElementRange& range : ranges) {
    const std::string begin = plus(base, before);
    before += range.elements();
    if (!range.is_repeated()) {
      to += copy(range, begin);
      continue;
    }
    const std::string row = repetition(depth);
    to += "  for (i64 " + row + " = 0; " + row + " < " + text_of(range.count) + "; ++" + row +
          ") {\n";
    write_row(range.body, moved(begin, row, range.elements() / range.count), depth + 1, to);
    to += "  }\n";
  }
}

/// Copies the elements of a long range that are in the strip.
void CopiedLoad::write_leaf(const ElementRange& range, const std::string& base,
                            std::string& to) const {
  const ElementRange::Access& access = range.accesses[0];
  to += "  {\n    const i64 skip = largest(first - (" + base +
        "), 0);\n    const i64 count = " + "smallest(end - (" + base + "), " +
        text_of(range.count) + ") - skip;\n    const " + type_ +
        "* const from = " + moved(access_address(parts_, slot_, access), "skip", access.step) +
        ";\n    " + type_ + "* const to = " + name_ + " + (" + base + " - first) + skip;\n" +
        "    INDEPENDENT for (i64 i = 0; i < count; ++i) to[i] = " +
        moved("from[0", "i", access.step) + "];\n  }\n";
}

/// Writes a row of vectors that repeat its first `count` elements.
std::string CopiedLoad::repeat(const ElementRange& row, std::int64_t count,
                               const std::string& base) const {
  const ElementRange& leaf = row.is_repeated() ? row.body[0] : row;
  const std::int64_t bytes = size_of(parts_.values[slot_].dtype);
  std::string elements;
  for (std::int64_t i = 0; i < repeated_bytes / bytes; ++i) {
    elements += (i > 0 ? ", from[" : "from[") + text_of(i % count) + "]";
  }
  const std::string vector = "wide_" + type_;
  return "    {\n    const " + type_ +
         "* const from = " + access_address(parts_, slot_, leaf.accesses[0]) + ";\n    " + type_ +
         "* const to = " + name_ + " + (" + base + " - first);\n    const " + vector +
         " x = REPEATED(" + elements + ");\n    for (i64 i = 0; i < " + text_of(row.elements()) +
         "; i += WIDE / " + text_of(bytes) + ") *(" + vector + "*)(to + i) = x;\n    }\n";
}

std::string CopiedLoad::copy(const ElementRange& range, const std::string& base) const {
  const ElementRange::Access& access = range.accesses[0];
  const std::string from = access_address(parts_, slot_, access);
  const std::string to = name_ + " + (" + base + " - first)";
  const std::string count = text_of(range.count);
  if (access.step == 1) {
    return "    __builtin_memcpy(" + to + ", " + from + ", " + count + " * sizeof(" + type_ +
           "));\n";
  }
  std::string text = "    {\n    const " + type_ + "* const from = " + from + ";\n    " + type_ +
                     "* const to = " + to + ";\n";
  if (access.step == 0) {
    text += "    const " + type_ + " x = *from;\n    for (i64 i = 0; i < " + count +
            "; ++i) to[i] = x;\n";
  } else {
    text += "    for (i64 i = 0; i < " + count +
            "; ++i) to[i] = " + moved("from[0", "i", access.step) + "];\n";
  }
  return text + "    }\n";
}

}  // namespace palimpsest
