#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "autodiff/bytes.h"
#include "autodiff/operation.h"

namespace palimpsest {

/// One level of the memory hierarchy.
struct Cache {
  Bytes bytes = 0;  ///< that fit; 0 where there is no such level
  double bytes_per_second = 0;

  bool operator==(const Cache&) const = default;
};

/// Floating-point operations a second of one kind of work, by the type that it is done in; 0 where
/// that is not known.
struct FlopRates {
  double f32 = 0;
  double f64 = 0;
  double bf16 = 0;
  double f16 = 0;

  bool operator==(const FlopRates&) const = default;
};

/// How fast planners take the machine to be. Plans depend on the ratios only.
///
/// The defaults are the same everywhere, so that a program has the same plans on every machine and
/// in every run; `measured_machine` is the one at hand. It knows kinds of work apart that the
/// default one takes to be equally fast.
struct Machine {
  double flops_per_second = 50e9;  ///< of matrix products in f32, and of what no other rate is for
  double bytes_per_second = 10e9;  ///< of what no cache holds
  double seconds_per_node = 1e-6;  ///< to run any node that is no view
  std::array<Cache, 3> caches{};   ///< the smallest first
  FlopRates products{};            ///< of matrices
  FlopRates convolutions{};
  FlopRates reductions{};  ///< of sums, losses, normalisation: whatever goes over rows
  FlopRates functions{};   ///< of elements, and of whatever moves them

  bool operator==(const Machine&) const = default;
};

/// The rate at which a node's operands move that are so many bytes together: that of the smallest
/// cache that holds them, or of main memory.
double bytes_per_second(double bytes, const Machine& machine);

/// The rate of `rates` for a type or, where that is not known, the machine's own; of a 16-bit type
/// that of f32, which it is widened to, comes between.
double flops_per_second(const FlopRates& rates, DType dtype, const Machine& machine);

/// What carrying out work of no particular kind takes, by the rates of the machine.
double seconds_of(const Cost& cost, const Machine& machine = {});

/// Appends all that is known of a machine, by which it is recognised.
void sign(const Machine& machine, std::vector<std::uint64_t>& signature);

/// Throws `ArgumentError` naming the number unless the rates of a machine are positive, those of
/// one kind of work alone not negative, its seconds not negative, and all of them finite.
void check(const Machine& machine);

}  // namespace palimpsest
