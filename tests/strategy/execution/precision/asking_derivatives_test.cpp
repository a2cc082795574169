// Functions of derivatives that ask for values of the tape that is being differentiated.
#include <oneapi/tbb/global_control.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "palimpsest.h"
#include "tests/catch.h"
#include "tests/copying_operation.h"
#include "tests/temporary_directory.h"

namespace palimpsest::asking_derivatives_test {
namespace {

struct Values {
  Var w, h, k;
  Tape* derivative = nullptr;  ///< on which it is recorded
};

/// A way in which the function of a derivative asks, before it passes on its adjoint. Returns a
/// number.
struct Ask {
  const char* name;
  std::function<double(const Values&)> function;
};

std::vector<Ask> ways_to_ask(const std::string& directory) {
  return {
      {"nothing", [](const Values&) { return 0.0; }},
      {"value", [](const Values& v) { return v.h.value().at(1); }},
      {"value of a recorded one", [](const Values& v) { return sum(exp(v.h)).item(); }},
      {"evaluate",
       [](const Values& v) {
         evaluate(v.k);
         return v.k.value().at(0);
       }},
      {"evaluate several",
       [](const Values& v) {
         const Var more = exp(v.h);
         const std::vector<Var> all{v.h, more, v.k};
         evaluate(all);
         return more.value().at(0) + v.k.value().at(1);
       }},
      {"gradient", [](const Values& v) { return gradient(sum(exp(v.k)), v.w).value().at(1); }},
      {"backward of what was recorded before a guard",
       [](const Values& v) {
         const Var before = sum(exp(v.k));
         const Tape::NoGradient none(*v.derivative);
         return double{backward(before)[v.w].at(1)};
       }},
      {"backward", [](const Values& v) { return double{backward(sum(exp(v.k)))[v.w].at(1)}; }},
      {"plan_backward",
       [](const Values& v) {
         return static_cast<double>(plan_backward(sum(exp(v.h))).predicted_peak());
       }},
      {"forecast",
       [](const Values& v) {
         const Forecast forecast = forecast_values({&v.k, 1}, {}, {});
         return static_cast<double>(forecast.peak);
       }},
      {"write_graph",
       [directory](const Values& v) {
         write_graph(sum(exp(v.h)), directory + "/graph.json");
         return 1.0;
       }},
  };
}

/// All numbers that a program sees in which a derivative's function asks.
std::vector<double> numbers_of(const Ask& ask, const std::shared_ptr<Evaluator>& evaluator,
                               double* seen) {
  Tape tape(evaluator);
  Values v;
  v.w = tape.parameter(Tensor::from({0.5f, -1.0f, 0.25f, 2.0f}, {2, 2}), "w");
  v.h = matmul(tape.constant(Tensor::from({1.0f, 2.0f}, {1, 2})), v.w);
  v.k = tanh(matmul(v.h, v.w));
  const CustomOperation copy = copying_operation([&](const Pullback& p) {
    const auto scope = tape.scope("derivative");
    v.derivative = &p.tape();
    *seen = ask.function(v);
    return p.adjoint();
  });
  const Var loss = sum(square(copy({v.k}))) + sum(v.h);
  std::vector<double> numbers;
  const auto add = [&](const Tensor& tensor) {
    for (std::int64_t i = 0; i < tensor.elements(); ++i) numbers.push_back(tensor.at(i));
  };
  for (int run = 0; run < 3; ++run) {
    const NodeId nodes = tape.node_count();
    add(backward(loss)[v.w]);
    CHECK(tape.node_count() == nodes);
    // Later nodes may get the numbers of nodes that were removed.
    Var other = tape.constant(Tensor::from({7.0f, 7.0f}, {1, 2}));
    for (int i = 0; i < 12; ++i) other = other * 10.0;
    add(v.h.value());
    add(sum(square(v.h)).value());
    add(sum(exp(v.k)).value());
    add(backward(sum(v.h * v.k))[v.w]);
  }
  return numbers;
}

TEST_CASE("a derivative's function may ask for values of the tape in any precision and mode") {
  const TemporaryDirectory directory;
  const std::vector<Ask> all = ways_to_ask(directory.path());
  const std::vector<std::function<std::shared_ptr<Evaluator>()>> modes = {
      [] { return lazy(); }, [] { return eager(); }, [] { return hybrid(); }};
  for (const auto& mode : modes) {
    for (const auto& precision : std::vector<std::optional<Precision>>{
             {}, Precision{}, Precision{PrecisionKind::full}, Precision{PrecisionKind::single}}) {
      const auto evaluator = [&]() -> std::shared_ptr<Evaluator> {
        return precision ? precise(*precision, mode()) : mode();
      };
      double seen = 0;
      const std::vector<double> expected = numbers_of(all.front(), evaluator(), &seen);
      for (const Ask& ask : all) {
        CAPTURE(ask.name, &mode - modes.data(), precision ? precision->summary() : "recorded");
        double plainly = 0;
        numbers_of(ask, lazy(), &plainly);
        CHECK(numbers_of(ask, evaluator(), &seen) == expected);
        const bool is_number = std::string_view(ask.name) != "plan_backward" &&
                               std::string_view(ask.name) != "forecast";
        if (is_number) CHECK(std::abs(seen - plainly) <= 0.02 * (1 + std::abs(plainly)));
      }
    }
  }
}

TEST_CASE("a derivative's function may ask for its input while loops record steps on any thread") {
  const tbb::global_control four(tbb::global_control::max_allowed_parallelism, 4);
  const RunOptions options{.threads = 4};
  for (int run = 0; run < 6; ++run) {
    for (const int way : {0, 1, 2, 3}) {
      Tape tape(precise({PrecisionKind::single}, lazy(options)));
      const Var x = tape.parameter(Tensor::normal({32, 32}, 1), "x");
      const Var w = tape.parameter(Tensor::normal({32, 32}, 2, 0, 0.1), "w");
      Var ends = x * 0.0;
      for (int k = 0; k < 4; ++k) {
        const auto step = [w](const Var& u, const StepNumber& n) {
          return n % 2 == 0 ? tanh(matmul(u, w)) : tanh(matmul(u, w)) + u * 0.9;
        };
        ends = ends + scan(x * (1.0 + k), 5, step);
      }
      const CustomOperation copy = copying_operation([&](const Pullback& p) {
        const Var input = p.input(0);
        if (way == 0) input.value();
        if (way == 1) evaluate(input, options);
        if (way == 2) sum(input).item();
        if (way == 3) backward(sum(square(input)), options);
        return p.adjoint();
      });
      const Var loss = sum(square(copy({ends})));
      const Gradients first = backward(loss, options);
      CHECK(same_bits(backward(loss, options)[x], first[x]));
    }
  }
}

TEST_CASE("a derivative's function draws the random numbers that it draws without a precision") {
  const auto numbers_of_derivatives = [](const std::shared_ptr<Evaluator>& evaluator) {
    Tape tape(evaluator);
    tape.set_seed(3);
    const Var w = tape.parameter(Tensor::ones({6}), "w");
    const Var noise = normal(tape, Shape{6});
    const CustomOperation copy = copying_operation(
        [](const Pullback& p) { return p.adjoint() * normal(p.tape(), Shape{6}); });
    const Var loss = sum(copy({w + noise}));
    std::vector<double> numbers;
    for (int run = 0; run < 2; ++run) {
      const Gradients made = backward(loss);
      const Var later = normal(tape, Shape{6});
      for (int i = 0; i < 6; ++i) {
        numbers.insert(numbers.end(), {noise.value().at(i), made[w].at(i), later.value().at(i)});
      }
    }
    return numbers;
  };
  const std::vector<double> expected = numbers_of_derivatives(lazy());
  std::vector<double> distinct = expected;
  std::ranges::sort(distinct);
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  CHECK(distinct.size() == 5 * 6);  // the noise counts once
  CHECK(numbers_of_derivatives(precise({PrecisionKind::single})) == expected);
  CHECK(numbers_of_derivatives(precise({PrecisionKind::single}, eager())) ==
        numbers_of_derivatives(eager()));
}

TEST_CASE("a function that records an operation narrower may read values") {
  const std::vector<std::function<std::shared_ptr<EngineEvaluator>()>> modes = {
      [] { return precise({}); }, [] { return precise({}, eager()); },
      [] { return precise({}, hybrid()); }};
  for (const auto& mode : modes) {
    for (const bool reads_itself : {false, true}) {
      Tape tape(mode());
      const Var w = tape.parameter(Tensor::from({0.5f, -1.0f, 0.25f, 2.0f}, {2, 2}), "w");
      const Var h = matmul(tape.constant(Tensor::from({1.0f, 2.0f}, {1, 2})), w);
      const Var k = tanh(matmul(h, w));
      std::vector<double> seen;
      const CustomOperation copy({.name = "copy",
                                  .forward =
                                      [](const CustomCall& call) {
                                        std::copy_n(call.inputs[0].raw(), call.inputs[0].bytes(),
                                                    call.outputs[0].raw());
                                      },
                                  .vjp = [](const Pullback& p) { p.set(0, p.adjoint()); },
                                  .narrow =
                                      [&](std::span<const Var> inputs, Where) {
                                        if (reads_itself) tape.var(tape.value_count() - 1).value();
                                        seen = {h.value().at(0), inputs[0].value().at(0)};
                                        return std::vector<Var>{inputs[0] * 1.0};
                                      }});
      const auto record = [&] { return backward(sum(copy({k})))[w].at(0); };
      if (reads_itself) {
        CHECK_THROWS_AS(record(), TapeError);
        continue;
      }
      CHECK(std::isfinite(record()));
      CHECK(seen == std::vector<double>{h.value().at(0), k.value().at(0)});
    }
  }
}

}  // namespace
}  // namespace palimpsest::asking_derivatives_test
