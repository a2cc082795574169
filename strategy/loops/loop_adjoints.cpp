#include "strategy/loops/loop_adjoints.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "strategy/loops/kept_values.h"

namespace palimpsest {

AdjointsInPlace::AdjointsInPlace(const LoopGradient& gradient, int threads,
                                 const LoopDivision& division)
    : carried(gradient.carried().size()), sums(gradient.summed().size()) {
  const Loop& loop = gradient.loop();
  if (loop.is_recorded_again() || loop.resume() != nullptr) return;
  carried.flip();
  sums.flip();
  const auto outputs = std::ranges::count(gradient.requested().outputs, true);
  const auto restrict_to = [&](const BufferProgram& step) {
    const auto restrict = [&](std::vector<bool>& list, std::size_t result, std::size_t argument) {
      for (std::size_t i = 0; i < list.size(); ++i) {
        if (!step.may_write_over(result + i, argument + i)) list[i] = false;
      }
    };
    const std::size_t first_sum = step.arguments().size() - sums.size();
    restrict(carried, 0, first_sum - static_cast<std::size_t>(outputs) - carried.size());
    restrict(sums, step.results().size() - sums.size(), first_sum);
  };
  restrict_to(*gradient.backward().get(threads, division.share));
  if (division.kept > 0) {
    restrict_to(*gradient.backward(loop.kept(division.values)).get(threads));
  }
}

StateBlock made_in_turns(const LoopGradient& gradient, const AdjointsInPlace& in_place) {
  const RecordedStep& step = gradient.loop().step();
  std::vector<ValueId> values;
  for (std::size_t i = 0; i < in_place.carried.size(); ++i) {
    if (!in_place.carried[i]) values.push_back(step.state[gradient.carried()[i]]);
  }
  for (std::size_t i = 0; i < in_place.sums.size(); ++i) {
    if (!in_place.sums[i]) values.push_back(step.captured[gradient.summed()[i]]);
  }
  return StateBlock(gradient.loop().types(values));
}

LoopAdjoints::LoopAdjoints(const LoopGradient& gradient, std::uint32_t steps,
                           const LoopDivision& division, const KernelCall& call, Cut& cut)
    : gradient_(gradient), steps_(steps), left_(steps) {
  const Loop& loop = gradient.loop();
  const LoopGradient::Requested& requested = gradient.requested();
  const AdjointsInPlace in_place(gradient, call.threads, division);
  const Addresses others = cut.take(made_in_turns(gradient, in_place));
  auto other = others.begin();
  const auto place_for = [&](bool is_in_place, std::byte* place) {
    return is_in_place ? place : *other++;
  };
  blocks_[0] = cut.take(gradient.adjoints());
  for (std::size_t i = 0; i < blocks_[0].size(); ++i) {
    blocks_[1].push_back(place_for(in_place.carried[i], blocks_[0][i]));
  }
  const Operand* operand =
      call.inputs.data() + loop.operand_count() + (loop.has_condition() ? 2 : 1);
  for (std::size_t i = 0; i < gradient.carried().size(); ++i) {
    const bool is_given = requested.next[gradient.carried()[i]];
    initial_.push_back(is_given ? (operand++)->data : blocks_[0][i]);
    const auto bytes = static_cast<std::size_t>(gradient.adjoints().sizes[i]);
    if (!is_given) std::memset(blocks_[0][i], 0, bytes);
  }
  outputs_ = Parts({operand, call.inputs.data() + call.inputs.size()}, steps_);

  operand = call.outputs.data();
  for (std::size_t i = 0; i < gradient.carried().size(); ++i) {
    const bool is_wanted = requested.state[gradient.carried()[i]];
    first_.push_back(is_wanted ? (operand++)->data : nullptr);
  }
  const auto inputs =
      static_cast<std::size_t>(std::count(requested.inputs.begin(), requested.inputs.end(), true));
  inputs_ = Parts({operand, inputs}, steps_);
  operand += inputs;
  for (const bool is_in_place : in_place.sums) {
    sums_[0].push_back(place_for(is_in_place, operand->data));
    sums_[1].push_back(operand->data);
    sum_types_.push_back((operand++)->type);
  }
  // The blocks take turns; this start makes the last sums end up in the outputs.
  if (steps_ % 2 == 0) std::swap(sums_[0], sums_[1]);
  for (std::size_t i = 0; i < sum_types_.size(); ++i) {
    fill_with_nothing(sums_[0][i], sum_types_[i]);
  }
  for (const std::size_t turn : {0, 1}) {
    auto& [given, results] = turns_[turn];
    given = blocks_[1 - turn];
    given.resize(given.size() + outputs_.size());
    given.insert(given.end(), sums_[1 - turn].begin(), sums_[1 - turn].end());
    results = blocks_[turn];
    results.resize(results.size() + inputs_.size());
    results.insert(results.end(), sums_[turn].begin(), sums_[turn].end());
  }
  std::ranges::copy(initial_, turns_[1].given.begin());
}

void LoopAdjoints::return_first(Addresses& results) const {
  for (std::size_t i = 0; i < first_.size(); ++i) {
    if (first_[i] != nullptr) results[i] = first_[i];
  }
}

void LoopAdjoints::finish(const std::vector<bool>& untouched) {
  for (std::size_t i = 0; i < first_.size(); ++i) {
    const auto bytes = static_cast<std::size_t>(gradient_.adjoints().sizes[i]);
    if (steps_ == 0 && first_[i] != nullptr) std::memcpy(first_[i], initial_[i], bytes);
  }
  for (std::size_t i = 0; i < sum_types_.size(); ++i) {
    const auto bytes = static_cast<std::size_t>(gradient_.sums().sizes[i]);
    if (steps_ == 0 || untouched[i]) std::memset(sums_[steps_ % 2][i], 0, bytes);
  }
}

}  // namespace palimpsest
