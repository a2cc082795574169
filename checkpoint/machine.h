#pragma once

#include <array>

#include "autodiff/bytes.h"
#include "autodiff/operation.h"

namespace palimpsest {

/// One level of the memory hierarchy.
struct Cache {
  Bytes bytes = 0;  ///< that fit; 0 where there is no such level
  double bytes_per_second = 0;

  bool operator==(const Cache&) const = default;
};

/// How fast planners take the machine to be. Plans depend on the ratios only.
///
/// The defaults are the same everywhere, so that a program has the same plans on every machine and
/// in every run; `measured_machine` is the one at hand.
struct Machine {
  double flops_per_second = 50e9;
  double bytes_per_second = 10e9;  ///< of what no cache holds
  double seconds_per_node = 1e-6;  ///< to run any node that is no view
  std::array<Cache, 3> caches{};   ///< the smallest first

  bool operator==(const Machine&) const = default;
};

/// The rate at which a node's operands move that are so many bytes together: that of the smallest
/// cache that holds them, or of main memory.
double bytes_per_second(double bytes, const Machine& machine);

/// What carrying out work takes, by the rates of the machine.
double seconds_of(const Cost& cost, const Machine& machine = {});

/// Throws `ArgumentError` naming the number unless all rates of a machine are positive and finite,
/// its seconds neither negative nor infinite.
void check(const Machine& machine);

}  // namespace palimpsest
