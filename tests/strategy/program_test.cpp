#include "strategy/program.h"

#include <algorithm>
#include <thread>

#include "tests/cases.h"
#include "tests/catch.h"
#include "tests/error_of.h"
#include "tests/strategy/random_program.h"

namespace palimpsest::program_test {
namespace {

using Catch::Matchers::Contains;

/// A small network with dropout, whose input can be bound again.
struct Network {
  Tensor weight = Tensor::normal({16, 16}, 1, 0, 0.3, DType::f64);
  Tensor input = Tensor::normal({8, 16}, 2, 0, 1, DType::f64);
  Var w, x;

  Var record(Tape& tape) {
    w = tape.parameter(weight, "w");
    x = tape.constant(input, "x");
    Var state = x;
    for (int layer = 0; layer < 6; ++layer) state = dropout(tanh(matmul(state, w)), 0.25);
    return sum(state * state);
  }
};

bool same(const Gradients& a, const Gradients& b) {
  return same_bits(a.loss(), b.loss()) &&
         std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& x, const auto& y) { return same_bits(x.gradient, y.gradient); });
}

Bytes smallest_budget_of(const Program::RecordLoss& record, int threads) {
  Tape tape;
  try {
    return plan_backward(record(tape), {.memory_budget = 1, .threads = threads}).predicted_peak();
  } catch (const BudgetError& error) {
    return error.smallest_feasible();
  }
}

TEST_CASE("a program computes what its tape does, at any budget and number of threads") {
  const auto programs = static_cast<std::uint64_t>(cases(40));
  for (std::uint64_t seed = 1; seed <= programs; ++seed) {
    const auto record = [&](Tape& own) { return record_random(own, seed, 30).loss; };
    Tape tape;
    const Gradients expected = backward(record(tape));
    for (const int threads : {1, 2}) {
      // The workspaces of kernels, and so the plans, depend on the number of threads.
      for (const Bytes budget : {unlimited, smallest_budget_of(record, threads)}) {
        Runner runner(Program::gradients(record, {.memory_budget = budget, .threads = threads}));
        for (int run = 0; run < 2; ++run) {
          runner.run();
          CHECK(same(runner.gradients(), expected));
          CHECK(runner.report().measured_peak <= runner.report().predicted_peak);
          CHECK(runner.report().predicted_peak <= budget);
        }
      }
    }
  }
}

TEST_CASE("run k of a program draws what a tape cleared k times draws") {
  Network network;
  Runner runner(Program::gradients([&](Tape& tape) { return network.record(tape); }));
  Tape tape;
  std::vector<double> losses;
  for (int step = 0; step < 3; ++step) {
    Network again;
    const Gradients expected = backward(again.record(tape));
    runner.run();
    CHECK(same(runner.gradients(), expected));
    losses.push_back(expected.loss().item());
    tape.clear();
  }
  CHECK(losses[0] != losses[1]);
  CHECK(losses[1] != losses[2]);
}

TEST_CASE("runner k of a program draws what a tape draws with a seed greater by k") {
  Network network;
  const Program program =
      Program::gradients([&](Tape& tape) { return network.record(tape); }, {.threads = 2});
  std::vector<Runner> runners;
  for (std::uint32_t part = 0; part < 3; ++part) runners.emplace_back(program);
  std::vector<double> losses;
  for (std::uint32_t part = 0; part < 3; ++part) {
    CHECK(runners[part].part() == part);
    Tape tape;
    tape.set_seed(part);
    for (int step = 0; step < 2; ++step) {
      Network again;
      runners[part].run();
      CHECK(same(runners[part].gradients(), backward(again.record(tape))));
      losses.push_back(runners[part].gradients().loss().item());
      tape.clear();
    }
  }
  std::ranges::sort(losses);
  CHECK(std::ranges::adjacent_find(losses) == losses.end());
  Runner other(program);
  other.set_part(1);
  runners[2].set_part(1);
  other.run();
  Runner same_part(program);
  same_part.set_part(1);
  same_part.run();
  CHECK(same(other.gradients(), same_part.gradients()));
}

TEST_CASE("runners differ at about half the places of a dropout, wherever it is") {
  const CustomOperation coins({.name = "coins", .forward = [](const CustomCall& call) {
                                 const Tensor& y = call.outputs[0];
                                 fill_uniform(in_round({7, 0, 3}, call.round),
                                              y.data<float>().data(), y.elements());
                                 for (float& each : y.data<float>()) each = each < 0.5F ? 0 : 2;
                               }});
  const auto drop = [](const Var& x) { return dropout(x, 0.5); };
  const std::function<Var(const Var&)> kinds[] = {
      drop,
      [&](const Var& x) { return checkpoint(drop, x); },
      [&](const Var& x) {
        return scan(x, 1, [&](const Var& y, const StepNumber&) { return drop(y); });
      },
      [&](const Var& x) {
        return scan(x, 1, [&](const Var& y, const StepNumber& step) {
          return std::int64_t(step) == 0 ? drop(y) : y;
        });
      },
      [&](const Var& x) { return x * cast(bernoulli(x * 0.5), DType::f32) * 2.0; },
      [&](const Var& x) { return coins({x}); },
  };
  for (const auto& kind : kinds) {
    Var y;
    const Program program = Program::values([&](Tape& tape) {
      y = kind(tape.constant(Tensor::ones({64})));
      return std::vector<Var>{y};
    });
    Runner a(program);
    Runner b(program);
    const auto run = [&](Runner& runner) {
      runner.run();
      return runner.value(y).clone();
    };
    const Tensor of_a = run(a);
    const Tensor of_b = run(b);
    int equal = 0;
    for (int i = 0; i < 64; ++i) equal += of_a.at(i) == of_b.at(i);
    CHECK(equal > 16);
    CHECK(equal < 48);
    b.set_part(0);
    CHECK(same_bits(run(a), run(b)));
  }
}

TEST_CASE("a checkpointed part draws what the rest does, forward and backward, in every run") {
  const Tensor weight = Tensor::normal({8, 8}, 1, 0, 0.5, DType::f64);
  const auto record = [&](Tape& tape) {
    const Var w = tape.parameter(weight);
    const auto layer = [](const Var& x) { return dropout(tanh(x), 0.5); };
    return sum(checkpoint(layer, checkpoint(layer, matmul(w, w))));
  };
  Runner runner(Program::gradients(record));
  Tape tape;
  for (int step = 0; step < 3; ++step) {
    const Gradients expected = backward(record(tape));
    runner.run();
    CHECK(same(runner.gradients(), expected));
    tape.clear();
  }
}

TEST_CASE("leaves can be given other tensors, and are read where they lie") {
  Network network;
  const Program program = Program::values([&](Tape& tape) {
    return std::vector<Var>{
        matmul(tape.constant(network.input), network.w = tape.parameter(network.weight))};
  });
  const Var output = program.outputs()[0];
  Runner runner(program);
  runner.run();
  const Tensor first = runner.value(output).clone();
  const Tensor other = Tensor::normal({16, 16}, 7, 0, 1, DType::f64);
  runner.bind(network.w, other);
  runner.run();
  CHECK_FALSE(same_bits(runner.value(output), first));
  std::copy_n(network.weight.raw(), other.bytes(), other.raw());
  runner.run();
  CHECK(same_bits(runner.value(output), first));
  // Another runner of the program has its own leaves.
  Runner second(program);
  second.run();
  CHECK(same_bits(second.value(output), first));
}

TEST_CASE("a result that is held stays, and one that is not costs nothing") {
  Network network;
  Runner runner(Program::gradients([&](Tape& tape) { return network.record(tape); }));
  runner.run();
  const Gradients held = runner.gradients();
  const Tensor copy = held[network.w].clone();
  runner.run();
  CHECK(same_bits(held[network.w], copy));
  CHECK_FALSE(same_bits(runner.gradients()[network.w], copy));
  const std::byte* before = runner.gradients()[network.w].raw();
  runner.run();
  CHECK(runner.gradients()[network.w].raw() == before);
}

TEST_CASE("threads run one program at once") {
  const int threads_each = GENERATE(1, 2);
  Network network;
  const Program program = Program::gradients([&](Tape& tape) { return network.record(tape); },
                                             {.threads = threads_each});
  std::vector<Tensor> expected;
  Runner alone(program);
  for (int step = 0; step < 20; ++step) {
    alone.run();
    expected.push_back(alone.value(program.outputs()[0]).clone());
  }
  std::vector<std::vector<Tensor>> found(4);
  std::vector<std::thread> threads;
  for (auto& mine : found) {
    threads.emplace_back([&] {
      Runner runner(program);
      runner.set_part(alone.part());
      for (int step = 0; step < 20; ++step) {
        runner.run();
        mine.push_back(runner.value(program.outputs()[0]).clone());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& mine : found) {
    CHECK(std::equal(mine.begin(), mine.end(), expected.begin(), expected.end(), same_bits));
  }
}

TEST_CASE("a program trains: its parameters are changed in place") {
  Network network;
  Runner runner(Program::gradients([&](Tape& tape) { return network.record(tape); }));
  Network other;
  other.weight = other.weight.clone();
  Tape tape;
  const auto optimizer = adam();
  const auto expected = adam();
  for (int step = 0; step < 5; ++step) {
    runner.run();
    optimizer->step(runner.gradients());
    expected->step(backward(other.record(tape)));
    tape.clear();
  }
  CHECK(same_bits(network.weight, other.weight));
  CHECK_FALSE(same_bits(network.weight, Network().weight));
}

TEST_CASE("what a program cannot do is an error that says so") {
  Network network;
  const auto record = [&](Tape& tape) { return network.record(tape); };
  const Program program = Program::gradients(record);
  Runner runner(program);
  CHECK_THROWS_WITH(runner.gradients(), Contains("call run() first"));
  CHECK_THROWS_WITH(runner.report(), Contains("call run() first"));
  runner.run();
  CHECK_THROWS_WITH(runner.value(network.x), Contains("not an output"));
  CHECK_THROWS_AS(runner.bind(network.x, Tensor::zeros({8, 15}, DType::f64)), ShapeError);
  CHECK_THROWS_AS(runner.bind(network.x, Tensor::zeros({8, 16}, DType::f32)), DTypeError);
  CHECK_THROWS_AS(runner.bind(network.x, Tensor()), ArgumentError);
  CHECK_THROWS_AS(runner.bind(program.outputs()[0], Tensor::scalar(1, DType::f64)), ArgumentError);
  Tape tape;
  CHECK_THROWS_AS(runner.bind(tape.constant(network.input), network.input), ArgumentError);
  CHECK_THROWS_AS(Program::values([](Tape&) { return std::vector<Var>{}; }), ArgumentError);
  CHECK_THROWS_AS(
      Program::values([&](Tape&) { return std::vector<Var>{tape.constant(Tensor::scalar(1))}; }),
      TapeError);
  CHECK_THROWS_AS(Program::gradients([&](Tape& own) { return own.parameter(network.input); }),
                  ShapeError);
  CHECK_THROWS_AS(Program::gradients(record, {.memory_budget = 1}), BudgetError);
  CHECK_THROWS_AS(Program::gradients(record, {.threads = -1}), ArgumentError);
  Runner values(Program::values([&](Tape& own) { return std::vector<Var>{record(own)}; }));
  values.run();
  CHECK_THROWS_WITH(values.gradients(), Contains("Program::gradients()"));
}

TEST_CASE("a run that an anomaly stops leaves no results, and the next one works") {
  Var x;
  const Program program = Program::values(
      [&](Tape& tape) {
        x = tape.constant(Tensor::vector({1, 2}));
        return std::vector<Var>{log(x)};
      },
      {.anomaly = true});
  Runner runner(program);
  runner.bind(x, Tensor::vector({-1, 2}));
  CHECK_THROWS_AS(runner.run(), AnomalyError);
  CHECK_THROWS_AS(runner.value(program.outputs()[0]), ArgumentError);
  runner.bind(x, Tensor::vector({1, 2}));
  runner.run();
  CHECK(runner.value(program.outputs()[0]).at(0) == 0);
}

TEST_CASE("a run that a kernel stops leaves no results, and the next one works") {
  bool fails = false;
  const CustomOperation moody({.name = "moody", .forward = [&](const CustomCall& call) {
                                 if (fails) throw std::runtime_error("moody");
                                 std::copy_n(call.inputs[0].raw(), call.inputs[0].bytes(),
                                             call.outputs[0].raw());
                               }});
  const int threads = GENERATE(1, 2);
  Runner runner(Program::values(
      [&](Tape& tape) {
        const Var x = tape.constant(Tensor::ones({64, 64}));
        return std::vector<Var>{matmul(moody({matmul(x, x)}), x)};
      },
      {.threads = threads, .profile = true}));
  runner.run();
  CHECK(runner.report().steps.size() == 3);
  CHECK(runner.report().kernel_seconds > 0);
  fails = true;
  CHECK_THROWS_WITH(runner.run(), "moody");
  check_error([&] { runner.report(); }, {"[program]", "the last run failed", "run() again"});
  check_error([&] { runner.value(Var()); }, {"the last run failed"});
  fails = false;
  runner.run();
  CHECK(runner.report().steps.size() == 3);
}

TEST_CASE("leaves, views and values computed while recording may be returned") {
  Var leaf;
  const Program program = Program::values([&](Tape& tape) {
    leaf = tape.constant(Tensor::vector({1, 2, 3, 4}));
    const Var twice = leaf * 2.0;
    CHECK(tape.value(twice.id()).at(1) == 4);
    return std::vector<Var>{leaf, reshape(leaf, {2, 2}), twice, reshape(twice, {2, 2})};
  });
  Runner runner(program);
  runner.bind(leaf, Tensor::vector({5, 6, 7, 8}));
  runner.run();
  const std::span<const Var> outputs = program.outputs();
  CHECK(runner.value(outputs[0]).at(3) == 8);
  CHECK(runner.value(outputs[1]).at(3) == 8);
  CHECK(runner.value(outputs[2]).at(3) == 16);
  CHECK(runner.value(outputs[3]).at(3) == 16);
  CHECK(runner.value(outputs[3]).shape() == Shape{2, 2});
}

}  // namespace
}  // namespace palimpsest::program_test
