#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/checkpoint/reverse/chains.h"

namespace palimpsest::tests {

/// How the number of elements of a state depends on its number.
enum class Sizes : std::uint8_t { equal, growing, shrinking, any, sometimes_none };
inline constexpr const char* names_of_sizes[] = {"equal", "growing", "shrinking", "any",
                                                 "sometimes none"};

/// A chain of nonlinear steps on rows of numbers, whose lengths may differ from step to step.
class RandomChain {
 public:
  RandomChain(std::uint64_t steps, std::size_t size, Sizes sizes)
      : steps_(steps), size_(size), sizes_(sizes) {}

  std::size_t size_of_state(std::uint64_t state) const {
    const std::uint64_t some = (state * 2654435761u >> 7) % (size_ + 3);
    switch (sizes_) {
      case Sizes::equal:
        return size_;
      case Sizes::growing:
        return size_ + state / 3;
      case Sizes::shrinking:
        return size_ > state / 2 ? size_ - state / 2 : 1;
      case Sizes::any:
        return state == 0 ? size_ : 1 + some;
      case Sizes::sometimes_none:
        return state == 0 ? size_ : state % 3 == 1 ? 0 : some;
    }
    return size_;
  }
  std::size_t largest_size() const {
    std::size_t most = 0;
    for (std::uint64_t state = 0; state <= steps_; ++state) {
      most = std::max(most, size_of_state(state));
    }
    return most;
  }

  Numbers start() const {
    Numbers u(size_);
    for (std::size_t i = 0; i < size_; ++i) u[i] = std::cos(0.3 * static_cast<double>(i) + 1);
    return u;
  }
  void advance(Numbers& u, std::uint64_t step) const {
    Numbers next(size_of_state(step + 1));
    for (std::size_t i = 0; i < next.size(); ++i) {
      next[i] = std::sin(argument(u, i, step));
    }
    u = std::move(next);
  }
  void reverse(const Numbers& u, Numbers& adjoint, std::uint64_t step) {
    const Numbers next = std::exchange(adjoint, Numbers(u.size()));
    for (std::size_t i = 0; i < next.size() && !u.empty(); ++i) {
      const double slope = next[i] * std::cos(argument(u, i, step));
      adjoint[i % u.size()] += parameter_ * slope;
      adjoint[(i + 1) % u.size()] += 0.5 * slope;
      gradient += u[i % u.size()] * slope;
    }
    if (step % 3 != 0 || u.empty()) return;
    loss += 0.25 * u[0] * u[0];
    adjoint[0] += 0.5 * u[0];
  }
  Numbers seed(const Numbers& u) {
    Numbers adjoint = u;
    for (double& each : adjoint) {
      loss += each * each;
      each *= 2;
    }
    return adjoint;
  }

  /// The adjoint of the first state from all states.
  Found plain() {
    std::vector<Numbers> states{start()};
    for (std::uint64_t n = 0; n < steps_; ++n) {
      states.push_back(states.back());
      advance(states.back(), n);
    }
    Numbers adjoint = seed(states.back());
    for (std::uint64_t n = steps_; n > 0; --n) reverse(states[n - 1], adjoint, n - 1);
    return {std::move(adjoint), loss, gradient, {}};
  }

  /// `before_call` is called before each step, and after each reversal and before it has an effect
  /// on the driver.
  ReverseFunctions<Numbers> functions(bool knows_length, bool has_segments,
                                      std::function<void()> before_call) {
    ReverseFunctions<Numbers> made{
        .advance =
            [this, before_call](Numbers& u, std::uint64_t n) {
              before_call();
              ++advanced;
              advance(u, n);
            },
        .seed = [this](Numbers& u) { return seed(u); },
        .accumulated = {named("loss", loss), named("gradient", gradient)},
        .inputs = {named("parameter", parameter_)}};
    if (!knows_length) {
      made.done = [this](const Numbers&, std::uint64_t n) { return n == steps_; };
    }
    if (!has_segments) {
      made.reverse = [this, before_call](Numbers& u, Numbers& a, std::uint64_t n) {
        reverse(u, a, n);
        before_call();
      };
      return made;
    }
    made.reverse_segment = [this, before_call](Numbers& u, Numbers& a, std::uint64_t first,
                                               std::uint64_t last) {
      std::vector<Numbers> tape{u};
      for (std::uint64_t n = first; n + 1 < last; ++n) {
        tape.push_back(tape.back());
        advance(tape.back(), n);
      }
      longest_segment = std::max(longest_segment, last - first);
      for (std::uint64_t n = last; n > first; --n) reverse(tape[n - first - 1], a, n - 1);
      before_call();
    };
    return made;
  }

  double loss = 0;
  double gradient = 0;
  std::uint64_t advanced = 0;  ///< calls of `advance` by a driver
  std::uint64_t longest_segment = 0;

 private:
  double argument(const Numbers& u, std::size_t i, std::uint64_t step) const {
    const double phase = 0.01 * static_cast<double>(step % 97) + 0.1 * static_cast<double>(i % 5);
    if (u.empty()) return phase;
    return parameter_ * u[i % u.size()] + 0.5 * u[(i + 1) % u.size()] + phase;
  }

  std::uint64_t steps_;
  std::size_t size_;
  Sizes sizes_;
  double parameter_ = 0.7;
};

}  // namespace palimpsest::tests
