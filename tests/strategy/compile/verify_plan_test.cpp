#include "strategy/compile/verify_plan.h"

#include "palimpsest.h"
#include "strategy/compile/fusion/needs.h"
#include "strategy/compile/fusion/verify_lowered.h"
#include "tests/catch.h"

namespace verify_plan_test {

using namespace palimpsest;
using Catch::Matchers::Contains;

namespace {

/// A chain of products with fused groups between them, differentiated, lowered and planned.
struct Made {
  Tape tape;
  std::vector<ValueId> targets;
  std::shared_ptr<const Lowered> lowered;
  Plan plan;

  explicit Made(int layers = 4) {
    const Var w = tape.parameter(Tensor::uniform({8, 8}, 1, -1, 1));
    Var x = tape.constant(Tensor::uniform({16, 8}, 2, -1, 1));
    for (int layer = 0; layer < layers; ++layer) x = tanh(softmax(matmul(x, w)) * 2.0 + 0.5);
    const NodeId backward_begins = tape.node_count();
    const Var loss = sum(x * x);
    targets = {loss.id(), gradient(loss, w).id()};
    lowered =
        std::make_shared<const Lowered>(Lowered::fused(tape, targets, 1, backward_begins, {}));
    plan = make_plan(lowered->graph(), *greedy(),
                     make_plan(lowered->graph(), *keep_all()).predicted_peak() * 8 / 10);
  }
};

}  // namespace

TEST_CASE("verify: what the passes make is accepted") {
  const Made made;
  REQUIRE(made.plan.simulation.recomputed > 0);
  CHECK_NOTHROW(verify(*made.lowered, made.tape, made.targets, {}));
  CHECK_NOTHROW(verify(made.lowered->graph(), made.plan));
  CHECK_NOTHROW(verify(Instructions(made.tape, made.lowered, made.plan), made.plan));
}

TEST_CASE("verify: a lowered graph that is not that of the tape or the targets is not") {
  const Made made;
  const Made other(5);
  CHECK_THROWS_AS(verify(*made.lowered, other.tape, made.targets, {}), InternalError);
  std::vector<ValueId> more = made.targets;
  more.push_back(made.targets[0] - 1);
  CHECK_THROWS_WITH(verify(*made.lowered, made.tape, more, {}),
                    Contains("the results are not the targets"));
  CHECK_THROWS_AS(verify(*made.lowered, made.tape, {&more[1], 2}, {}), InternalError);
}

TEST_CASE("verify: a layout in which live values share bytes is not accepted") {
  const Made made;
  const std::vector<Interval>& intervals = made.plan.layout.intervals;
  int moved = 0;
  for (std::size_t i = 0; i < intervals.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const bool at_once = intervals[j].last >= intervals[i].first;
      if (!at_once || intervals[i].takes_over != none || intervals[j].takes_over != none) continue;
      Plan plan = made.plan;
      plan.layout.intervals[i].offset = intervals[j].offset;
      CHECK_THROWS_AS(verify(made.lowered->graph(), plan), InternalError);
      ++moved;
    }
  }
  CHECK(moved > 0);
  Plan plan = made.plan;
  plan.layout.size -= 64;
  CHECK_THROWS_WITH(verify(made.lowered->graph(), plan), Contains("does not lie in the arena"));
}

TEST_CASE("verify: a schedule that reads what is not there is not accepted") {
  const Made made;
  std::size_t dropped = 0;
  for (std::size_t step = 0; step < made.plan.schedule.steps.size(); ++step) {
    Plan plan = made.plan;
    std::vector<Step>& steps = plan.schedule.steps;
    if (steps[step].kind != Step::Kind::compute) continue;
    steps.erase(steps.begin() + static_cast<std::ptrdiff_t>(step));
    CHECK_THROWS_AS(verify(made.lowered->graph(), plan), InternalError);
    ++dropped;
  }
  CHECK(dropped > 0);
}

TEST_CASE("verify: instructions of another plan are not accepted") {
  const Made made;
  const Plan everything = make_plan(made.lowered->graph(), *keep_all());
  const Instructions instructions(made.tape, made.lowered, made.plan);
  CHECK_THROWS_AS(verify(instructions, everything), InternalError);
  Plan swapped = made.plan;
  std::vector<Step>& steps = swapped.schedule.steps;
  std::size_t first = 0;
  while (steps[first].kind != Step::Kind::compute || steps[first + 1].kind != Step::Kind::compute) {
    ++first;
  }
  std::swap(steps[first], steps[first + 1]);
  CHECK_THROWS_AS(verify(instructions, swapped), InternalError);
}

}  // namespace verify_plan_test
