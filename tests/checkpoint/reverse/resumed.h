#pragma once

#include <string>

#include "tests/checkpoint/reverse/chains.h"

namespace palimpsest::tests {

/// Options of a run of a `Row` with a journal, which gets a record after each step: for each
/// schedule, codec and kind of length.
inline ReverseOptions resumed_options(int way, std::uint64_t steps, std::size_t size,
                                      const std::string& directory) {
  ReverseOptions options{
      .resume = directory, .tag = "row 1", .record_every = std::chrono::seconds(0)};
  if (way % 2 == 0) options.steps = steps;
  if (way / 2 == 1) {
    options.spill = directory;
    options.disk_costs = DiskCosts{1, 1};
  }
  if (way / 2 == 2) options.sizes_change = true;
  if (way / 2 == 3) options.codec = ReverseCodec::zstd;
  if (way / 2 == 4) {
    options.codec = ReverseCodec::half;
    options.sampled_segments = 2;
  }
  if (way / 2 == 5) {
    options.sizes_change = true;
    options.spill = directory;
    options.disk_costs = DiskCosts{1, 1};
  }
  options.check = way / 2 < 3;
  options.memory_budget = smallest_budget(size, options) + 5000;
  return options;
}
inline constexpr int resumed_ways = 12;

}  // namespace palimpsest::tests
