#pragma once

#include "strategy/backward.h"

namespace palimpsest {

/// `backward`, also of a tape without parameters, which has a loss and outputs but no gradients.
/// For a model that is given none.
Gradients differentiate(const LossAndOutputs& values, const RunOptions& options,
                        const Where& where);

}  // namespace palimpsest
