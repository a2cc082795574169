#pragma once

#include <unordered_map>
#include <vector>

#include "autodiff/var.h"

namespace palimpsest {

/// The adjoints of the values in [begin, end), summed up while nodes are walked downwards. Those of
/// slices, which are zero elsewhere, are put together before they are added: a value that is read
/// slice by slice takes as much work as it has elements.
class Adjoints {
 public:
  Adjoints(Tape& tape, ValueId begin, ValueId end);

  bool reached(ValueId value) const { return inside(value) && reached_[value - begin_]; }
  void mark_reached(ValueId value) { reached_[value - begin_] = true; }

  /// The sum of what was added, recorded; an undefined Var when nothing was.
  Var sum(ValueId value);
  void add(ValueId value, const Var& contribution);

 private:
  bool inside(ValueId value) const {
    return value >= begin_ && value - begin_ < static_cast<ValueId>(reached_.size());
  }
  void add_whole(ValueId value, const Var& contribution);

  Tape& tape_;
  ValueId begin_;
  std::vector<bool> reached_;
  std::vector<ValueId> sums_;
  std::unordered_map<ValueId, std::vector<Var>> slices_;  // by value, not added yet
};

}  // namespace palimpsest
