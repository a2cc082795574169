#include "autodiff/operations/loss.h"

#include "autodiff/operations/binary.h"
#include "autodiff/operations/functions/arithmetic.h"
#include "autodiff/operations/functions/loss.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/unary.h"

namespace palimpsest {
namespace {

void require_same_shape(const Var& a, const Var& b, const char* operation, const Where& where) {
  const Var both[] = {a, b};
  common_tape(both, operation, where);
  if (a.shape() == b.shape()) return;
  throw ShapeError(operation,
                   "the prediction has shape " + to_string(a.shape()) + ", the target " +
                       to_string(b.shape()) + "; reshape one of them",
                   where);
}

Var difference(const Var& prediction, const Var& target, const char* operation,
               const Where& where) {
  require_same_shape(prediction, target, operation, where);
  return subtract(prediction, target, where);
}

}  // namespace

Var reduce_loss(const Var& losses, Reduction reduction, Where where) {
  require_value(losses, "reduce_loss", where);
  switch (reduction) {
    case Reduction::mean:
      return mean(losses, {}, false, where);
    case Reduction::sum:
      return sum(losses, {}, false, where);
    case Reduction::none:
      return losses;
  }
  throw InternalError("unknown reduction");
}

Var mse(const Var& prediction, const Var& target, Reduction reduction, Where where) {
  return reduce_loss(square(difference(prediction, target, "mse", where), where), reduction, where);
}

Var l1(const Var& prediction, const Var& target, Reduction reduction, Where where) {
  return reduce_loss(abs(difference(prediction, target, "l1", where), where), reduction, where);
}

Var huber(const Var& prediction, const Var& target, double delta, Reduction reduction,
          Where where) {
  const Var u = difference(prediction, target, "huber", where);
  return reduce_loss(unary<functions::HuberLoss>(u, where, {delta}), reduction, where);
}

Var bce_with_logits(const Var& logits, const Var& targets, Reduction reduction, Where where) {
  require_same_shape(logits, targets, "bce_with_logits", where);
  return reduce_loss(binary<functions::BceWithLogits>(logits, targets, where), reduction, where);
}

}  // namespace palimpsest
