#include "tests/catch.h"
#include "tests/error_of.h"
#include "tests/strategy/loops/resumed_loop.h"
#include "tests/temporary_directory.h"

// Journals of loops whose state does not show what their outputs depend on.

namespace palimpsest::loop_resume_random_test {

using namespace palimpsest::tests;

namespace {

LoopOptions options_for(const std::string& directory) {
  return recorded_often({.resume = directory});
}

/// Outputs with noise, from a state without.
Var noisy(const Var& u, const std::string& directory) {
  return scan(
             {u}, 12, {},
             [](std::span<const Var> xs, std::span<const Var>, const StepNumber&) {
               return LoopStep{{sin(xs[0])}, {dropout(xs[0], 0.5)}};
             },
             options_for(directory))
      .outputs[0];
}

/// Outputs whose bound no state shows.
Tensor bounded(double bound, const std::string& directory, const RunOptions& run = {}) {
  Tape tape;
  const Var u = tape.parameter(wave(10));
  const LoopResult made = scan(
      {u}, 12, {},
      [&](std::span<const Var> xs, std::span<const Var>, const StepNumber&) {
        return LoopStep{{sin(xs[0])}, {clamp_min(xs[0], bound)}};
      },
      options_for(directory));
  return backward(sum(made.outputs[0] * made.outputs[0]), run)[u];
}

}  // namespace

TEST_CASE("loops, resume: a cleared tape and a later run draw other random numbers") {
  const auto cleared = [](const std::string& directory) {
    Tape tape;
    std::vector<Tensor> found;
    for (int run = 0; run < 2; ++run) {
      tape.clear();
      const Var u = tape.parameter(wave(10));
      const Var outputs = noisy(u, directory);
      found.push_back(backward(sum(outputs * outputs))[u].clone());
      found.push_back(outputs.value().clone());
    }
    return found;
  };
  const auto in_program = [](const std::string& directory) {
    Var u;
    const Program program = Program::gradients([&](Tape& tape) {
      u = tape.parameter(wave(10));
      const Var outputs = noisy(u, directory);
      return sum(outputs * outputs);
    });
    Runner runner(program);
    std::vector<Tensor> found;
    for (int run = 0; run < 2; ++run) {
      runner.run();
      found.push_back(runner.gradients()[u].clone());
    }
    return found;
  };
  const auto check = [](auto run) {
    const TemporaryDirectory directory(quick_folder());
    const std::vector<Tensor> expected = run("");
    const std::vector<Tensor> found = run(directory.path());
    CHECK_FALSE(same_bits(expected.front(), expected[expected.size() / 2]));
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK(same_bits(found[i], expected[i]));
  };
  check(cleared);
  check(in_program);
}

TEST_CASE("loops, resume: without random numbers, another run of the program may continue") {
  const TemporaryDirectory directory(quick_folder());
  const auto found = [&](int clears, const RunOptions& run) {
    Tape tape;
    for (int i = 0; i < clears; ++i) tape.clear();
    const Var u = tape.parameter(wave(10));
    const Var x = scan(
        u, 12, [](const Var& x, const StepNumber&) { return sin(x); },
        options_for(directory.path()));
    return backward(sum(x), run).report().loops.at(0).resumed;
  };
  REQUIRE(is_stopped_after(5, [&](std::stop_token stop, auto progress) {
    found(3, {.stop = std::move(stop), .progress = std::move(progress)});
  }));
  CHECK(found(0, {}) > 0);
}

TEST_CASE("loops, resume: attributes belong to the identity, also where no result shows them") {
  const TemporaryDirectory directory(quick_folder());
  REQUIRE(is_stopped_after(5, [&](std::stop_token stop, auto progress) {
    bounded(0.4, directory.path(), {.stop = std::move(stop), .progress = std::move(progress)});
  }));
  check_error([&] { bounded(0.5, directory.path()); },
              {"of another run: it has operation ", " of a step, clamp, with the hash "});
  CHECK(same_bits(bounded(0.4, directory.path()), bounded(0.4, "")));
  CHECK(same_bits(bounded(0.5, directory.path()), bounded(0.5, "")));
}

TEST_CASE("loops, resume: attributes in the body of a loop in a step, and in a condition") {
  const auto found = [](double bound, double least, const std::string& directory,
                        const RunOptions& run) {
    Tape tape;
    const Var u = tape.parameter(wave(10));
    const Var x = while_loop(
        u, [&](const Var& x) { return sum(x) > least; },
        [&](const Var& x, const StepNumber&) {
          return scan(0.97 * x, 3,
                      [&](const Var& y, const StepNumber&) { return clamp_min(y, bound); });
        },
        options_for(directory));
    return backward(sum(x), run)[u].clone();
  };
  const TemporaryDirectory directory(quick_folder());
  REQUIRE(is_stopped_after(5, [&](std::stop_token stop, auto progress) {
    found(-2, 4, directory.path(), {.stop = std::move(stop), .progress = std::move(progress)});
  }));
  check_error([&] { found(-3, 4, directory.path(), {}); }, {" of a step, scan, with the hash "});
  check_error([&] { found(-2, 3.9, directory.path(), {}); }, {" of a condition, "});
  CHECK(same_bits(found(-2, 4, directory.path(), {}), found(-2, 4, "", {})));
}

TEST_CASE("loops, resume: results of a user's function in the first step belong to the identity") {
  const auto found = [](double factor, const std::string& directory, const RunOptions& run) {
    const CustomOperation scaled(
        {.name = "scaled",
         .forward =
             [factor](const CustomCall& call) {
               for (std::int64_t i = 0; i < call.inputs[0].elements(); ++i) {
                 const auto at = static_cast<std::size_t>(i);
                 call.outputs[0].data<double>()[at] = factor * call.inputs[0].data<double>()[at];
               }
             },
         .vjp = [factor](const Pullback& p) { p.set(0, p.adjoint(0) * factor); }});
    Tape tape;
    const Var u = tape.parameter(wave(10));
    const Var x = scan(
        u, 12, [&](const Var& x, const StepNumber&) { return sin(scaled({x})); },
        options_for(directory));
    return backward(sum(x), run)[u].clone();
  };
  const TemporaryDirectory directory(quick_folder());
  REQUIRE(is_stopped_after(5, [&](std::stop_token stop, auto progress) {
    found(0.5, directory.path(), {.stop = std::move(stop), .progress = std::move(progress)});
  }));
  check_error([&] { found(0.6, directory.path(), {}); },
              {"of another run: it has a first step that makes results with the hash "});
  CHECK(same_bits(found(0.5, directory.path(), {}), found(0.5, "", {})));
}

}  // namespace palimpsest::loop_resume_random_test
