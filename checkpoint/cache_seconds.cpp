#include "checkpoint/cache_seconds.h"

#include <algorithm>
#include <iterator>
#include <map>

namespace palimpsest {
namespace {

/// When each byte of an arena was last touched, on a clock that counts bytes touched.
class Touches {
 public:
  explicit Touches(Bytes size) : last_{{0, never}, {size, never}} {}

  /// Bytes touched since all of [begin, end) was touched; more than any memory has if it never was.
  Bytes since(Bytes begin, Bytes end) const {
    auto piece = std::prev(last_.upper_bound(begin));
    Bytes earliest = clock_;
    for (; piece->first < end; ++piece) earliest = std::min(earliest, piece->second);
    return clock_ - earliest;
  }
  void touch(Bytes begin, Bytes end) {
    clock_ += end - begin;
    split(begin);
    split(end);
    last_.erase(last_.upper_bound(begin), last_.find(end));
    last_.find(begin)->second = clock_;
  }

 private:
  static constexpr Bytes never = -(Bytes{1} << 60);

  void split(Bytes at) {
    const auto next = last_.lower_bound(at);
    if (next->first != at) last_.emplace_hint(next, at, std::prev(next)->second);
  }

  std::map<Bytes, Bytes> last_;  // from each address on
  Bytes clock_ = 0;
};

}  // namespace

double seconds_in_caches(const Graph& graph, const Plan& plan, const Machine& machine) {
  const std::vector<Interval>& intervals = plan.layout.intervals;
  Touches touches(std::max<Bytes>(plan.layout.size, 1));
  std::vector<std::uint32_t> place(graph.value_count(), none);  // by storage: its interval
  std::size_t next = 0;
  double seconds = plan.simulation.cost;
  std::vector<const Interval*> operands;
  const auto add = [&](std::uint32_t interval) {
    if (interval == none) return;
    const Interval* const operand = &intervals[interval];
    if (std::ranges::find(operands, operand) == operands.end()) operands.push_back(operand);
  };
  for (std::uint32_t k = 0; k < plan.schedule.steps.size(); ++k) {
    std::uint32_t workspace = none;
    for (; next < intervals.size() && intervals[next].first <= k; ++next) {
      const auto interval = static_cast<std::uint32_t>(next);
      if (intervals[next].storage == Interval::workspace) {
        workspace = interval;
      } else {
        place[intervals[next].storage] = interval;
      }
    }
    const Step& step = plan.schedule.steps[k];
    if (step.kind != Step::Kind::compute) continue;
    operands.clear();
    for (const ValueId input : graph.inputs(step.id)) add(place[graph.storage(input)]);
    for (std::uint32_t i = 0; i < graph.output_count(step.id); ++i) {
      add(place[graph.storage(graph.first_output(step.id) + i)]);
    }
    double together = 0;
    for (const Interval* operand : operands) together += static_cast<double>(operand->bytes);
    const double assumed = bytes_per_second(together, machine);
    for (const Interval* operand : operands) {
      const auto bytes = static_cast<double>(operand->bytes);
      const Bytes distance = touches.since(operand->offset, operand->offset + operand->bytes);
      const double rate =
          bytes_per_second(std::max(static_cast<double>(distance), together), machine);
      seconds += bytes / rate - bytes / assumed;
    }
    if (workspace != none) add(workspace);
    for (const Interval* operand : operands) {
      touches.touch(operand->offset, operand->offset + operand->bytes);
    }
  }
  return seconds;
}

}  // namespace palimpsest
