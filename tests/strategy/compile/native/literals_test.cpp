// Numbers that native code names, and programs that differ only in numbers.
#include <chrono>
#include <thread>

#include "palimpsest.h"
#include "tests/catch.h"
#include "tests/strategy/compile/native/native_results.h"

namespace palimpsest {
namespace {

/// Operations with a number, and its derivative. All have the same structure.
Gradients gradient_with(Tape& tape, Var& x, double number, const RunOptions& options,
                        DType dtype = DType::f64) {
  tape.clear();
  x = tape.parameter(numbers({500}, dtype, 1));
  const Var y = (x * number + exp(x)) / number - (x - number) * x;
  return backward(sum(y * y), options);
}

const RunOptions at_once{.threads = 1, .native = NativeCode::at_once};
const RunOptions interpreted{.threads = 1, .native = NativeCode::off};

TEST_CASE("programs that differ only in numbers get results of their own numbers", "[native]") {
  for (const DType dtype : {DType::f64, DType::f32}) {
    Tape tape;
    Tape other;
    Var x;
    Var z;
    bool has_code = false;
    for (const double number : {2.0, 2.0, 3.0, 2.0, -1.0, 0.25, 4.0, 1.0, -0.5, 0.3, 0x1p127,
                                0x1p-126, 0x1p-149, 1e-320}) {
      CAPTURE(name_of(dtype), number);
      const Gradients found = gradient_with(tape, x, number, at_once, dtype);
      has_code = has_code || found.report().native.groups > 0;
      const Gradients expected = gradient_with(other, z, number, interpreted, dtype);
      CHECK(same_values(found[x], expected[z]));
    }
    CHECK(has_code);
  }
}

TEST_CASE("tapes of one evaluator run in turns, each with its own numbers", "[native]") {
  const std::shared_ptr<Evaluator> evaluator = lazy(at_once);
  Tape two(evaluator);
  Tape three(evaluator);
  const auto record = [](Tape& tape, double number) {
    const Var x = tape.constant(numbers({300}, DType::f64, 1));
    return x * number + exp(x / number);
  };
  const std::vector<Var> values{record(two, 2), record(three, 3)};
  std::vector<Tensor> expected;
  for (const double number : {2.0, 3.0}) {
    Tape tape(lazy(interpreted));
    expected.push_back(record(tape, number).value().clone());
  }
  for (int turn = 0; turn < 6; ++turn) {
    const Var& value = values[static_cast<std::size_t>(turn) % 2];
    CAPTURE(turn);
    CHECK(same_values(value.value(), expected[static_cast<std::size_t>(turn) % 2]));
    value.tape().drop(value.id());
  }
}

TEST_CASE("code does not depend on numbers that gain nothing as literals", "[native]") {
  // True if the second program has retired the code of the first one.
  const auto retires = [](auto record) {
    Tape tape;
    Bytes bytes = 0;
    for (const double number : {2.0, 3.0}) {
      tape.clear();
      const Var x = tape.parameter(numbers({200}, DType::f64, 1));
      const Report::Native native =
          backward(sum(square(record(x, number))), at_once).report().native;
      REQUIRE(native.groups > 0);
      if (number == 3.0) return native.code > bytes;
      bytes = native.code;
    }
    return false;
  };
  CHECK_FALSE(retires([](const Var& x, double number) { return x * x + number; }));
  CHECK_FALSE(retires([](const Var& x, double number) { return maximum(x * x, number) * x; }));
  CHECK(retires([](const Var& x, double number) { return x * number + exp(x); }));
  CHECK(retires([](const Var& x, double number) { return x / number + exp(x); }));
}

TEST_CASE("code for other numbers is made in the background", "[native]") {
  const RunOptions soon{
      .threads = 1, .native = NativeCode::automatic, .machine = {.flops_per_second = 1e3}};
  Tape tape;
  Tape other;
  Var x;
  Var z;
  for (const double number : {2.0, 0.3, 4.0}) {
    CAPTURE(number);
    const Tensor expected =
        gradient_with(other, z, number, {.threads = 1, .native = NativeCode::off})[z].clone();
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(2);
    bool has_code = false;
    while (!has_code && std::chrono::steady_clock::now() < end) {
      const Gradients found = gradient_with(tape, x, number, soon);
      REQUIRE(same_values(found[x], expected));
      const Report::Native& native = found.report().native;
      has_code = native.groups > 0 || native.problem.find("slower") != std::string::npos;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    CHECK(has_code);
  }
}

TEST_CASE("steps of loops that differ only in numbers get results of their own", "[native]") {
  const auto last = [](double number, NativeCode native) {
    const palimpsest::Program program = palimpsest::Program::values(
        [&](Tape& tape) {
          const Var start = tape.constant(numbers({40}, DType::f64, 1));
          return std::vector<Var>{scan(start, 6, [&](const Var& u, const StepNumber&) {
            return u / number - sin(u) * number;
          })};
        },
        {.threads = 1, .native = native});
    Runner runner(program);
    runner.run();
    return runner.value(program.outputs()[0]).clone();
  };
  for (const double number : {2.0, 3.0, 2.0, 0.5}) {
    CAPTURE(number);
    CHECK(same_values(last(number, NativeCode::at_once), last(number, NativeCode::off)));
  }
}

}  // namespace
}  // namespace palimpsest
