#pragma once

#include <exception>

#include "autodiff/tape.h"

namespace palimpsest {

/// Counts a call by the generation of an empty tape, on which random numbers depend. A call that
/// throws is not counted, so the next one draws the same numbers.
class [[nodiscard]] CountedCall {
 public:
  explicit CountedCall(Tape& count) : count_(count), before_(count.generation()) { count.clear(); }
  ~CountedCall() {
    if (std::uncaught_exceptions() > exceptions_) count_.set_generation(before_);
  }
  CountedCall(const CountedCall&) = delete;
  CountedCall& operator=(const CountedCall&) = delete;

 private:
  Tape& count_;
  std::uint32_t before_;
  int exceptions_ = std::uncaught_exceptions();
};

}  // namespace palimpsest
