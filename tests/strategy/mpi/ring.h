#pragma once

#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "checkpoint/reverse/reverse.h"
#include "strategy/mpi/reverse_ranks.h"

namespace palimpsest::tests {

/// Nonlinear steps on a ring of numbers that is divided over ranks. The loss is the sum of the
/// squares of the first number of all states. Each number has a parameter. All sums have the same
/// order for any number of ranks.
class Ring {
 public:
  using Numbers = std::vector<double>;

  /// The part of `rank`. Parts differ in size. With one rank it is the whole ring.
  Ring(std::size_t size, int rank, int ranks)
      : first_(bound(size, rank, ranks)), rank_(rank), ranks_(ranks) {
    const std::size_t count = bound(size, rank + 1, ranks) - first_;
    for (std::size_t i = 0; i < count; ++i) {
      parameters.push_back(0.6 + 0.2 * std::cos(static_cast<double>(first_ + i)));
    }
    gradient.resize(count);
  }

  Numbers parameters;
  Numbers gradient;
  double loss = 0;

  std::size_t first() const { return first_; }
  std::size_t size() const { return parameters.size(); }
  Numbers start() const {
    Numbers u(size());
    for (std::size_t i = 0; i < u.size(); ++i)
      u[i] = std::sin(0.3 * static_cast<double>(first_ + i));
    return u;
  }

  void advance(Numbers& u, std::uint64_t step) const {
    const Numbers old = with_halo(u);
    for (std::size_t i = 0; i < u.size(); ++i) u[i] = std::sin(angle(old, i, step));
  }

  void reverse(const Numbers& u, Numbers& adjoint, std::uint64_t step) {
    const Numbers old = with_halo(u);
    for (std::size_t i = 0; i < u.size(); ++i) adjoint[i] *= std::cos(angle(old, i, step));
    const Numbers slope = with_halo(adjoint);
    for (std::size_t i = 0; i < u.size(); ++i) {
      gradient[i] += u[i] * slope[i + 1];
      adjoint[i] = parameters[i] * slope[i + 1] + 0.3 * slope[i + 2] + 0.2 * slope[i];
    }
    look(u, adjoint);
  }

  Numbers seed(const Numbers& u) {
    Numbers adjoint(u.size());
    look(u, adjoint);
    return adjoint;
  }

  ReverseFunctions<Numbers> functions() {
    return {.advance = [this](Numbers& u, std::uint64_t n) { advance(u, n); },
            .reverse = [this](Numbers& u, Numbers& a, std::uint64_t n) { reverse(u, a, n); },
            .seed = [this](Numbers& u) { return seed(u); },
            .accumulated = {named("loss", loss), named("gradient", gradient)},
            .inputs = {named("parameters", parameters)}};
  }

  /// Adjoint, gradient and loss from all states.
  std::string plain(std::uint64_t steps) {
    std::vector<Numbers> states{start()};
    for (std::uint64_t n = 0; n < steps; ++n) {
      states.push_back(states.back());
      advance(states.back(), n);
    }
    Numbers adjoint = seed(states.back());
    for (std::uint64_t n = steps; n > 0; --n) reverse(states[n - 1], adjoint, n - 1);
    return bits_of(adjoint);
  }

  /// The bits of a result: for each number its adjoint and its gradient.
  std::string bits_of(const Numbers& adjoint) const {
    std::string bits;
    for (std::size_t i = 0; i < adjoint.size(); ++i) {
      for (const double number : {adjoint[i], gradient[i]}) {
        bits.append(reinterpret_cast<const char*>(&number), sizeof number);
      }
    }
    return bits;
  }

 private:
  static std::size_t bound(std::size_t size, int rank, int ranks) {
    const auto part = static_cast<double>(rank) / ranks;
    return static_cast<std::size_t>(static_cast<double>(size) * part * (0.6 + 0.4 * part));
  }

  /// The numbers between the last one of the rank before and the first one of the rank after.
  Numbers with_halo(const Numbers& u) const {
    Numbers all(u.size() + 2);
    std::copy(u.begin(), u.end(), all.begin() + 1);
    if (ranks_ == 1) {
      all.front() = u.back();
      all.back() = u.front();
      return all;
    }
    const int before = (rank_ + ranks_ - 1) % ranks_;
    const int after = (rank_ + 1) % ranks_;
    MPI_Sendrecv(&u.back(), 1, MPI_DOUBLE, after, 0, &all.front(), 1, MPI_DOUBLE, before, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(&u.front(), 1, MPI_DOUBLE, before, 1, &all.back(), 1, MPI_DOUBLE, after, 1,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return all;
  }

  double angle(const Numbers& old, std::size_t i, std::uint64_t step) const {
    return parameters[i] * old[i + 1] + 0.3 * old[i] + 0.2 * old[i + 2] +
           0.01 * static_cast<double>(step % 97);
  }

  void look(const Numbers& u, Numbers& adjoint) {
    if (first_ > 0) return;
    loss += u[0] * u[0];
    adjoint[0] += 2 * u[0];
  }

  std::size_t first_;
  int rank_;
  int ranks_;
};

}  // namespace palimpsest::tests
