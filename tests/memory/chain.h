#pragma once

#include <functional>
#include <memory>

#include "palimpsest.h"

namespace palimpsest {

/// A program whose values all have one size but for a parameter and a loss of one element, of
/// operations that compute nothing where they are told so: their outputs are not touched, and may
/// be larger than the machine's memory. Each calls `observe` while it runs.
class Chain {
 public:
  Chain(std::int64_t elements, bool computes, std::function<void()> observe);

  /// Records so many values that depend on each other, and returns the loss. Its gradient reads all
  /// of them.
  Var record(Tape& tape, int values) const;

 private:
  CustomOperation spread_;  // one element to a value
  CustomOperation gather_;  // a value to one element
  CustomOperation step_;
};

}  // namespace palimpsest
