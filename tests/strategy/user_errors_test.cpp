#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/data.h"
#include "nn/nn.h"
#include "palimpsest.h"
#include "strategy/execution/choice/memory_forecast.h"
#include "strategy/training/training.h"
#include "tests/catch.h"
#include "tests/error_of.h"

// Mistakes of users, anywhere in the library, are typed errors that name the function called and
// the user's line.

namespace palimpsest::user_errors_test {
namespace {

/// The line of the caller, which may be one of several lines of a call.
std::vector<std::string> here(Where where = Where::current()) {
  std::vector<std::string> lines;
  for (std::uint32_t line = where.line() - 4; line <= where.line() + 4; ++line) {
    lines.push_back("user_errors_test.cpp:" + std::to_string(line));
  }
  return lines;
}

/// Checks that `f` throws a usage error whose message has all of `words` and one of `places`.
template <class F>
void check_refused(F f, std::initializer_list<std::string> words,
                   const std::vector<std::string>& places) {
  check_error(f, words);
  const std::string message = error_of(f);
  INFO(message);
  CHECK(std::ranges::any_of(
      places, [&](const std::string& place) { return message.find(place) != message.npos; }));
}

TEST_CASE("an empty function is an error, not a crash of the standard library") {
  const std::string empty = "is an empty function; give one that";
  const std::vector<Tensor> w{Tensor::ones({2})};
  const std::vector<Tensor> w64{Tensor::ones({2}, DType::f64)};
  Execution execution;
  check_refused([&] { execution.gradients({}, w, w); }, {"[execution] the model", empty}, here());
  check_refused([&] { execution.value({}, w, w); }, {"[execution] the model", empty}, here());
  const ExecutionStrategy staged{.parallelism = ParallelMode::pipeline, .stages = 2};
  check_refused([&] { Execution(staged).gradients({}, w, w); }, {"[execution]", empty}, here());
  check_refused([] { Program::values({}); }, {"[program]", empty}, here());
  check_refused([] { Program::gradients({}); }, {"[program]", empty}, here());
  check_refused([&] { gradcheck({}, w64); }, {"[gradcheck]", empty}, here());
  check_refused([&] { estimate({}, Workload{}); }, {"[estimate]", empty}, here());
  check_refused([&] { recommend(Workload{}); }, {"[recommend]", empty}, here());
  check_refused([&] { forecast_memory({}, Workload{}); }, {"[estimate]", empty}, here());
  check_refused([&] { on_progress(nullptr); }, {"[on_progress]", empty}, here());
  check_refused([&] { minimize_lbfgs(w64, {}); }, {"[lbfgs]", empty}, here());
  check_refused([&] { minimize_lbfgs(std::function<Gradients()>()); }, {"[lbfgs]", empty}, here());
  check_refused([&] { RateSchedule({}); }, {"[schedule] the rate", empty}, here());
  check_refused([&] { Dataset(1, {{"x", {}}}, nullptr); }, {"[dataset]", empty}, here());
  check_refused([&] { CustomOperation({.name = "mine"}); }, {"[mine]", "no forward"}, here());
  using Driver = ReverseDriver<std::vector<double>>;
  check_refused([&] { Driver({.advance = {}, .seed = {}}, {.steps = 1}); },
                {"[reverse]", "functions are missing"}, here());
  const nn::init::Initializer none = nullptr;
  check_error([&] { nn::Parameters().add("weight", {2, 2}, none, {2, 2}); },
              {"[parameters] 'weight'", "empty function as initializer"});
}

TEST_CASE("an empty function of values is an error that names the line of the call") {
  const std::string empty = "is an empty function; give one that";
  Tape tape;
  const Var x = tape.parameter(Tensor::ones({2}));
  const std::vector<Var> xs{x};
  using One = std::function<Var(const Var&)>;
  const auto step = [](const Var& u, const StepNumber&) { return sin(u); };
  const auto goes_on = [](const Var& u) { return less(sum(u), 3); };
  check_refused([&] { checkpoint(Composition(), xs); }, {"[checkpoint]", empty}, here());
  check_refused([&] { checkpoint(One(), x); }, {"[checkpoint]", empty}, here());
  Var (*const pointer)(const Var&) = nullptr;
  check_refused([&] { checkpoint(pointer, x); }, {"[checkpoint]", empty}, here());
  check_refused([&] { scan(xs, 3, {}, LoopBody()); }, {"[scan] the body", empty}, here());
  using Step = std::function<Var(const Var&, const StepNumber&)>;
  check_refused([&] { scan(x, 3, Step()); }, {"[scan] the body", empty}, here());
  using Steps = std::function<std::vector<Var>(std::span<const Var>, const StepNumber&)>;
  check_refused([&] { scan(xs, 3, Steps()); }, {"[scan] the body", empty}, here());
  check_refused([&] { while_loop(x, goes_on, Step()); }, {"[while_loop] the body", empty}, here());
  check_refused([&] { while_loop(x, One(), step); }, {"[while_loop] the condition", empty}, here());
  check_refused([&] { while_loop(xs, LoopCondition(), LoopBody()); },
                {"[while_loop] the condition", empty}, here());
  check_refused([&] { nn::Sequential{One()}(x); }, {"[layer]", empty}, here());
  CHECK(checkpoint([](const Var& u) { return sin(u); }, x).value().elements() == 2);
  CHECK(tape.node_count() <= 2);  // nothing is left of the failed calls
}

TEST_CASE("a run that the body of a loop starts is refused with what to do instead") {
  for (const bool is_eager : {false, true}) {
    Tape tape(is_eager ? eager() : nullptr);
    const Var x = tape.parameter(Tensor::ones({3}));
    const Var outside = sum(x * x);
    const auto refused = [&](const std::string& name, auto call) {
      check_error(
          [&] {
            scan(x, 3, [&](const Var& u, const StepNumber&) {
              call(sum(u * u));
              return sin(u);
            });
          },
          {"[" + name + "] the body or condition of a loop", "gradient()", "value()",
           "call " + name + " before or after the loop", "user_errors_test.cpp"});
    };
    refused("backward", [](const Var& y) { backward(y); });
    refused("backward", [&](const Var&) { backward(outside); });
    refused("evaluate", [](const Var& y) { evaluate(y); });
    refused("evaluate", [&](const Var&) { evaluate(outside); });
    refused("plan_backward", [](const Var& y) { plan_backward(y); });
    check_error(
        [&] {
          while_loop(
              x,
              [](const Var& u) {
                backward(sum(u));
                return less(sum(u), 3);
              },
              [](const Var& u, const StepNumber&) { return u * 2; });
        },
        {"[backward] the body or condition of a loop"});
    // In a run that records steps one by one.
    check_error(
        [&] {
          const Var y = scan(x, 3, [&](const Var& u, const StepNumber& n) {
            if (std::int64_t{n} == 1) backward(outside);
            return sin(u);
          });
          y.value();
        },
        {"[backward] the body or condition of a loop"});
    CHECK(backward(outside)[x].at(0) == 2);
  }
}

TEST_CASE("mistakes in the function of a checkpoint name checkpoint") {
  Tape tape, other;
  const Var x = tape.parameter(Tensor::ones({3}));
  const Var foreign = other.constant(Tensor::ones({3}));
  const std::vector<Var> xs{x};
  using Vars = std::vector<Var>;
  check_refused([&] { checkpoint([](std::span<const Var>) { return Vars(); }, xs); },
                {"[checkpoint] the function returned no value"}, here());
  check_refused([&] { checkpoint([](std::span<const Var>) { return Vars(); }, Vars()); },
                {"[checkpoint] needs at least one argument"}, here());
  check_refused([&] { checkpoint([&](const Var&) { return foreign; }, x); },
                {"[checkpoint]", "different tapes"}, here());
  check_refused([&] { checkpoint([](const Var&) { return Var(); }, x); },
                {"[checkpoint] the function returned a Var without a value"}, here());
  check_refused(
      [&] { checkpoint([&](const Var& u) { return u * tape.parameter(Tensor::ones({3})); }, x); },
      {"[checkpoint] the function records parameter"}, here());
}

TEST_CASE("errors of models name the line of the call that records them") {
  const std::vector<Tensor> batch{Tensor::ones({2, 3})};
  const std::vector<Tensor> empty{Tensor()};
  const std::vector<Tensor> integers{Tensor::zeros({2}, DType::i64)};
  const auto model = [](Tape&, std::span<const Var> p, std::span<const Var> b) {
    return LossAndOutputs(sum(p[0]) + sum(b[0]));
  };
  Execution one;
  check_refused([&] { one.gradients(model, integers, batch); }, {"[parameter]"}, here());
  check_refused([&] { one.gradients(model, batch, empty); }, {"[constant]"}, here());
  check_refused([&] { one.value(model, empty, batch); }, {"[parameter]"}, here());
  const Workload workload{.model = model, .parameters = integers, .batch = batch};
  check_refused([&] { estimate({}, workload); }, {"[parameter]"}, here());
  check_refused([&] { recommend(workload); }, {"[parameter]"}, here());
  check_refused([&] { forecast_memory({}, workload); }, {"[parameter]"}, here());
  check_error([&] { gradcheck([](auto xs) { return sum(xs[0]); }, empty); },
              {"user_errors_test.cpp"});
  check_refused([&] { gradcheck([](auto xs) { return greater(xs[0], 0); }, {}, {.order = 0}); },
                {"[gradcheck] order is 0"}, here());
  check_error(
      [&] { one.gradients([](Tape&, auto, auto) { return LossAndOutputs(Var()); }, batch, batch); },
      {"[execution] the model does not return", "user_errors_test.cpp"});

  const auto layer = [](const Var& x, std::span<const Var>, int) { return LayerOutput(x * x); };
  LayerCheckpointer layers({.layer = {{{}, {}}, layer}}, {});
  layers.forward(Tensor::ones({2, 2}));
  check_error([&] { layers.backward([](const Var& y) { return LossAndOutputs(argmax(y)); }); },
              {"[layers] the loss", "user_errors_test.cpp"});
}

TEST_CASE("seeds and tangents have the types of their values, used or not") {
  Tape tape;
  const Var x = tape.parameter(Tensor::ones({3}, DType::f64));
  const Var other = tape.parameter(Tensor::ones({3}, DType::f64));
  const Var narrow = tape.constant(Tensor::ones({3}));
  const Var longer = tape.constant(Tensor::ones({4}, DType::f64));
  const Var good = tape.constant(Tensor::ones({3}, DType::f64));
  const Var y = x * x;
  const std::vector<Var> xs{x}, ys{y}, none;
  for (const Var& by : {x, other}) {  // y does not depend on the second one
    for (const Var& seed : {narrow, longer}) {
      check_refused([&] { vjp({&y, 1}, {&by, 1}, {&seed, 1}); }, {"[gradient] seed 0"}, here());
      check_refused([&] { jvp(y, by, seed); }, {"[jvp] tangent 0"}, here());
      check_refused([&] { hvp(y, by, seed); }, {"[hvp] direction 0"}, here());
    }
    CHECK(jvp(y, by, good).value().at(0) == (by == x ? 2 : 0));
  }
  check_refused([&] { jvp(ys, xs, none); }, {"[jvp] 0 tangents for 1 variables"}, here());
  check_refused([&] { hvp(y, xs, none); }, {"[hvp] 0 directions for 1 variables"}, here());
  check_refused([&] { jvp(ys, xs, std::vector<Var>{good, good}); }, {"[jvp] 2 tangents"}, here());
  check_refused([&] { jvp(y, x, Var()); }, {"[jvp]"}, here());
}

TEST_CASE("numbers that make no sense are refused") {
  check_refused([] { Meter().allocate(-100); }, {"[meter]", "-100 bytes"}, here());
  check_refused([] { Meter().count(Tensor::ones({1}).buffer(), -1); }, {"[meter]"}, here());
  Tape tape;
  check_refused([&] { tape.var(5); }, {"[tape] there is no value 5; the tape has 0"}, here());
  tape.constant(Tensor::ones({1}));
  CHECK(tape.var(0).value().item() == 1);
  check_refused([&] { tape.var(1); }, {"the tape has 1"}, here());
  float numbers[8];
  const RandomStream stream{1, 0, 0};
  check_error([&] { fill_uniform(stream, numbers, -1); }, {"[fill_uniform]", "-1 numbers"});
  check_error([&] { fill_uniform(stream, numbers, 4, -4); }, {"[fill_uniform]", "number -4"});
  check_error([&] { fill_uniform(stream, numbers, 4, 3); }, {"multiple of 4"});
  const RateSchedule falling([](std::int64_t step) { return 1.0 - static_cast<double>(step); });
  CHECK(falling(1) == 0);
  check_error([&] { falling(2); }, {"[schedule] the rate of step 2 is -1"});
  check_error([] { RateSchedule([](std::int64_t) { return std::nan(""); }).at(0); }, {"nan"});
  const Dataset data = in_memory({{"x", Tensor::ones({4, 1})}});
  check_error([&] { DataLoader(data, {.prefetch = -1}); }, {"[data_loader] prefetch is -1"});
  CHECK(DataLoader(data, {.prefetch = unlimited}).next().has_value());
}

}  // namespace
}  // namespace palimpsest::user_errors_test
