// Casts, checkpoints and users' operations in a mixed precision.
#include <algorithm>
#include <cmath>
#include <functional>

#include "palimpsest.h"
#include "tests/error_of.h"

namespace palimpsest::narrowed_test {
namespace {

TEST_CASE("a cast that no derivative flows through blocks it in checkpoints of any precision") {
  const auto gradient_in = [](std::optional<Precision> precision) {
    const auto record = [](Tape& tape) -> LossAndOutputs {
      const Var w = tape.parameter(Tensor::from({0.5f, -1.0f, 0.25f, 2.0f}, {2, 2}), "w");
      const Var h = matmul(tape.constant(Tensor::from({1.0f, 2.0f}, {1, 2})), w);
      return sum(checkpoint(
          [](const Var& x) {
            const Var q = [&] {
              const Tape::NoGradient none(x.tape());
              return cast(x, DType::bf16);
            }();
            return x * cast(q, DType::f32);
          },
          h));
    };
    const Program program =
        precision ? Program::gradients(record, *precision) : Program::gradients(record);
    Runner runner(program);
    runner.run();
    const Gradients made = runner.gradients();
    return made.begin()->gradient;
  };
  const Tensor expected = gradient_in({});
  CHECK(expected.at(0) == 1);  // that of x, with a factor x that stays
  CHECK(same_bits(gradient_in(Precision{.kind = PrecisionKind::mixed}), expected));
}

TEST_CASE("in checkpoints, derivatives flow beside values that none flows through") {
  const auto gradients_of = [](const std::shared_ptr<Evaluator>& evaluator) {
    Tape tape(evaluator);
    const Var c = tape.constant(Tensor::from({1.0f, 2.0f}, {1, 2}));
    const Var first = tape.parameter(Tensor::from({0.5f, -1.0f, 0.25f, 2.0f}, {2, 2}));
    const Var second = tape.parameter(Tensor::from({0.25f, 0.5f, 1.0f, -2.0f}, {2, 2}));
    const Gradients made = backward(sum(checkpoint(
        [](const Var& x, const Var& y) {
          const Var q = [&] {
            const Tape::NoGradient none(x.tape());
            return tanh(x);
          }();
          return q * y;
        },
        matmul(c, first), matmul(c, second))));
    return std::pair{made[first], made[second]};
  };
  const auto [none, expected] = gradients_of(lazy());
  const auto [blocked, found] = gradients_of(precise({}));
  for (std::int64_t i = 0; i < 4; ++i) {
    CHECK(none.at(i) == 0);
    CHECK(blocked.at(i) == 0);
    CHECK(std::abs(found.at(i) - expected.at(i)) < 0.02);
    CHECK(expected.at(i) != 0);
  }
}

TEST_CASE("an operation of the user that records itself narrower returns its own outputs") {
  Tape other;
  const Var foreign = other.constant(Tensor::zeros({3}));
  using Outputs = std::vector<Var>;
  using Narrow = std::function<Outputs(std::span<const Var>, Where)>;
  const auto error = [&](const Narrow& narrow) {
    const CustomOperation pair(
        {.name = "pair",
         .types = [](std::span<const ValueType> in) { return std::vector{in[0], in[0]}; },
         .forward =
             [](const CustomCall& call) {
               for (const Tensor& output : call.outputs) {
                 std::ranges::copy(call.inputs[0].data<float>(), output.data<float>().begin());
               }
             },
         .narrow = narrow});
    return error_of([&] {
      Tape tape(precise({}));
      const Var x = tape.parameter(Tensor::from({1.0f, 2.0f, 3.0f}, {3}));
      const Var first = pair({x});
      (first + first.output(1)).value();
    });
  };
  CHECK(error([](auto x, Where) { return Outputs{x[0], x[0] * 1.0}; }).empty());
  CHECK(error([](auto x, Where) { return Outputs{x[0], cast(x[0], DType::bf16)}; }).empty());
  const auto says = [](const char* text) { return Catch::Matchers::Contains(text); };
  CHECK_THAT(error([](auto, Where) { return Outputs{}; }), says("0 values") && says("2 outputs"));
  CHECK_THAT(error([](auto x, Where) { return Outputs{x[0]}; }), says("1 values"));
  CHECK_THAT(error([](auto x, Where) { return Outputs{x[0], {}}; }), says("output 1 undefined"));
  CHECK_THAT(error([&](auto x, Where) { return Outputs{x[0], foreign}; }), says("another tape"));
  CHECK_THAT(error([](auto x, Where) { return Outputs{x[0], sum(x[0])}; }), says("output 1 as"));
  CHECK_THAT(error([](auto x, Where) { return Outputs{x[0], cast(x[0], DType::f64)}; }),
             says("f64"));
}

}  // namespace
}  // namespace palimpsest::narrowed_test
