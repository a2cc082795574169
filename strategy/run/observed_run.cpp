#include "strategy/run/observed_run.h"

namespace palimpsest {

ObservedRun::ObservedRun(RunObserver& observer, const Tape& tape, const Executor& executor,
                         std::span<const ValueId> targets)
    : observer_(observer), executor_(executor) {
  const Instructions& instructions = executor.instructions();
  // A value that is dropped and computed again lies where it was computed last. It is final after
  // the step that opened the place. If its node runs again for other outputs, it writes the same
  // bits there again.
  std::vector<std::uint32_t> opener(instructions.intervals().size(), none);
  for (std::uint32_t step = 0; step < instructions.steps().size(); ++step) {
    for (const std::uint32_t interval : instructions.dependencies().opened(step)) {
      opener[interval] = step;
    }
  }
  std::map<ValueId, Instructions::Place> places;
  for (const Instructions::Held& result : instructions.results()) {
    places.emplace(result.value, result.place);
  }
  for (std::size_t target = 0; target < targets.size(); ++target) {
    const auto found = places.find(targets[target]);
    if (found == places.end()) continue;
    const Instructions::Place place = found->second;
    if (place >= opener.size() || opener[place] == none) continue;
    finals_.emplace(opener[place], Final{target, place, tape.type(targets[target])});
  }
}

void ObservedRun::operator()(std::uint32_t step) const {
  const auto [first, last] = finals_.equal_range(step);
  for (auto made = first; made != last; ++made) {
    const auto& [target, place, type] = made->second;
    observer_.made(target, {executor_.address(place), type});
  }
  observer_.stepped();
}

}  // namespace palimpsest
