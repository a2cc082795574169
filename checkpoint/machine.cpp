#include "checkpoint/machine.h"

#include <bit>
#include <cmath>
#include <string>

#include "autodiff/number_text.h"

namespace palimpsest {
namespace {

[[noreturn]] void refuse(const char* what, double number) {
  throw ArgumentError("[machine] " + std::string(what) + " is " + number_text(number) +
                      "; give a finite positive number");
}

// Machines are checked in every run.
inline void check(bool holds, const char* what, double number) {
  if (!holds || !std::isfinite(number)) refuse(what, number);
}

}  // namespace

double bytes_per_second(double bytes, const Machine& machine) {
  for (const Cache& cache : machine.caches) {
    if (cache.bytes > 0 && bytes <= static_cast<double>(cache.bytes)) return cache.bytes_per_second;
  }
  return machine.bytes_per_second;
}

double flops_per_second(const FlopRates& rates, DType dtype, const Machine& machine) {
  double rate = rates.f32;
  if (dtype == DType::f64) rate = rates.f64;
  if (dtype == DType::bf16 && rates.bf16 > 0) rate = rates.bf16;
  if (dtype == DType::f16 && rates.f16 > 0) rate = rates.f16;
  return rate > 0 ? rate : machine.flops_per_second;
}

double seconds_of(const Cost& cost, const Machine& machine) {
  return cost.flops / machine.flops_per_second +
         cost.bytes / bytes_per_second(cost.bytes, machine) + machine.seconds_per_node;
}

void append_fingerprint(const Machine& machine, std::vector<std::uint64_t>& fingerprint) {
  const auto put = [&](double number) {
    fingerprint.push_back(std::bit_cast<std::uint64_t>(number));
  };
  // The structured binding names all members, so that adding one fails to compile here.
  const auto& [flops, bytes, node, caches, products, convolutions, reductions, functions] = machine;
  for (const double rate : {flops, bytes, node}) put(rate);
  for (const Cache& cache : caches) {
    fingerprint.push_back(static_cast<std::uint64_t>(cache.bytes));
    put(cache.bytes_per_second);
  }
  for (const FlopRates* const kind : {&products, &convolutions, &reductions, &functions}) {
    const auto& [f32, f64, bf16, f16] = *kind;
    for (const double rate : {f32, f64, bf16, f16}) put(rate);
  }
}

void check(const Machine& machine) {
  check(machine.flops_per_second > 0, "flops_per_second", machine.flops_per_second);
  check(machine.bytes_per_second > 0, "bytes_per_second", machine.bytes_per_second);
  check(machine.seconds_per_node >= 0, "seconds_per_node", machine.seconds_per_node);
  for (const FlopRates& rates :
       {machine.products, machine.convolutions, machine.reductions, machine.functions}) {
    for (const double rate : {rates.f32, rates.f64, rates.bf16, rates.f16}) {
      check(rate >= 0, "flops_per_second of one kind of work", rate);
    }
  }
  Bytes before = 0;
  for (const Cache& cache : machine.caches) {
    check(cache.bytes >= 0, "bytes of a cache", static_cast<double>(cache.bytes));
    const bool is_there = cache.bytes > 0;
    check(cache.bytes_per_second > 0 || (!is_there && cache.bytes_per_second == 0),
          "bytes_per_second of a cache", cache.bytes_per_second);
    if (!is_there) continue;
    if (cache.bytes < before) {
      throw ArgumentError("[machine] a cache of " + std::to_string(cache.bytes) +
                          " bytes follows one of " + std::to_string(before) +
                          "; give the smallest first");
    }
    before = cache.bytes;
  }
}

}  // namespace palimpsest
