#include "autodiff/operations/loss.h"

#include "autodiff/operations/binary.h"
#include "autodiff/operations/reduce.h"

namespace palimpsest {

Var reduce_loss(const Var& losses, Reduction reduction, Where where) {
  if (reduction == Reduction::none) return losses;
  const Var total = sum(losses, {}, false, where);
  if (reduction == Reduction::sum) return total;
  return Located(total, where) / static_cast<double>(losses.shape().elements());
}

}  // namespace palimpsest
