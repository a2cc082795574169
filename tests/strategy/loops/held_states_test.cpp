#include "tests/cases.h"
#include "tests/catch.h"
#include "tests/error_of.h"
#include "tests/strategy/loops/loops.h"
#include "tests/temporary_directory.h"

namespace palimpsest::held_states_test {
namespace {

Tensor gradient_of_ring(std::int64_t steps, DType dtype, const LoopOptions& loop,
                        std::uint32_t* states = nullptr, Bytes budget = unlimited) {
  Tape tape;
  const Var u = tape.parameter(wave(1'000, dtype));
  const Var speed = tape.parameter(number(0.2, dtype));
  const Var end =
      scan(u, steps, [&](const Var& x, const StepNumber&) { return ring_step(x, speed); }, loop);
  const Gradients gradients = backward(sum(end * end), {.memory_budget = budget, .threads = 1});
  CHECK(gradients.report().measured_peak <= budget);
  if (states != nullptr) *states = gradients.report().loops.at(0).states;
  return gradients[u].to(DType::f64);
}

TEST_CASE("states kept in half the bytes: twice as many, and gradients nearly right") {
  const TemporaryDirectory directory;
  for (const bool spill : {false, true}) {
    const LoopOptions exact{.spill = spill ? directory.path() : "", .disk_costs = DiskCosts{3, 2}};
    LoopOptions half = exact;
    half.codec = Codec::half;
    LoopOptions half_f16 = exact;
    half_f16.codec = Codec::half_f16;
    struct Row {
      DType dtype;
      LoopOptions options;
      double error;
    };
    for (const Row& row : {Row{DType::f64, half, 1e-6}, Row{DType::f32, half, 0.1},
                           Row{DType::f32, half_f16, 1e-2}}) {
      CAPTURE(spill, name_of(row.dtype), static_cast<int>(row.options.codec));
      const Tensor expected = gradient_of_ring(60, row.dtype, {});
      const Bytes budget = 20 * 1'000 * size_of(row.dtype);
      std::uint32_t states = 0;
      std::uint32_t states_half = 0;
      gradient_of_ring(60, row.dtype, exact, &states, budget);
      const Tensor found = gradient_of_ring(60, row.dtype, row.options, &states_half, budget);
      CHECK(states_half >= 2 * states - 5);
      const double difference = largest_difference(found, expected);
      CHECK(difference > 0);
      CHECK(difference < row.error);
    }
  }
}

/// Applies the sine until no element is above 0.3.
Var decayed(const Var& u, const LoopOptions& options) {
  return while_loop(
             {&u, 1}, [](std::span<const Var> x, const StepNumber&) { return max(x[0]) > 0.3; },
             [](std::span<const Var> x, std::span<const Var>, const StepNumber&) {
               return LoopStep{{sin(x[0])}};
             },
             options)
      .state[0];
}

TEST_CASE("states kept in half the bytes: loops whose length nobody knows") {
  const auto run = [](const LoopOptions& options, Bytes budget) {
    Tape tape;
    const Var u = tape.parameter(wave(1'000));
    const Var end = decayed(u, options);
    return backward(sum(end * end), {.memory_budget = budget})[u].clone();
  };
  const double difference =
      largest_difference(run({.codec = Codec::half}, 150'000), run({}, unlimited));
  CHECK(difference > 0);
  CHECK(difference < 1e-6);
}

TEST_CASE("states kept in half the bytes: as many as there is room for") {
  std::uint32_t states = 0;
  gradient_of_ring(1'000, DType::f64, {.codec = Codec::half}, &states, 100 * 8'000);
  CHECK(states > 150);
}

TEST_CASE("states kept in half the bytes: none, and those that cannot be") {
  Tape tape;
  const Var nothing = tape.parameter(Tensor::zeros({0}, DType::f64));
  const Var end = scan(nothing, 10, [](const Var& x, const StepNumber&) { return sin(x); },
                       {.codec = Codec::half});
  CHECK(backward(sum(end))[nothing].shape() == Shape{0});
  const Var large = tape.parameter(Tensor::full({10}, 1e30, DType::f64));
  const Var larger = scan(large, 10, [](const Var& x, const StepNumber&) { return x * x; },
                          {.codec = Codec::half});
  check_error([&] { backward(sum(larger)); },
              {"[scan] the state before step", "LoopOptions::codec", "held_states_test.cpp"});
}

TEST_CASE("states kept in half the bytes: two derivatives have the same bits in any run") {
  const TemporaryDirectory directory;
  const auto run = [&] {
    Tape tape;
    const Var u = tape.parameter(wave(1'000));
    const Var end = decayed(
        u, {.spill = directory.path(), .disk_costs = DiskCosts{3, 2}, .codec = Codec::half});
    const Var both[] = {gradient(sum(end * end), u), gradient(sum(sin(end)), u)};
    evaluate(both, {.memory_budget = 150'000, .threads = 2});
    return std::pair(both[0].value().clone(), both[1].value().clone());
  };
  const auto expected = run();
  for (int k = 0; k < cases(10); ++k) {
    const auto found = run();
    CHECK(same_bits(found.first, expected.first));
    CHECK(same_bits(found.second, expected.second));
  }
}

/// Gradients of a loop in which step `bad` computes a different state from its `calls`th call on.
void run_with_hidden_state(std::int64_t bad, int calls, const LoopOptions& options) {
  Tape tape;
  const Var u = tape.parameter(wave(100));
  int count = 0;
  const Var end = scan(
      u, 50,
      [&](const Var& x, const StepNumber& n) {
        const bool changes = n == bad && ++count >= calls;
        return changes ? sin(x) * 1.0001 : sin(x);
      },
      options);
  backward(sum(end * end), {.memory_budget = 30'000});
}

TEST_CASE("a step that makes another state when it is run again is named") {
  const TemporaryDirectory directory;
  for (const std::string& spill : {std::string(), directory.path()}) {
    const LoopOptions options{.spill = spill, .disk_costs = DiskCosts{3, 2}, .check = true};
    for (const std::int64_t bad : {3, 7}) {
      check_error([&] { run_with_hidden_state(bad, 2, options); },
                  {"[scan] step " + std::to_string(bad) + " makes a different state",
                   "held_states_test.cpp"});
    }
    CHECK(error_of([&] { run_with_hidden_state(3, 1'000, options); }).empty());
    CHECK(directory.files().empty());
  }
  CHECK(error_of([&] { run_with_hidden_state(3, 2, {}); }).empty());
}

TEST_CASE("checking changes no bit") {
  const Tensor expected = gradient_of_ring(60, DType::f64, {});
  for (const Bytes budget : {Bytes{90'000}, Bytes{200'000}, unlimited}) {
    CHECK(same_bits(gradient_of_ring(60, DType::f64, {.check = true}, nullptr, budget), expected));
  }
}

TEST_CASE("states cannot be compared that lose digits") {
  check_error([] { gradient_of_ring(5, DType::f64, {.codec = Codec::half, .check = true}); },
              {"LoopOptions::check", "LoopOptions::codec"});
}

}  // namespace
}  // namespace palimpsest::held_states_test
