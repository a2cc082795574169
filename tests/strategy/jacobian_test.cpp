#include "autodiff/gradient.h"

#include <memory>

#include "autodiff/operations/binary.h"
#include "autodiff/operations/functions/trigonometric.h"
#include "autodiff/operations/products.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/unary.h"
#include "strategy/evaluators/evaluators.h"
#include "tests/catch.h"

namespace palimpsest::jacobian_test {
namespace {

struct Found {
  Tensor jacobian, by_columns, hessian, after;
  std::uint32_t left;  ///< additional nodes on the tape
};

Found found(std::shared_ptr<Evaluator> evaluator, bool has_value) {
  Tape tape(std::move(evaluator));
  const Var x = tape.parameter(Tensor::normal({6}, 1, 0, 1, DType::f64));
  const Var w = tape.parameter(Tensor::normal({6, 6}, 2, 0, 1, DType::f64));
  const Var y = tanh(matmul(w, reshape(x, {6, 1}))) * 2.0;
  const Var total = sum(y * y);
  const Var tall = matmul(w, y) * total;
  if (has_value) y.value();
  const std::uint32_t nodes = tape.node_count();
  Found result{jacobian(y, w), jacobian(tall, total), hessian(total, x), {}, 0};
  result.left = tape.node_count() - nodes;
  result.after = (y + 1.0).value();
  return result;
}

TEST_CASE("Jacobians and Hessians are the same however tapes compute, and leave nothing there") {
  const Found expected = found(nullptr, false);
  const std::shared_ptr<Evaluator> evaluators[] = {
      lazy(), eager(), hybrid(), lazy({.memory_budget = 8_KiB}), eager({.memory_budget = 16_KiB})};
  for (const std::shared_ptr<Evaluator>& evaluator : evaluators) {
    for (const bool has_value : {false, true}) {
      const Found own = found(evaluator, has_value);
      CHECK(same_bits(own.jacobian, expected.jacobian));
      CHECK(same_bits(own.by_columns, expected.by_columns));
      CHECK(same_bits(own.hessian, expected.hessian));
      CHECK(same_bits(own.after, expected.after));
      CHECK(own.left == 0);
    }
  }
}

}  // namespace
}  // namespace palimpsest::jacobian_test
