// Steps of each optimizer against its formula and against PyTorch.
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "palimpsest.h"
#include "tests/catch.h"

namespace palimpsest::optimizers_test {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;

using Make = std::function<std::unique_ptr<Optimizer>()>;

/// Five steps on Σ (½·aᵢ·xᵢ² + 0.1·k·xᵢ) at step k, with aᵢ = 1 … 6, from xᵢ = −1, −0.5 … 1.5.
Tensor after_five_steps(const Make& make, const Shape& shape, DType dtype = DType::f64) {
  const Tensor x = Tensor::from({-1.0, -0.5, 0.0, 0.5, 1.0, 1.5}, shape).to(dtype);
  const Tensor a = Tensor::from({1.0, 2.0, 3.0, 4.0, 5.0, 6.0}, shape).to(dtype);
  const auto optimizer = make();
  Tape tape;
  for (int k = 1; k <= 5; ++k) {
    tape.clear();
    const Var p = tape.parameter(x, "x");
    optimizer->step(backward(sum(0.5 * tape.constant(a) * p * p + (0.1 * k) * p)));
  }
  return x;
}

struct TorchRow {
  Make make;
  Shape shape;
  std::vector<double> expected;
};

// PyTorch 2.15, torch.optim, in f64.
const TorchRow torch_rows[] = {
    {[] { return sgd({.learning_rate = 0.05, .momentum = 0.9, .weight_decay = 0.1}); },
     {2, 3},
     {-0.51176388934374994, -0.10023489428281246, -0.12310411000312503, -0.41209419587968749,
      -0.8297996862875, -1.2668088656015626}},
    {[] {
       return sgd({.learning_rate = 0.05, .momentum = 0.9, .weight_decay = 0.1, .nesterov = true});
     },
     {2, 3},
     {-0.45012327967923155, -0.095211056707063105, -0.1416127860706681, -0.33275374934357776,
      -0.51316956537557346, -0.60432628619893636}},
    {[] { return adam({.learning_rate = 0.1, .weight_decay = 0.3}); },
     {2, 3},
     {-0.52593912428136769, -0.076253239762139602, -0.16784920897371433, 0.015163854707870267,
      0.50561527016144603, 1.0033895002181912}},
    {[] { return adamw({.learning_rate = 0.1, .weight_decay = 0.3}); },
     {2, 3},
     {-0.43378049606791835, -0.060241658115226381, -0.18552517851621336, -0.023113124585624326,
      0.39610474389483818, 0.82291103115977793}},
    {[] { return rmsprop({.learning_rate = 0.05, .alpha = 0.9, .weight_decay = 0.1}); },
     {2, 3},
     {-0.60873856474442356, -0.22168788477490534, -0.17037979950973337, 0.057363332491503501,
      0.51206063063843332, 0.99732898046986074}},
    {[] { return rmsprop({.learning_rate = 0.05, .alpha = 0.9, .centered = true}); },
     {2, 3},
     {-0.59192899929459197, -0.2245568915409501, -0.17527761216824655, 0.016247418134519451,
      0.44993787198130397, 0.92834946419746156}},
    {[] { return rmsprop({.learning_rate = 0.02, .alpha = 0.9, .momentum = 0.8}); },
     {2, 3},
     {-0.55467048004115105, -0.11524042577000627, -0.18998869014537564, 0.0088802738057618662,
      0.48776296606625802, 0.98074804158179985}},
    {[] {
       return rmsprop({.learning_rate = 0.02,
                       .alpha = 0.9,
                       .momentum = 0.8,
                       .centered = true,
                       .weight_decay = 0.1});
     },
     {2, 3},
     {-0.5068858133893237, -0.087506244604483072, -0.19246612754197942, -0.038000384917580211,
      0.43035190051336253, 0.92015613484294001}},
    {[] { return adafactor({.learning_rate = 0.2, .weight_decay = 0.1}); },
     {2, 3},
     {-0.49643111271755058, -0.23092600338167488, -0.14036251040873229, 0.034344111556656481,
      0.42738854250130398, 0.85991750065234196}},
    {[] { return adafactor({.learning_rate = 0.2, .weight_decay = 0.1}); },
     {6},
     {-0.5152020221476229, -0.21494147201781968, -0.17512490946580908, -0.019596992644920676,
      0.362089559758347, 0.79165933501449515}},
    {[] { return adafactor({.learning_rate = 0.2}); },
     {1, 2, 3},
     {-0.51296663499350148, -0.23958037132818746, -0.14664962030062803, 0.041391607214788462,
      0.47573464813674171, 0.95442725902667969}},
    {[] { return adafactor({.learning_rate = 0.2}); },
     {3, 2, 1},
     {-0.55576807543936957, -0.22478580523905975, -0.18108027454049114, -0.018676946544274535,
      0.40197664889322532, 0.87725825473112362}},
};

TEST_CASE("optimizers take the steps of PyTorch's") {
  for (const TorchRow& row : torch_rows) {
    const Tensor x = after_five_steps(row.make, row.shape);
    CAPTURE(row.make()->state().begin()->first, row.shape.rank());
    for (std::int64_t i = 0; i < 6; ++i) {
      CHECK_THAT(x.at(i), WithinRel(row.expected[static_cast<std::size_t>(i)], 1e-12));
    }
    // The state of 16-bit parameters is f32.
    for (const auto& [dtype, error] :
         {std::pair(DType::f32, 1e-5), std::pair(DType::f16, 3e-3), std::pair(DType::bf16, 2e-2)}) {
      const Tensor narrow = after_five_steps(row.make, row.shape, dtype);
      CHECK(narrow.dtype() == dtype);
      for (std::int64_t i = 0; i < 6; ++i) CHECK_THAT(narrow.at(i), WithinAbs(x.at(i), error));
    }
  }
}

/// `steps` steps on ½·x² from x = 2, whose gradient is x.
double after_steps(Optimizer& optimizer, int steps) {
  const Tensor x = Tensor::scalar(2, DType::f64);
  for (int i = 0; i < steps; ++i) {
    Tape tape;
    const Var p = tape.parameter(x);
    optimizer.step(backward(p * p * 0.5));
  }
  return x.item();
}

TEST_CASE("Nesterov's SGD takes the steps its formula gives") {
  // v: 2, p = 2 − 0.1·(2 + 0.9·2) = 1.62; v = 0.9·2 + 1.62 = 3.42, p = 1.62 − 0.1·(1.62 + 3.078).
  const auto optimizer = sgd({.learning_rate = 0.1, .momentum = 0.9, .nesterov = true});
  CHECK_THAT(after_steps(*optimizer, 2), WithinAbs(1.1502, 1e-15));
  CHECK_THROWS_WITH(sgd({.nesterov = true}), Contains("momentum with nesterov"));
}

TEST_CASE("RMSprop takes the steps its formula gives") {
  double p = 2, square = 0, mean = 0, velocity = 0;
  for (int i = 0; i < 4; ++i) {
    const double g = p + 0.3 * p;
    square = 0.9 * square + 0.1 * g * g;
    mean = 0.9 * mean + 0.1 * g;
    velocity = 0.5 * velocity + g / (std::sqrt(square - mean * mean) + 1e-8);
    p -= 0.1 * velocity;
  }
  const auto optimizer = rmsprop(
      {.learning_rate = 0.1, .alpha = 0.9, .momentum = 0.5, .centered = true, .weight_decay = 0.3});
  CHECK_THAT(after_steps(*optimizer, 4), WithinRel(p, 1e-12));
  // Here the variance is 0 up to rounding; a root of a negative number would be NaN.
  CHECK(std::isfinite(after_steps(*rmsprop({.alpha = 0, .centered = true}), 5)));
}

TEST_CASE("Lion takes the steps its formula gives") {
  double p = 2, m = 0;
  for (int i = 0; i < 30; ++i) {
    const double c = 0.9 * m + 0.1 * p;
    const double decayed = p * (1 - 0.1 * 0.3);
    m = 0.99 * m + 0.01 * p;
    p = decayed - 0.1 * (c > 0 ? 1 : -1);
  }
  CHECK(p < 0);  // so both signs occurred
  CHECK_THAT(after_steps(*lion({.learning_rate = 0.1, .weight_decay = 0.3}), 30),
             WithinRel(p, 1e-12));
}

TEST_CASE("the sign in Lion is 0 for 0 and passes NaN on") {
  const auto step = [](double gradient) {
    const Tensor x = Tensor::scalar(2, DType::f64);
    Tape tape;
    const auto optimizer = lion();
    optimizer->step(backward(tape.parameter(x) * gradient));
    return x.item();
  };
  CHECK(step(0) == 2);
  CHECK(std::isnan(step(std::numeric_limits<double>::quiet_NaN())));
}

TEST_CASE("Adafactor keeps a number for each row and column") {
  Tape tape;
  const auto optimizer = adafactor();
  const Var p = tape.parameter(Tensor::ones({2, 5, 7}), "p");
  const Var b = tape.parameter(Tensor::ones({7}), "b");
  const Var empty = tape.parameter(Tensor::ones({3, 0}), "empty");
  optimizer->step(backward(sum(p * b) + sum(empty)));
  const NamedTensors state = optimizer->state();
  CHECK(state.at("adafactor/name/p/rows").shape() == Shape{2, 5});
  CHECK(state.at("adafactor/name/p/columns").shape() == Shape{2, 7});
  CHECK(state.at("adafactor/name/b/square").shape() == Shape{7});
  CHECK(state.at("adafactor/name/empty/rows").shape() == Shape{3});
}

TEST_CASE("settings of optimizers out of range are errors") {
  CHECK_THROWS_WITH(rmsprop({.alpha = 1}), Contains("[rmsprop] alpha is 1;"));
  CHECK_THROWS_WITH(rmsprop({.momentum = -0.1}), Contains("[rmsprop] momentum"));
  CHECK_THROWS_WITH(lion({.beta2 = 1}), Contains("[lion] beta2"));
  CHECK_THROWS_WITH(lion({.weight_decay = -1}), Contains("[lion] weight_decay"));
  CHECK_THROWS_WITH(adafactor({.decay_exponent = 0.1}), Contains("give 0 or less"));
  CHECK_THROWS_WITH(adafactor({.clip_threshold = 0}), Contains("clip_threshold"));
}

TEST_CASE("steps have the same bits at any number of threads") {
  const tbb::global_control allow(tbb::global_control::max_allowed_parallelism, 4);
  const Make makes[] = {
      [] { return sgd({.momentum = 0.9, .nesterov = true}); },
      [] { return adamw(); },
      [] { return rmsprop({.momentum = 0.9, .centered = true}); },
      [] { return lion(); },
      [] { return adafactor(); },
  };
  for (const Make& make : makes) {
    const auto trained = [&](int threads) {
      const Tensor matrix = Tensor::uniform({300, 101}, 1, -1, 1);
      const Tensor vector = Tensor::uniform({40'000}, 2, -1, 1);
      tbb::task_arena(threads).execute([&] {
        const auto optimizer = make();
        for (int i = 0; i < 3; ++i) {
          Tape tape;
          const Var m = tape.parameter(matrix);
          const Var v = tape.parameter(vector);
          optimizer->step(backward(sum(m * m * m) + sum(v * v)));
        }
      });
      return std::pair(matrix, vector);
    };
    const auto expected = trained(1);
    const auto found = trained(4);
    CHECK(same_bits(found.first, expected.first));
    CHECK(same_bits(found.second, expected.second));
  }
}

}  // namespace
}  // namespace palimpsest::optimizers_test
