#include "checkpoint/reverse/chain_costs.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

#include "checkpoint/reverse/agreement.h"
#include "checkpoint/stores/disk_seconds.h"

namespace palimpsest {
namespace {

/// A step is measured over so much time, or so many steps.
constexpr std::chrono::duration<double> probe_time(0.02);
constexpr std::uint64_t probe_steps = 16;

/// Calls `work`, which changes the state, and puts the state back, also where `work` throws.
template <class F>
void put_back_after(StoredObject& state, const F& work) {
  std::vector<std::byte> copy;
  copy.reserve(static_cast<std::size_t>(state.bytes()));
  state.save([&](std::span<const std::byte> piece) {
    copy.insert(copy.end(), piece.begin(), piece.end());
  });
  const auto put_back = [&] {
    state.load(std::ssize(copy), [from = copy.data()](std::span<std::byte> piece) mutable {
      std::copy_n(from, piece.size(), piece.data());
      from += piece.size();
    });
  };
  try {
    work();
  } catch (...) {
    put_back();
    throw;
  }
  put_back();
}

/// Seconds of a step. `steps` counts them.
double measure_step(const ReverseOptions& options, ReverseChain& chain, std::uint64_t& steps) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  const auto is_last = [&] { return options.steps ? steps == *options.steps : chain.done(steps); };
  const auto has_time = [&] {
    return holds_for_all(options.group.get(), Clock::now() - start < probe_time);
  };
  while (steps < probe_steps && has_time() && !is_last()) chain.advance(steps++);
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return steps == 0 ? 0 : seconds / static_cast<double>(steps);
}

}  // namespace

Bytes measured_state_bytes(const ReverseOptions& options, ReverseChain& chain) {
  return std::max({chain.state().bytes(), options.largest_state, Bytes{1}});
}

ChainCosts measure_costs(const ReverseOptions& options, ReverseChain& chain) {
  ChainCosts costs{.state_bytes = measured_state_bytes(options, chain)};
  // The disk holds at most a state for each step; more than 2^40 bytes are no cache anyway.
  constexpr Bytes most = Bytes{1} << 40;
  const auto states =
      static_cast<Bytes>(std::min<std::uint64_t>(options.steps.value_or(1 << 20), 1 << 20));
  const DiskSeconds disk =
      measure_disk(options.spill, costs.state_bytes,
                   std::min(most / costs.state_bytes, states) * costs.state_bytes);
  put_back_after(chain.state(),
                 [&] { costs.step_seconds = measure_step(options, chain, costs.steps_advanced); });
  const double step = std::max(costs.step_seconds, 1e-9);
  double agreed[] = {costs.step_seconds, disk.write / step, disk.read / step};
  take_largest(options.group.get(), agreed);
  costs.step_seconds = agreed[0];
  costs.disk = {agreed[1], agreed[2]};
  return costs;
}

}  // namespace palimpsest
