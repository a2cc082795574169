#include <functional>
#include <sstream>

#include "palimpsest.h"
#include "tests/catch.h"
#include "tests/error_of.h"

namespace palimpsest::frozen_values_test {
namespace {

/// Records a program that calls `look` with a parameter, a constant and a value of both.
Program recorded(const std::function<void(const Var&, const Var&, const Var&)>& look,
                 const Precision* precision = nullptr) {
  const auto record = [&](Tape& tape) {
    const Var x = tape.parameter(Tensor::from<double>({1, 2}, {2}), "x");
    const Var c = tape.constant(Tensor::from<double>({3, 4}, {2}), "c");
    const Var y = x * c;
    look(x, c, y);
    return std::vector<Var>{y};
  };
  return precision == nullptr ? Program::values(record) : Program::values(record, *precision);
}

TEST_CASE("a value that depends on a leaf cannot be read while a program is recorded") {
  const auto item = [](const Var& v) { sum(v).item(); };
  const auto value = [](const Var& v) { v.value(); };
  const auto print = [](const Var& v) { std::ostringstream() << v; };
  const Precision mixed{PrecisionKind::mixed};
  for (const Precision* const precision : {static_cast<const Precision*>(nullptr), &mixed}) {
    for (const auto& look : {std::function<void(const Var&)>(item), {value}, {print}}) {
      for (int which = 0; which < 3; ++which) {
        const auto record = [&] {
          recorded(
              [&](const Var& x, const Var& c, const Var& y) {
                look(which == 0 ? x : which == 1 ? c : y);
              },
              precision);
        };
        CHECK_THROWS_AS(record(), TapeError);
        check_error(record, {"[value]", "a Program is being recorded", "ask the Runner",
                             "while_loop()", "frozen_values_test.cpp:"});
      }
    }
  }
}

TEST_CASE("a derivative's function cannot read such a value either") {
  const Precision single{PrecisionKind::single};
  for (const Precision* const precision : {static_cast<const Precision*>(nullptr), &single}) {
    for (const auto& slope : std::vector<std::function<Var(const Pullback&)>>{
             [](const Pullback& p) { return p.tape().constant(p.input(0).value().clone()); },
             [](const Pullback& p) { return p.adjoint() * p.input(0).item(); },
             [](const Pullback& p) {
               return p.tape().constant(jacobian(p.input(0) * p.input(0), p.input(0)));
             }}) {
      const CustomOperation operation(
          {.name = "half_of_square",
           .forward =
               [](const CustomCall& call) {
                 const double x = call.inputs[0].at(0);
                 call.outputs[0].data<double>()[0] = x * x / 2;
               },
           .vjp = [&](const Pullback& p) { p.set(0, p.adjoint() * slope(p)); }});
      const auto record = [&](Tape& tape) {
        return operation({tanh(tape.parameter(Tensor::scalar(3.0, DType::f64), "w"))});
      };
      const auto make = [&] {
        precision == nullptr ? Program::gradients(record) : Program::gradients(record, *precision);
      };
      CHECK_THROWS_AS(make(), TapeError);
      check_error(make, {"a Program is being recorded"});
    }
  }
}

TEST_CASE("derivatives and runs that would be frozen name what to record in their place") {
  check_error([] { recorded([](const Var& x, const Var&, const Var& y) { jacobian(y, x); }); },
              {"[jacobian]", "depends on", "gradient()", "jvp()"});
  check_error([] { recorded([](const Var& x, const Var&, const Var& y) { hessian(sum(y), x); }); },
              {"[jacobian]", "depends on", "gradient()", "hessian()"});
  check_error([] { recorded([](const Var&, const Var&, const Var& y) { backward(sum(y)); }); },
              {"[backward]", "a Program is being recorded", "gradient()", "Runner"});
  check_error([] { recorded([](const Var&, const Var&, const Var& y) { evaluate(y); }); },
              {"[evaluate]", "a Program is being recorded"});
  // A function that checkpoint records is part of the program.
  check_error(
      [] {
        recorded([](const Var& x, const Var&, const Var&) {
          checkpoint([](const Var& y) { return y * sum(y).item(); }, x);
        });
      },
      {"[value]", "a Program is being recorded"});
}

TEST_CASE("random numbers cannot be read while a program is recorded") {
  check_error(
      [] {
        recorded([](const Var& x, const Var&, const Var&) {
          uniform(x.tape(), {2}, 0, 1, DType::f64).value();
        });
      },
      {"[value]", "differs from run to run"});
}

TEST_CASE("numbers of the program itself can be read") {
  recorded([](const Var& x, const Var&, const Var&) {
    const Var two = full(x.tape(), {2}, 2, DType::f64);
    CHECK(sum(two * two).item() == 8);
    CHECK(jacobian(two * two, two).at(0) == 4);
  });
}

TEST_CASE("operations that count elements are recorded, since each run checks the count") {
  Var x;
  const Program program = Program::values([&](Tape& tape) {
    x = tape.constant(Tensor::from<double>({1, -2, 1}, {3}));
    return std::vector<Var>{nonzero(x > 0.0), masked_select(x, x > 0.0), unique(x).values,
                            bincount(cast(x * x, DType::i64)), x[x > 0.0]};
  });
  Runner runner(program);
  runner.run();
  CHECK(runner.value(program.outputs()[2]).at(1) == 1);
  runner.bind(x, Tensor::from<double>({1, 2, 3}, {3}));
  CHECK_THROWS_AS(runner.run(), ArgumentError);
}

TEST_CASE("the body of a loop may look at values, since each run records it again") {
  Var x;
  const Program program = Program::values([&](Tape& tape) {
    x = tape.constant(Tensor::from<double>({1}, {1}));
    return std::vector<Var>{
        scan(x, 3, [](const Var& y, const StepNumber&) { return y.item() < 3 ? y * 2.0 : y; })};
  });
  Runner runner(program);
  for (const double start : {1.0, 5.0}) {
    runner.bind(x, Tensor::from<double>({start}, {1}));
    runner.run();
    CHECK(runner.value(program.outputs()[0]).item() == (start == 1 ? 4 : 5));
  }
}

TEST_CASE("after the recording, or after an error in it, tapes can be read as before") {
  CHECK_THROWS(recorded([](const Var&, const Var&, const Var& y) { y.value(); }));
  Tape tape;
  const Var x = tape.parameter(Tensor::from<double>({1, 2}, {2}));
  CHECK(jacobian(x * x, x).at(3) == 4);
}

}  // namespace
}  // namespace palimpsest::frozen_values_test
