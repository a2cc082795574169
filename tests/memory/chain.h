#pragma once

#include <functional>
#include <memory>

#include "palimpsest.h"

namespace palimpsest {

/// A program whose values all have one size, except for a parameter and a loss of one element. On
/// request its operations compute nothing: they do not touch their outputs, which may then exceed
/// the machine's memory. Each operation calls `observe` while it runs.
class Chain {
 public:
  Chain(std::int64_t elements, bool computes, std::function<void()> observe);

  /// Records `values` values that depend on each other, and returns the loss. Its gradient reads
  /// all of them.
  Var record(Tape& tape, int values) const;

 private:
  CustomOperation spread_;  // from one element to a value
  CustomOperation gather_;  // from a value to one element
  CustomOperation step_;
};

}  // namespace palimpsest
