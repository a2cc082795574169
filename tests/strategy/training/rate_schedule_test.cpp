#include "strategy/training/rate_schedule.h"

#include <cmath>
#include <limits>
#include <vector>

#include "palimpsest.h"
#include "strategy/training/plateau_schedule.h"
#include "tests/catch.h"

namespace palimpsest::rate_schedule_test {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::WithinAbs;

void check_rates(const RateSchedule& schedule, const std::vector<double>& expected) {
  for (std::size_t step = 0; step < expected.size(); ++step) {
    CAPTURE(step);
    CHECK_THAT(schedule(static_cast<std::int64_t>(step)), WithinAbs(expected[step], 1e-16));
  }
}

// The numbers are those of torch.optim.lr_scheduler, PyTorch 2.15.

TEST_CASE("schedules have the rates of PyTorch's") {
  check_rates(step_decay({.rate = 0.05, .every = 3}),
              {0.05, 0.05, 0.05, 0.005, 0.005, 0.005, 0.0005, 0.0005});
  check_rates(exponential_decay({.rate = 0.05, .factor = 0.9}),
              {0.05, 0.045, 0.0405, 0.03645, 0.032805});
  check_rates(cosine_decay({.rate = 0.05, .steps = 10, .lowest = 0.001}),
              {0.05, 0.048800884649231269, 0.045320916362186214, 0.039900738681165594,
               0.03307091636218621, 0.0255, 0.01792908363781379, 0.011099261318834409,
               0.0056790836378137893, 0.0021991153507687385, 0.001});
  // LinearLR with start_factor = 0.5 and total_iters = 4.
  check_rates(warm_up({.steps = 4, .start_factor = 0.5}, constant_rate(0.05)),
              {0.025, 0.03125, 0.0375, 0.04375, 0.05, 0.05});
  // SequentialLR of LinearLR and CosineAnnealingLR, at step 4.
  check_rates(warm_up({.steps = 4, .start_factor = 0.1}, cosine_decay({.rate = 0.05, .steps = 6})),
              {0.005, 0.01625, 0.0275, 0.03875, 0.05, 0.046650635094610975, 0.0375, 0.025, 0.0125,
               0.0033493649053890325, 0});
  check_rates(one_cycle({.highest = 0.1, .steps = 10}),
              {0.004, 0.052, 0.1, 0.095048463201347383, 0.081174565394976306, 0.06112620219362893,
               0.038874197806371073, 0.018825834605023701, 0.0049519367986526289, 4e-07});
  check_rates(one_cycle({.highest = 0.1, .steps = 7}),
              {0.004, 0.098055662733495877, 0.091904437626971064, 0.067268383648054514,
               0.035773877573965704, 0.0099296791893265599, 4e-07});
  check_rates(one_cycle({.highest = 0.1,
                         .steps = 12,
                         .rising_share = 0.25,
                         .start_divisor = 10,
                         .end_divisor = 100,
                         .three_phases = true,
                         .linear = true}),
              {0.01, 0.055, 0.1, 0.055, 0.01, 0.0085857142857142868, 0.0071714285714285717,
               0.0057571428571428574, 0.0043428571428571431, 0.002928571428571428,
               0.0015142857142857145, 1e-4});
}

TEST_CASE("schedules stay at their last rate") {
  CHECK_THAT(cosine_decay({.rate = 1, .steps = 5, .lowest = 0.25})(1'000'000),
             WithinAbs(0.25, 1e-16));
  CHECK(one_cycle({.highest = 1, .steps = 5, .end_divisor = 4})(100) == 0.01);
}

TEST_CASE("cycles without some phases have finite rates") {
  for (const double share : {0.0, 0.1, 0.5, 1.0}) {
    for (std::int64_t steps = 1; steps < 5; ++steps) {
      const RateSchedule schedule =
          one_cycle({.highest = 1, .steps = steps, .rising_share = share});
      for (std::int64_t step = 0; step < 6; ++step) {
        CHECK(schedule(step) > 0);
        CHECK(schedule(step) <= 1);
      }
    }
  }
  CHECK(one_cycle({.highest = 1, .steps = 4, .rising_share = 0})(0) == 1);
}

TEST_CASE("a schedule can be a function of the user") {
  const RateSchedule schedule(
      [](std::int64_t step) { return 1 / std::sqrt(static_cast<double>(step + 1)); });
  const auto optimizer = sgd();
  optimizer->set_learning_rate(schedule(3));
  CHECK(optimizer->learning_rate() == 0.5);
  CHECK_THROWS_WITH(schedule(-1), Contains("the step is -1"));
  CHECK_THROWS_AS(RateSchedule(nullptr), ArgumentError);
}

TEST_CASE("settings of schedules out of range are errors") {
  CHECK_THROWS_WITH(constant_rate(-1), Contains("[constant_rate] rate is -1"));
  CHECK_THROWS_WITH(step_decay({.every = 0}), Contains("every is 0"));
  CHECK_THROWS_WITH(exponential_decay({.factor = -1}), Contains("factor"));
  CHECK_THROWS_WITH(cosine_decay({.steps = 0}), Contains("steps is 0") && Contains("1 or more"));
  CHECK_THROWS_WITH(warm_up({.steps = 0}, constant_rate(1)), Contains("[warm_up] steps"));
  CHECK_THROWS_WITH(one_cycle({.rising_share = 0.6, .three_phases = true}), Contains("0.5"));
  CHECK_THROWS_WITH(one_cycle({.start_divisor = 0}), Contains("start_divisor"));
  CHECK_THROWS_WITH(PlateauSchedule({.factor = 1.5}), Contains("factor is 1.5"));
}

const double metrics[] = {1,    0.9,  0.9,  0.95, 0.91, 0.89995, 0.8,  0.81, 0.82,
                          0.83, 0.84, 0.85, 0.86, 0.7,  0.71,    0.72, 0.73, 0.74};

TEST_CASE("a plateau reduces the rate as in PyTorch") {
  PlateauSchedule schedule(
      {.rate = 0.1, .factor = 0.5, .patience = 2, .cooldown = 1, .lowest = 0.03});
  const double expected[] = {0.1,  0.1,  0.1,  0.1,  0.05, 0.05, 0.05, 0.05, 0.05,
                             0.03, 0.03, 0.03, 0.03, 0.03, 0.03, 0.03, 0.03, 0.03};
  for (std::size_t i = 0; i < std::size(metrics); ++i) {
    CHECK(schedule.observe(metrics[i]) == expected[i]);
  }
  PlateauSchedule rising({.rate = 0.1,
                          .factor = 0.1,
                          .patience = 1,
                          .maximize = true,
                          .threshold = 0.06,
                          .threshold_is_absolute = true});
  const double falling[] = {0.1,  0.1,  0.1,  0.01, 0.01, 1e-3, 1e-3, 1e-3, 1e-4,
                            1e-4, 1e-5, 1e-5, 1e-6, 1e-6, 1e-6, 1e-7, 1e-7, 1e-8};
  for (std::size_t i = 0; i < std::size(metrics); ++i) {
    CHECK_THAT(rising.observe(-metrics[i]), Catch::Matchers::WithinRel(falling[i], 1e-12));
  }
}

TEST_CASE("a restored plateau continues as the saved one") {
  PlateauSchedule schedule({.rate = 0.1, .patience = 1, .cooldown = 2});
  for (int i = 0; i < 4; ++i) schedule.observe(1);
  PlateauSchedule restored({.rate = 0.5, .patience = 1, .cooldown = 2});
  restored.load_state(schedule.state());
  for (int i = 0; i < 9; ++i) CHECK(restored.observe(1) == schedule.observe(1));
  CHECK(schedule.rate() < 0.01);

  NamedTensors state = schedule.state();
  state.erase("best");
  CHECK_THROWS_WITH(restored.load_state(state), Contains("'best' of the state is missing"));
  state = schedule.state();
  state.at("rate") = Tensor::scalar(std::numeric_limits<double>::quiet_NaN(), DType::f64);
  CHECK_THROWS_WITH(restored.check_state(state), Contains("'rate'") && Contains("nan"));
  state = schedule.state();
  state.emplace("other", Tensor::scalar(1));
  CHECK_THROWS_WITH(restored.load_state(state), Contains("'other' of the state is unknown"));
}

TEST_CASE("a plateau's first observation is the best, with any threshold") {
  PlateauSchedule schedule({.rate = 1, .factor = 0.5, .patience = 0, .threshold = 1});
  CHECK(schedule.observe(5) == 1);
}

}  // namespace
}  // namespace palimpsest::rate_schedule_test
