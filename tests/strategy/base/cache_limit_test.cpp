#include "strategy/base/cache_limit.h"

#include <list>

#include "checkpoint/planners.h"
#include "palimpsest.h"
#include "strategy/compile/plan_versions.h"
#include "tests/catch.h"
#include "tests/checkpoint/graphs.h"

namespace palimpsest::cache_limit_test {
namespace {

TEST_CASE("a cache keeps what was used last, within its limits of entries and bytes") {
  const auto left = [](std::list<Bytes> list, std::size_t least, std::size_t most) {
    keep_within_limit(list, least, most, [](Bytes bytes) { return bytes; });
    return list.size();
  };
  CHECK(left({1, 2, 3}, 1, 2) == 2);
  CHECK(left({1, 2, 3}, 1, 8) == 3);
  CHECK(left({1, most_cached, 3}, 1, 8) == 1);
  CHECK(left({1, most_cached - 1, 3}, 1, 8) == 2);
  CHECK(left({most_cached, most_cached, 3}, 2, 8) == 2);
  CHECK(left({}, 2, 8) == 0);
}

TEST_CASE("plans are kept within a limit of bytes") {
  KeptPlannings plannings(4_MiB);
  Pace pace;
  PlanVersions store(plannings, pace);
  const PlannerPtr planner = keep_all();
  Bytes one = 0;
  for (std::uint32_t k = 0; k < 10; ++k) {
    const auto graph = std::make_shared<const Graph>(tests::chain(30'000 + k));
    CHECK(store.plan({graph, planner, unlimited}));
    if (k == 0) one = store.bytes();
    CHECK(store.bytes() <= std::max(most_cached, 4 * one + one / 100));
  }
  CHECK(one > 0);
  CHECK(store.bytes() > most_cached / 2);
  CHECK(store.bytes() < 10 * one);
}

CustomOperation times(float factor) {
  return CustomOperation({.name = "times",
                          .forward =
                              [factor](const CustomCall& call) {
                                const auto x = call.inputs[0].data<float>();
                                const auto y = call.outputs[0].data<float>();
                                for (std::size_t i = 0; i < x.size(); ++i) y[i] = factor * x[i];
                              },
                          .vjp = [factor](const Pullback& p) { p.set(0, p.adjoint() * factor); }});
}

TEST_CASE("a user's operation that is made anew at every call is planned once") {
  const auto evaluator = lazy();
  Bytes cached = 0;
  for (int call = 0; call < 6; ++call) {
    Tape tape(evaluator);
    const Var w = tape.parameter(Tensor::vector({1, 2, 3}));
    const auto factor = static_cast<float>(call + 2);
    // Another function, possibly at the same address.
    const Gradients gradients = backward(sum(square(times(factor)({w}))));
    CHECK(gradients[w].at(2) == 2 * factor * factor * 3);
    CHECK(gradients.report().plan_reused == (call > 0));
    CHECK(gradients.report().plan_cache > 0);
    if (call == 1) cached = gradients.report().plan_cache;
    if (call > 1) CHECK(gradients.report().plan_cache == cached);
  }
}

TEST_CASE("one operation of a user does not stand for another one of its name") {
  const auto evaluator = lazy();
  for (const float second : {2.0f, 3.0f}) {
    Tape tape(evaluator);
    const Var x = tape.parameter(Tensor::vector({1}));
    const CustomOperation a = times(2);
    const Var sums = a({x}) + (second == 2.0f ? a : times(second))({x});
    CHECK(sum(sums).item() == 2 + second);
  }
}

}  // namespace
}  // namespace palimpsest::cache_limit_test
