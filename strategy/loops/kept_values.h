#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "strategy/loops/loop.h"

namespace palimpsest {

/// Values that a step makes and its derivative reads. If they are kept until the step is reversed,
/// the step does not run again.
struct KeptValues {
  KeptValues(const Loop& loop, std::uint32_t number, std::vector<ValueId> values);

  std::uint32_t number;         ///< among those of the loop
  std::vector<ValueId> values;  ///< of the step's tape
  StateBlock block;             ///< the layout of those of one step
  StepPrograms forward;         ///< makes the next state, the outputs and these values
};

/// The values of a step to keep for the derivative `backward`. They do not include the state, the
/// next state, what depends on captured values alone, and what only moves elements of other values.
/// The outputs of a step are made again by one operation, since they cannot be in two places.
std::vector<ValueId> values_to_keep(const RecordedStep& step, const StepPrograms& backward);

/// The derivative of a step, with the next state and the kept values as further arguments after
/// those of the step.
std::pair<std::shared_ptr<Tape>, BufferInterface> from_kept_values(const KeptValues& kept,
                                                                   const RecordedStep& step,
                                                                   const StepPrograms& backward);

/// The values that are worth keeping for these backward parts of a loop: to write and read them
/// takes less time than to make them again. Null if there are none.
const KeptValues* values_worth_keeping(std::span<const LoopGradient* const> gradients);

}  // namespace palimpsest
