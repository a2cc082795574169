#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "checkpoint/machine.h"
#include "strategy/loops/loop.h"

namespace palimpsest {

/// Values that a step makes and its derivative reads. If they are kept until the step is reversed,
/// the step does not run again.
struct KeptValues {
  KeptValues(const Loop& loop, std::vector<ValueId> values);

  /// Equal for loops that were recorded in the same way, also in other processes. From 1 to 2⁴³.
  static std::uint64_t key_of(std::span<const ValueId> values);

  std::uint64_t key;
  std::vector<ValueId> values;  ///< of the step's tape
  StateBlock block;             ///< the layout of those of one step
  StepPrograms forward;         ///< makes the next state, the outputs and these values
};

/// The values of a step to keep for the derivative `backward`: those that it reads and that depend
/// on the state or on inputs. Components of the state and of the next state that are `held` need
/// not be kept. Results of nested loops are made again from others that are kept. So are outputs of
/// the step, which cannot be in two places, and what only moves elements of values that are not
/// much larger. An operation with several results keeps all of them.
std::vector<ValueId> values_to_keep(const RecordedStep& step, const StepPrograms& backward,
                                    const std::vector<bool>& held);

/// False for loops of unknown length, and for those whose steps are recorded one by one. Also false
/// for loops with a codec, a disk, a journal, or hashes of states.
bool may_keep_values(const Loop& loop);

/// The derivative of a step, with the next state and the kept values as further arguments after
/// those of the step. It reads components that are `held`.
std::pair<std::shared_ptr<Tape>, BufferInterface> from_kept_values(const KeptValues& kept,
                                                                   const RecordedStep& step,
                                                                   const StepPrograms& backward,
                                                                   const std::vector<bool>& held);

/// The values that are worth keeping for these backward parts of a loop: on `machine`, to write and
/// read them takes less time than to make them again. If its caches are not known, usual ones are
/// assumed. Null if there are none.
const KeptValues* values_worth_keeping(std::span<const LoopGradient* const> gradients,
                                       const Machine& machine);

}  // namespace palimpsest
