#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "strategy/compile/native/group_parts.h"

namespace palimpsest {

/// The nested ranges in which some loads of a group are read together; empty if there are too many.
std::optional<std::vector<ElementRange>> walk_of(const GroupParts& parts,
                                                 const std::vector<std::uint32_t>& slots);

/// True if the ranges are so short and so many that it is faster to copy the loads to buffers
/// first. Then the operations of a stage are loops over long ranges.
bool is_better_copied(const std::vector<ElementRange>& ranges, std::int64_t element_bytes);

/// The length of the rows in which loads are read, if it is the same for all, from 8 to 64, and no
/// strip divides a row. Loops over such rows have a constant trip count. 0 otherwise.
std::int64_t whole_row(const GroupParts& parts, const std::vector<ElementRange>& ranges);

/// C code that copies a load of a group to a buffer, strip by strip. Rows of a few elements are
/// loops with constant trip counts, which the compiler unrolls. A row is copied as a whole even if
/// the strip begins or ends in it. Rows that repeat a few bytes are written by whole vectors, which
/// the next row overwrites. So the buffer has some room before and after the strip.
class CopiedLoad {
 public:
  /// `strip` is the largest number of elements of a strip, and `whole` says that there is only one.
  CopiedLoad(const GroupParts& parts, std::uint32_t slot, std::int64_t strip, bool whole);

  /// Number of elements of the buffer.
  std::int64_t room() const;
  /// Statements before the first strip: the buffer, and its content if all rows are equal.
  std::string before_strips() const;
  /// Statements of a strip. After them, the name of the buffer points to element `first`.
  std::string in_strip() const;

 private:
  void write(std::span<const ElementRange> ranges, const std::string& base, int depth,
             std::string& to) const;
  void write_row(std::span<const ElementRange> ranges, const std::string& base, int depth,
                 std::string& to) const;
  void write_leaf(const ElementRange& range, const std::string& base, std::string& to) const;
  std::int64_t repeated_elements(std::span<const ElementRange> row) const;
  std::string copy(const ElementRange& range, const std::string& base) const;
  std::string repeat(const ElementRange& row, std::int64_t count, const std::string& base) const;

  const GroupParts& parts_;
  std::uint32_t slot_;
  std::int64_t strip_;
  bool whole_;
  std::int64_t period_ = 0;  // all rows of so many elements are equal; 0: they are not
  std::vector<ElementRange> ranges_;
  std::string type_;
  std::string name_;
};

}  // namespace palimpsest
