#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "autodiff/bytes.h"
#include "autodiff/export.h"
#include "autodiff/operation.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// One level of the memory hierarchy.
struct Cache {
  Bytes bytes = 0;  ///< its capacity; 0 where there is no such level
  double bytes_per_second = 0;

  bool operator==(const Cache&) const = default;
};

/// Floating-point operations per second of one kind of work, by the type that it is done in; 0
/// where unknown.
struct FlopRates {
  double f32 = 0;
  double f64 = 0;
  double bf16 = 0;
  double f16 = 0;

  bool operator==(const FlopRates&) const = default;
};

/// The speed of the machine, as planners assume it. Plans depend on ratios only.
///
/// The defaults are the same everywhere, so that a program has the same plans on every machine and
/// in every run. `measured_machine` measures the current one. It distinguishes kinds of work that
/// the default takes to be equally fast.
struct Machine {
  double flops_per_second = 50e9;  ///< matrix products in f32, and work without a rate of its own
  double bytes_per_second = 10e9;  ///< of main memory
  double seconds_per_node = 1e-6;  ///< overhead of any node that is not a view
  std::array<Cache, 3> caches{};   ///< the smallest first
  FlopRates products{};            ///< matrix products
  FlopRates convolutions{};
  FlopRates reductions{};  ///< sums, losses, normalisation: anything that reduces rows
  FlopRates functions{};   ///< elementwise operations, and those that move elements

  bool operator==(const Machine&) const = default;
};

/// The rate at which a node's operands move when they take so many bytes together: that of the
/// smallest cache that holds them, or of main memory.
double bytes_per_second(double bytes, const Machine& machine);

/// The rate of `rates` for a type. Where it is unknown, a 16-bit type has the rate of f32, which it
/// is widened to. Otherwise it is the machine's general rate.
double flops_per_second(const FlopRates& rates, DType dtype, const Machine& machine);

/// Seconds of work of no particular kind, by the machine's general rates.
double seconds_of(const Cost& cost, const Machine& machine = {});

/// Appends all members of a machine to a fingerprint that identifies it.
void append_fingerprint(const Machine& machine, std::vector<std::uint64_t>& fingerprint);

/// Throws `ArgumentError` naming the number unless all numbers are finite. The machine's general
/// rates and those of caches must be positive. The rates of single kinds of work, bytes and seconds
/// must not be negative. Caches must come in order of size.
void check(const Machine& machine);

}  // namespace palimpsest
