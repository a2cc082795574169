#pragma once

#include <functional>

#include "tests/strategy/loops/loops.h"

namespace palimpsest {

inline constexpr DiskCosts cheap{3, 2};
inline constexpr DiskCosts nearly_free{0.01, 0.01};

/// Steps on a ring. A body that reads its step number is recorded, and counted, at every step.
struct Ring {
  Tape tape;
  Var u = tape.parameter(wave(100));
  Var speed = tape.parameter(number(0.2));
  std::uint64_t calls = 0;
  std::function<void(std::int64_t)> before_step = nullptr;
  Var loss;

  Ring(std::int64_t steps, const LoopOptions& options, bool again = false) {
    const Var end = scan(
        u, steps,
        [this, again](const Var& x, const StepNumber& n) {
          ++calls;
          if (again && before_step) before_step(n);
          return ring_step(again && n % 3 == 0 ? x * 0.99 : x, speed);
        },
        options);
    loss = sum(end * end);
  }
};

}  // namespace palimpsest
