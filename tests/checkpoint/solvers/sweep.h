#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "checkpoint/reverse/reverse.h"

namespace palimpsest::tests {

/// The adjoint of the first state by an ordinary sweep over all states, which are kept in memory.
/// Afterwards `state` is the first state again.
template <class State, class Adjoint>
Adjoint sweep(const ReverseFunctions<State, Adjoint>& functions, State& state,
              std::uint64_t steps) {
  const std::unique_ptr<StoredObject> object = stored(state);
  const auto size = static_cast<std::size_t>(object->bytes());
  std::vector<std::byte> states;
  states.reserve(size * (steps + 1));
  const auto load = [&](std::uint64_t n) {
    const std::byte* from = states.data() + n * size;
    object->load(object->bytes(), [&](std::span<std::byte> piece) {
      std::memcpy(piece.data(), from, piece.size());
      from += piece.size();
    });
  };
  for (std::uint64_t n = 0; n <= steps; ++n) {
    if (n > 0) functions.advance(state, n - 1);
    object->save([&](std::span<const std::byte> piece) {
      states.insert(states.end(), piece.begin(), piece.end());
    });
  }
  Adjoint adjoint = functions.seed(state);
  for (std::uint64_t n = steps; n-- > 0;) {
    load(n);
    if (functions.reverse) {
      functions.reverse(state, adjoint, n);
    } else {
      functions.reverse_segment(state, adjoint, n, n + 1);
    }
  }
  load(0);
  return adjoint;
}

/// The central difference of `loss`, a function of a number near 0.
template <class F>
double central_difference(const F& loss, double h) {
  const double above = loss(h);
  const double below = loss(-h);
  return (above - below) / (2 * h);
}

}  // namespace palimpsest::tests
