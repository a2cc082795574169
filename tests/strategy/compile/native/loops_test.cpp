// Steps of loops as single functions, forward and backward.
#include <functional>
#include <optional>
#include <stop_token>
#include <vector>

#include "palimpsest.h"
#include "tests/catch.h"
#include "tests/strategy/compile/native/native_results.h"

namespace palimpsest {
namespace {

/// Records a loss, and lists the parameters.
using Loss = std::function<Var(Tape&, std::vector<Var>& parameters)>;

struct Found {
  std::vector<Tensor> gradients;
  Report report;
};

Found gradients_of(const Loss& record, const RunOptions& options) {
  Tape tape;
  std::vector<Var> parameters;
  const Var loss = record(tape, parameters);
  const Gradients gradients = backward(loss, options);
  Found found{{gradients.loss().clone()}, gradients.report()};
  for (const Var& each : parameters) found.gradients.push_back(gradients[each].clone());
  return found;
}

/// Compares gradients with those of the interpreter, within several budgets and on two threads.
void check_gradients(const Loss& record, std::uint32_t native_steps) {
  for (const Bytes budget : {unlimited, Bytes{400_KiB}}) {
    for (const int threads : {1, 2}) {
      CAPTURE(budget, threads);
      RunOptions options{.memory_budget = budget, .threads = threads, .native = NativeCode::off};
      const Found expected = gradients_of(record, options);
      options.native = NativeCode::at_once;
      const Found found = gradients_of(record, options);
      REQUIRE(found.gradients.size() == expected.gradients.size());
      for (std::size_t i = 0; i < found.gradients.size(); ++i) {
        CHECK(same_bits(found.gradients[i], expected.gradients[i]));
      }
      INFO(found.report.native.problem);
      CHECK(found.report.native.steps >= native_steps);
      CHECK(found.report.measured_live_peak == expected.report.measured_live_peak);
    }
  }
}

TEST_CASE("a step of more elements than are computed at a time", "[native]") {
  check_gradients(
      [](Tape& tape, std::vector<Var>& parameters) {
        const Var start = tape.parameter(numbers({3000}, DType::f64, 1));
        const Var c = tape.parameter(Tensor::scalar(0.2, DType::f64));
        parameters = {start, c};
        const Var end = scan(start, 5, [&](const Var& u, const StepNumber&) {
          return tanh(u + c * sum(u * u) * exp(-u));
        });
        return sum(end * end);
      },
      2);
}

TEST_CASE("a scan of a stencil", "[native]") {
  check_gradients(
      [](Tape& tape, std::vector<Var>& parameters) {
        const Var start = tape.parameter(numbers({400}, DType::f64, 1));
        const Var c = tape.parameter(Tensor::scalar(0.2, DType::f64));
        parameters = {start, c};
        const Var end = scan(start, 60, [&](const Var& u, const StepNumber&) {
          const Var left = roll(u, 1, 0);
          return u - c * (u - left) + 0.1 * (roll(u, -1, 0) - 2.0 * u + left);
        });
        return sum(end * end);
      },
      2);
}

TEST_CASE("a scan in a checkpoint", "[native]") {
  const auto record = [](Tape& tape, std::vector<Var>& parameters) {
    const Var start = tape.parameter(numbers({400}, DType::f64, 1));
    const Var c = tape.parameter(Tensor::scalar(0.2, DType::f64));
    parameters = {start, c};
    const Var end = checkpoint(
        [](const Var& first, const Var& rate) {
          return scan(first, 30, [&](const Var& u, const StepNumber&) {
            return u - rate * (u - roll(u, 1, 0)) + 0.01 * tanh(u);
          });
        },
        start, c);
    return sum(end * end);
  };
  check_gradients(record, 2);
  Tape tape;
  std::vector<Var> parameters;
  const Var loss = record(tape, parameters);
  CHECK(evaluate({loss}, {.threads = 1, .native = NativeCode::at_once}).native.steps == 1);
}

TEST_CASE("a scan of a stencil on a grid", "[native]") {
  for (const std::int64_t columns : {20, 40, 100}) {
    CAPTURE(columns);
    check_gradients(
        [&](Tape& tape, std::vector<Var>& parameters) {
          const Var u = tape.parameter(numbers({12, columns}, DType::f64, 1));
          const Var v = tape.parameter(numbers({12, columns}, DType::f64, 2));
          const Var c = tape.parameter(Tensor::scalar(0.2, DType::f64));
          parameters = {u, v, c};
          const std::vector<Var> end =
              scan({u, v}, 20, [&](std::span<const Var> s, const StepNumber&) {
                const Var flow = s[0] * (1.0 + 0.01 * (s[1] + roll(s[1], -1, 1)));
                const Var next = 0.1 * (s[1] - c * (flow - roll(flow, 1, 1) + roll(flow, 3, 0)));
                return std::vector<Var>{0.1 * s[0] + next - roll(next, -1, 1), next};
              });
          return sum(end[0] * end[1]);
        },
        2);
  }
}

TEST_CASE("a scan of a few numbers, with inputs and outputs", "[native]") {
  check_gradients(
      [](Tape& tape, std::vector<Var>& parameters) {
        const Var x = tape.parameter(Tensor::scalar(1.5, DType::f64));
        const Var y = tape.parameter(Tensor::scalar(-0.5, DType::f64));
        const Var rate = tape.parameter(Tensor::scalar(0.3, DType::f64));
        const Var forces = tape.parameter(numbers({50}, DType::f64, 1));
        parameters = {x, y, rate, forces};
        const LoopResult made = scan(
            {x, y}, 50, {forces},
            [&](std::span<const Var> s, std::span<const Var> inputs, const StepNumber&) {
              const Var product = s[0] * s[1];
              return LoopStep{{s[1] - 0.1 * product, rate * s[0] + 0.01 * inputs[0]}, {product}};
            });
        return made.state[0] * made.state[1] + sum(made.outputs[0]);
      },
      2);
}

TEST_CASE("a scan with functions, products and step numbers", "[native]") {
  check_gradients(
      [](Tape& tape, std::vector<Var>& parameters) {
        const Var start = tape.parameter(numbers({1, 24}, DType::f32, 1));
        const Var weight = tape.parameter(numbers({24, 24}, DType::f32, 2));
        parameters = {start, weight};
        const Var end = scan(start, 40, [&](const Var& h, const StepNumber& step) {
          return tanh(matmul(h, weight * 0.05) + h * 0.5 + 0.01 * step.as(DType::f32));
        });
        return sum(end * end);
      },
      1);
}

TEST_CASE("a scan of an LSTM cell", "[native]") {
  for (const std::int64_t batch : {1, 3}) {
    CAPTURE(batch);
    check_gradients(
        [&](Tape& tape, std::vector<Var>& parameters) {
          const auto parameter = [&](const Shape& shape, DType dtype) {
            const auto shift = static_cast<double>(parameters.size() + 1);
            parameters.push_back(tape.parameter(numbers(shape, dtype, shift)));
            return parameters.back() * 0.1;
          };
          const CellParameters cell{parameter({8, 48}, DType::f32), parameter({12, 48}, DType::f32),
                                    parameter({48}, DType::f32)};
          const Var still = tape.constant(Tensor::zeros({batch, 12}, DType::f32));
          const Var none = tape.constant(Tensor::scalar(0, DType::f32));
          const Var sequence = parameter({30, batch, 8}, DType::f32);
          const LoopResult made =
              scan({still, still, none}, 30, {sequence},
                   [&](std::span<const Var> s, std::span<const Var> inputs, const StepNumber&) {
                     const LstmState next = lstm_cell(inputs[0], {s[0], s[1]}, cell);
                     return LoopStep{{next.h, next.c, s[2] + sum(next.h * next.h)}};
                   });
          return made.state[2];
        },
        2);
  }
}

TEST_CASE("a scan whose steps draw random numbers", "[native]") {
  check_gradients(
      [](Tape& tape, std::vector<Var>& parameters) {
        const Var start = tape.parameter(numbers({1, 24}, DType::f32, 1));
        const Var weight = tape.parameter(numbers({24, 24}, DType::f32, 2));
        parameters = {start, weight};
        const Var end = scan(start, 40, [&](const Var& h, const StepNumber&) {
          return tanh(dropout(matmul(h, weight * 0.05), 0.5) + h * 0.5 + 0.01);
        });
        return sum(end * end);
      },
      1);
}

TEST_CASE("a loop of native steps that is stopped runs again", "[native]") {
  for (const bool has_products : {false, true}) {
    CAPTURE(has_products);
    Tape tape;
    const Var start = tape.parameter(numbers({1, 8}, DType::f64, 1));
    const Var weight = tape.parameter(numbers({8, 8}, DType::f64, 2));
    const Var factors = tape.parameter(numbers({1, 8}, DType::f64, 3));
    const Var end = scan(start, 200, [&](const Var& h, const StepNumber&) {
      const Var next = has_products ? matmul(h, weight) : h * factors;
      return 0.5 * h + 0.1 * next * h - 0.01;
    });
    const Var loss = sum(end * end);
    RunOptions options{.threads = 1, .native = NativeCode::off};
    const Tensor expected = backward(loss, options)[start].clone();
    options.native = NativeCode::at_once;
    std::stop_source source;
    std::uint64_t last = 0;
    RunOptions stopped = options;
    stopped.stop = source.get_token();
    stopped.progress = on_progress([&](const RunProgress& progress) {
      last = progress.loop_step;
      if (last >= 120) source.request_stop();
    });
    CHECK_THROWS_AS(backward(loss, stopped), StoppedError);
    CHECK(last >= 120);
    CHECK(last <= 122);
    CHECK(same_bits(backward(loss, options)[start], expected));
  }
}

TEST_CASE("a program with loops runs again, with other tensors and random streams", "[native]") {
  struct Recorded {
    Var start;
    Var rates;
    std::optional<palimpsest::Program> program;
  };
  const auto record = [](const RunOptions& options) {
    Recorded made;
    made.program = palimpsest::Program::gradients(
        [&](Tape& tape) {
          made.start = tape.parameter(numbers({16}, DType::f64, 1));
          const Var rates = made.rates = tape.parameter(numbers({16}, DType::f64, 2));
          const Var end = scan(made.start, 30, [&](const Var& x, const StepNumber&) {
            const Var inner = scan(x, 8, [&](const Var& y, const StepNumber&) {
              return 0.9 * y + 0.01 * rates * roll(y, 1, 0);
            });
            return dropout(inner, 0.25) * 0.5 + 0.1;
          });
          return sum(end * end);
        },
        options);
    return made;
  };
  for (const Bytes budget : {unlimited, Bytes{5_KiB}}) {
    for (const int threads : {1, 2}) {
      CAPTURE(budget, threads);
      RunOptions options{.memory_budget = budget, .threads = threads, .native = NativeCode::off};
      const Recorded interpreted = record(options);
      options.native = NativeCode::at_once;
      const Recorded native = record(options);
      Runner expected(*interpreted.program);
      Runner found(*native.program);
      Runner other(*native.program);
      other.set_part(0);  // draws what the first one draws
      for (int run = 0; run < 4; ++run) {
        CAPTURE(run);
        const auto gradients_of = [&](Runner& runner, const Recorded& of) {
          runner.bind(of.start, numbers({16}, DType::f64, 3 + run));
          runner.bind(of.rates, numbers({16}, DType::f64, 20 - run));
          runner.run();
          const Gradients made = runner.gradients();
          return std::pair(made[of.start].clone(), made[of.rates].clone());
        };
        const auto [of_start, of_rates] = gradients_of(expected, interpreted);
        for (Runner* const runner : {&found, &other}) {
          const auto gradients = gradients_of(*runner, native);
          CHECK(same_bits(gradients.first, of_start));
          CHECK(same_bits(gradients.second, of_rates));
        }
      }
    }
  }
}

TEST_CASE("a program with a loop runs again after a run that failed", "[native]") {
  struct Failure {};
  std::optional<std::uint64_t> fails_at;
  Var start;
  RunOptions options{.threads = 1, .native = NativeCode::at_once};
  options.progress = on_progress([&](const RunProgress& progress) {
    if (fails_at && progress.loop_step >= *fails_at) throw Failure();
  });
  const auto program = palimpsest::Program::gradients(
      [&](Tape& tape) {
        start = tape.parameter(numbers({16}, DType::f64, 1));
        const Var end = scan(start, 200, [](const Var& x, const StepNumber&) {
          return 0.9 * x + 0.01 * dropout(roll(x, 1, 0), 0.5);
        });
        return sum(end * end);
      },
      options);
  Runner whole(program);
  Runner interrupted(program);
  interrupted.set_part(0);  // draws what the other one draws
  for (const std::uint64_t step : {0, 1, 20, 150}) {
    CAPTURE(step);
    fails_at = step;
    CHECK_THROWS_AS(interrupted.run(), Failure);
    fails_at.reset();
    interrupted.bind(start, numbers({16}, DType::f64, 1));
    interrupted.run();
    whole.run();
    CHECK(same_bits(interrupted.gradients()[start], whole.gradients()[start]));
  }
}

TEST_CASE("a while loop", "[native]") {
  std::vector<Tensor> ends;
  for (const NativeCode native : {NativeCode::off, NativeCode::at_once}) {
    Tape tape;
    const Var start = tape.constant(numbers({300}, DType::f64, 1));
    Var end = while_loop(
        start, [](const Var& u) { return sum(u * u) > 1.0; },
        [](const Var& u, const StepNumber&) { return u * 0.9 - 0.01 * roll(u, 1, 0); });
    evaluate({&end, 1}, {.threads = 1, .native = native});
    ends.push_back(end.value().clone());
  }
  CHECK(same_bits(ends[0], ends[1]));
}

}  // namespace
}  // namespace palimpsest
