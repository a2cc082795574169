#include "strategy/export/export_c.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "autodiff/operations/binary.h"
#include "autodiff/operations/convolution.h"
#include "autodiff/operations/functions/unary_functions.h"
#include "autodiff/operations/image.h"
#include "autodiff/operations/index.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/linalg.h"
#include "autodiff/operations/loss.h"
#include "autodiff/operations/products.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/unary.h"
#include "strategy/training/optimizer.h"
#include "tests/catch.h"
#include "tests/strategy/export/exported_runs.h"
#include "tests/strategy/export/lacks_c_compiler.h"
#include "tests/strategy/random_program.h"

namespace palimpsest::export_test {
namespace {

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

/// A small convolutional network on a batch of images with classes.
struct Network {
  explicit Network(DType of_all = DType::f32) : dtype(of_all) {}

  DType dtype;
  std::vector<Tensor> weights{Tensor::normal({4, 1, 3, 3}, 1, 0, 0.4).to(dtype),
                              Tensor::normal({4}, 2, 0, 0.1).to(dtype),
                              Tensor::normal({4, 4, 3, 3}, 5, 0, 0.2).to(dtype),
                              Tensor::normal({64, 3}, 3, 0, 0.2).to(dtype)};
  Tensor images = Tensor::normal({5, 1, 8, 8}, 4).to(dtype);
  Tensor classes = Tensor::from<std::int32_t>({0, 2, 1, 1, 0}, {5});
  std::vector<Var> parameters;
  Var x, labels, logits;

  LossAndOutputs record(Tape& tape) {
    parameters.clear();
    const char* names[] = {"kernel", "bias", "repeated", "dense"};
    for (std::size_t i = 0; i < weights.size(); ++i) {
      parameters.push_back(tape.parameter(weights[i], names[i]));
    }
    x = tape.constant(images);
    labels = tape.constant(classes);
    Var features = relu(convolution(x, parameters[0], parameters[1], {.padding = 1}));
    for (int layer = 0; layer < 5; ++layer) {
      features = tanh(convolution(features, parameters[2], {}, {.padding = 1}));
    }
    const Var pooled = reshape(max_pool(features, 2, {.stride = 2}), {5, 64});
    logits = matmul(pooled, parameters[3]);
    return {mean(cross_entropy(logits, labels)), {logits}};
  }
  Program program() {
    return Program::gradients([&](Tape& tape) { return record(tape); }, {.threads = 1});
  }
  ExportOptions options(const std::string& name) const {
    return {.name = name, .arguments = {{"images", x}, {"labels", labels}}};
  }
  std::vector<Tensor> arguments() const {
    std::vector<Tensor> all = weights;
    all.push_back(images);
    all.push_back(classes);
    return all;
  }
};

Bytes smallest_budget(const Program& program, ExportOptions options) {
  options.memory_budget = 0;
  try {
    return export_c(program, options).total_bytes();
  } catch (const BudgetError& error) {
    return error.smallest_feasible();
  }
}

bool is_close(const Tensor& a, const Tensor& b, double tolerance) {
  double largest = 0;
  for (std::int64_t i = 0; i < b.elements(); ++i) largest = std::max(largest, std::abs(b.at(i)));
  for (std::int64_t i = 0; i < a.elements(); ++i) {
    if (!(std::abs(a.at(i) - b.at(i)) <= tolerance * largest)) return false;
  }
  return a.shape() == b.shape();
}

TEST_CASE("an exported network has the engine's gradients within every budget", "[export]") {
  if (lacks_c_compiler()) return;
  Network network;
  const Program program = network.program();
  const Bytes least = smallest_budget(program, network.options("least"));
  const Bytes most = export_c(program, network.options("most")).total_bytes();
  REQUIRE(least < most);
  std::vector<CRun> runs;
  for (int part = 0; part <= 4; ++part) {
    ExportOptions options = network.options("part" + std::to_string(part));
    options.memory_budget = least + (most - least) * part / 4;
    const ExportedC exported = export_c(program, options);
    CHECK(exported.total_bytes() <= options.memory_budget);
    CHECK(exported.parameter_bytes == 4 * (36 + 4 + 144 + 192));
    CHECK(exported.result_bytes == 4 * (1 + 15 + 36 + 4 + 144 + 192));
    CHECK(exported.state_bytes == 0);
    const std::string arena = "PART" + std::to_string(part) + "_ARENA_BYTES " +
                              std::to_string(exported.arena_bytes) + "\n";
    CHECK_THAT(exported.header, Catch::Matchers::Contains(arena));
    runs.push_back({exported, network.arguments()});
  }
  const std::vector<CResult> results = run_in_c(runs, "-O2");

  Runner runner(program);
  runner.run();
  const std::size_t first = network.arguments().size();
  for (std::size_t i = 0; i < results.size(); ++i) {
    REQUIRE(results[i].status == 0);
    for (std::size_t k = 0; k < program.outputs().size(); ++k) {
      INFO("budget " << i << ", result " << k);
      CHECK(is_close(results[i].tensors[first + k], runner.value(program.outputs()[k]), 1e-6));
      CHECK(same_bits(results[i].tensors[first + k], results[0].tensors[first + k]));
    }
  }
}

TEST_CASE("a sum of constants has the same bits in exported C within every budget", "[export]") {
  if (lacks_c_compiler()) return;
  // Without recomputation, a small budget is kept by the program as it was recorded, because it
  // does not hold tanh(x) until its second use. Without a budget, the program is simplified. Its
  // sum is a constant with the rounding of the engine's kernel.
  const PlannerPtr planner = keep_all();
  const Program program = Program::values(
      [](Tape& tape) {
        const Var x = tape.parameter(Tensor::normal({300}, 1, 0, 1, DType::f64));
        const Var total = sum(full(tape, {299}, 1.0 / 3, DType::f64));
        const Var first = sum(tanh(x));
        const Var y = cumsum(sin(cumsum(sin(x), 0)), 0);
        return std::vector{total * first, sum(tanh(x) * y)};
      },
      {.threads = 1});
  const Bytes least = smallest_budget(program, {.name = "least", .planner = planner});
  const ExportedC whole = export_c(program, {.name = "whole", .planner = planner});
  REQUIRE(least < whole.total_bytes());
  const ExportedC small =
      export_c(program, {.memory_budget = least, .name = "small", .planner = planner});
  const std::vector<Tensor> x{Tensor::normal({300}, 1, 0, 1, DType::f64)};
  const std::vector<CResult> results = run_in_c({{whole, x}, {small, x}});
  for (std::size_t k = 1; k < 3; ++k) {
    CHECK(same_bits(results[0].tensors[k], results[1].tensors[k]));
  }
}

TEST_CASE("a budget that is too small is refused with the smallest feasible one", "[export]") {
  Network network;
  const Program program = network.program();
  ExportOptions options = network.options("train");
  const Bytes least = smallest_budget(program, options);
  options.memory_budget = least - 1;
  CHECK_THROWS_AS(export_c(program, options), BudgetError);
  try {
    export_c(program, options);
  } catch (const BudgetError& error) {
    CHECK(error.smallest_feasible() == least);
    const std::string message = error.what();
    for (const std::string& word : {std::to_string(least), std::string("parameters of 1504"),
                                    std::string("results of 1568"), std::string("an arena of ")}) {
      CHECK_THAT(message, Catch::Matchers::Contains(word));
    }
  }
  options.memory_budget = least;
  CHECK(export_c(program, options).total_bytes() <= least);
}

/// Parameters after three steps of the engine's optimizer.
std::vector<Tensor> trained(Network network, Optimizer& optimizer) {
  for (Tensor& weight : network.weights) weight = weight.clone();
  Runner runner(network.program());
  for (int step = 0; step < 3; ++step) {
    runner.run();
    optimizer.step(runner.gradients());
  }
  return network.weights;
}

TEST_CASE("an exported optimizer updates parameters as the engine's", "[export]") {
  if (lacks_c_compiler()) return;
  const SgdOptions momentum{.learning_rate = 0.1, .momentum = 0.9, .weight_decay = 0.01};
  SgdOptions nesterov = momentum;
  nesterov.nesterov = true;
  const AdamOptions adam_options{.learning_rate = 0.02, .weight_decay = 0.1};
  const AdamWOptions adamw_options{.learning_rate = 0.02, .weight_decay = 0.1};
  const auto check = [&](DType dtype, double tolerance) {
    Network network(dtype);
    const Program program = network.program();
    std::vector<CRun> runs;
    std::vector<std::vector<Tensor>> expected;
    const auto add = [&](const COptimizer& optimizer, std::unique_ptr<Optimizer> engine,
                         double rate, std::size_t slots) {
      ExportOptions options = network.options("train" + std::to_string(runs.size()));
      options.optimizer = optimizer;
      const ExportedC exported = export_c(program, options);
      CHECK(exported.has_learning_rate);
      CHECK(exported.has_state == (slots > 0));
      CHECK(exported.state_bytes ==
            static_cast<Bytes>(slots) * exported.parameter_bytes + (slots == 2 ? 8 : 0));
      runs.push_back({exported, network.arguments(), rate, 3});
      expected.push_back(trained(Network(dtype), *engine));
    };
    add(SgdOptions{.learning_rate = 0.1}, sgd({.learning_rate = 0.1}), 0.1, 0);
    add(momentum, sgd(momentum), 0.1, 1);
    add(nesterov, sgd(nesterov), 0.1, 1);
    add(adam_options, adam(adam_options), 0.02, 2);
    add(adamw_options, adamw(adamw_options), 0.02, 2);
    const std::vector<CResult> results = run_in_c(runs);
    for (std::size_t i = 0; i < results.size(); ++i) {
      REQUIRE(results[i].status == 0);
      for (std::size_t k = 0; k < expected[i].size(); ++k) {
        INFO("optimizer " << i << ", parameter " << k);
        CHECK(is_close(results[i].tensors[k], expected[i][k], tolerance));
        CHECK_FALSE(is_close(results[i].tensors[k], network.weights[k], 1e-3));
      }
    }
  };
  check(DType::f32, 5e-6);
  check(DType::f64, 1e-11);
}

TEST_CASE("a gradient that is another parameter is read before that one changes", "[export]") {
  if (lacks_c_compiler()) return;
  const Tensor a = Tensor::from<double>({1, 2, 3}, {3});
  const Tensor b = Tensor::from<double>({10, 20, 30}, {3});
  const Program program = Program::gradients(
      [&](Tape& tape) { return sum(tape.parameter(a, "a") * tape.parameter(b, "b")); });
  const ExportedC exported =
      export_c(program, {.name = "both", .optimizer = SgdOptions{.learning_rate = 0.5}});
  const std::vector<CResult> results = run_in_c({{exported, {a, b}, 0.5}});
  CHECK(same_bits(results[0].tensors[0], Tensor::from<double>({-4, -8, -12}, {3})));
  CHECK(same_bits(results[0].tensors[1], Tensor::from<double>({9.5, 19, 28.5}, {3})));
}

/// Steps of a filter with a small system in each.
Var filtered(const Var& transition, const Var& start, const Tensor& measured, int steps) {
  Tape& tape = start.tape();
  Var state = start;
  Var loss = full(tape, {}, 0, start.dtype());
  const Var identity_matrix = tape.constant(measured);
  const Var measured_at = tape.constant(Tensor::arange(20, start.dtype()));
  for (int step = 0; step < steps; ++step) {
    state = matmul(transition, state);
    const Var gain = solve(matmul(state, state, {.transpose_b = true}) + identity_matrix, state);
    state = state - 0.1 * gain * measured_at[step];
    loss = loss + sum(square(state));
  }
  return loss;
}

Program filter_program(int steps, DType dtype) {
  return Program::gradients(
      [=](Tape& tape) {
        const Var transition =
            tape.parameter(Tensor::normal({3, 3}, 5, 0, 0.5).to(dtype), "transition");
        const Var start = tape.parameter(Tensor::normal({3, 1}, 6).to(dtype), "start");
        const Tensor ones = Tensor::from<double>({1, 0, 0, 0, 1, 0, 0, 0, 1}, {3, 3});
        return filtered(transition, start, ones.to(dtype), steps);
      },
      {.threads = 1});
}

TEST_CASE("equal steps of a program share their functions", "[export]") {
  const auto functions = [](int steps) {
    return count_of(export_c(filter_program(steps, DType::f64)).source, "\nPROGRAM_FUNCTION ");
  };
  CHECK(functions(6) == functions(12));
  CHECK(functions(6) < 30);
}

TEST_CASE("exported programs are clean under the sanitizers", "[export]") {
  if (lacks_c_compiler()) return;
  const Program values =
      Program::values([](Tape& tape) { return std::vector<Var>{full(tape, {1}, 1) + 1.0}; });
  const std::string flags = "-O1 -fsanitize=address,undefined -fno-sanitize-recover=all";
  try {
    run_in_c({{export_c(values, {.name = "tiny"}), {}}}, flags);
  } catch (const std::runtime_error& error) {
    WARN("skipped: the compiler has no sanitizers");
    return;
  }
  Network network;
  const Program program = network.program();
  ExportOptions tight = network.options("tight");
  tight.memory_budget = smallest_budget(program, tight);
  ExportOptions training = network.options("training");
  training.optimizer = AdamOptions{};
  const Program filter = filter_program(8, DType::f64);
  ExportOptions filtering{.name = "filtering"};
  filtering.memory_budget = smallest_budget(filter, filtering);
  const std::vector<Tensor> leaves{Tensor::normal({3, 3}, 5, 0, 0.5).to(DType::f64),
                                   Tensor::normal({3, 1}, 6).to(DType::f64)};
  const std::vector<CResult> results =
      run_in_c({{export_c(program, tight), network.arguments()},
                {export_c(program, training), network.arguments(), 1e-3, 2},
                {export_c(filter, filtering), leaves}},
               flags);
  for (const CResult& result : results) CHECK(result.status == 0);
  Runner runner(filter);
  runner.run();
  for (std::size_t k = 0; k < filter.outputs().size(); ++k) {
    CHECK(is_close(results[2].tensors[2 + k], runner.value(filter.outputs()[k]), 1e-12));
  }
}

TEST_CASE("arithmetic and moved elements have the engine's bits", "[export]") {
  if (lacks_c_compiler()) return;
  const Tensor a = Tensor::normal({6, 5}, 1);
  const Tensor b = Tensor::normal({5}, 2);
  const Tensor n = Tensor::from<std::int32_t>({7, -3, 0, 2147483647, -2147483647 - 1}, {5});
  const Program program = Program::values(
      [&](Tape& tape) {
        const Var x = tape.parameter(a);
        const Var y = tape.parameter(b);
        const Var i = tape.constant(n);
        const Var moved = roll(transpose(x, 0, 1), 2, 1);
        return std::vector<Var>{(x * y - 0.3 * x) / (y + 3.0),
                                sqrt(abs(x)) + relu(y),
                                moved,
                                where(x > 0.5, x, y),
                                i * i + i,
                                i / 3.0,
                                max(x, {1}),
                                cast(x * 1e10, DType::i32)};
      },
      {.threads = 1});
  const std::vector<CResult> results =
      run_in_c({{export_c(program, {.name = "bits"}), {a, b}}}, "-O3");
  Runner runner(program);
  runner.run();
  for (std::size_t k = 0; k < program.outputs().size(); ++k) {
    INFO("result " << k << "\n" << results[0].tensors[2 + k]);
    CHECK(same_bits(results[0].tensors[2 + k], runner.value(program.outputs()[k])));
  }
}

TEST_CASE("random programs have the engine's gradients within every budget", "[export]") {
  if (lacks_c_compiler()) return;
  std::vector<CRun> runs;
  std::vector<Program> programs;
  for (std::uint64_t seed = 1; programs.size() < 4; ++seed) {
    REQUIRE(seed < 200);
    const Program program = Program::gradients(
        [&](Tape& tape) { return record_random(tape, seed, 10).loss; }, {.threads = 1});
    const auto named = [&](const char* name) {
      return ExportOptions{.name = name + std::to_string(programs.size())};
    };
    std::vector<Tensor> leaves;
    const Tape& tape = program.tape();
    for (NodeId node = 0; node < tape.node_count(); ++node) {
      if (!tape.is_parameter(node)) continue;
      const ValueId value = tape.first_output(node);
      leaves.emplace_back(tape.buffer(value), tape.shape(value), tape.dtype(value));
    }
    try {
      const Bytes least = smallest_budget(program, named("least"));
      const ExportedC whole = export_c(program, named("whole"));
      const std::pair<const char*, Bytes> budgets[] = {
          {"tight", least}, {"middle", (least + whole.total_bytes()) / 2}, {"all", unlimited}};
      for (const auto& [name, budget] : budgets) {
        ExportOptions options = named(name);
        options.memory_budget = budget;
        runs.push_back({export_c(program, options), leaves});
        CHECK(runs.back().exported.total_bytes() <= budget);
      }
    } catch (const DTypeError&) {  // some programs have 16-bit values
      continue;
    }
    programs.push_back(program);
  }
  const std::vector<CResult> results = run_in_c(runs, "-O1");
  for (std::size_t i = 0; i < runs.size(); ++i) {
    INFO(runs[i].exported.name);
    CHECK(results[i].status == 0);
    Runner runner(programs[i / 3]);
    runner.run();
    const std::span<const Var> outputs = programs[i / 3].outputs();
    const std::size_t first = runs[i].tensors.size();
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      INFO("result " << k);
      CHECK(is_close(results[i].tensors[first + k], runner.value(outputs[k]), 1e-11));
      CHECK(same_bits(results[i].tensors[first + k], results[i / 3 * 3].tensors[first + k]));
    }
  }
}

TEST_CASE("results may be arguments, constants and other results", "[export]") {
  if (lacks_c_compiler()) return;
  const Tensor a = Tensor::from<float>({1, 2}, {2});
  const Program program = Program::values([&](Tape& tape) {
    const Var x = tape.parameter(a);
    const Var y = x + 1.0;
    return std::vector<Var>{x,
                            y,
                            y,
                            reshape(y, {2, 1}),
                            tape.constant(Tensor::from<float>({5}, {1})),
                            full(tape, {2}, 3),
                            reshape(full(tape, {0, 3}, 1), {3, 0})};
  });
  const std::vector<CResult> results = run_in_c({{export_c(program, {.name = "alike"}), {a}}});
  Runner runner(program);
  runner.run();
  for (std::size_t k = 0; k < program.outputs().size(); ++k) {
    INFO("result " << k);
    CHECK(same_bits(results[0].tensors[1 + k], runner.value(program.outputs()[k])));
  }
}

TEST_CASE("a function that cannot go on returns a status", "[export]") {
  if (lacks_c_compiler()) return;
  const auto status = [](const Program& program, const ExportOptions& options,
                         const Tensor& value) {
    return run_in_c({{export_c(program, options), {value}}})[0].status;
  };
  const auto of = [](auto f) {
    return Program::values([=](Tape& tape) { return std::vector<Var>{f(tape)}; });
  };
  const auto matrix = [](double number) { return Tensor::from<double>({1, 0, 0, number}, {2, 2}); };
  const Program factor = of([&](Tape& tape) { return cholesky(tape.parameter(matrix(1))); });
  CHECK(status(factor, {.name = "factor"}, matrix(2)) == 0);
  CHECK(status(factor, {.name = "factor"}, matrix(-2)) == 2);
  const Program solution = of([&](Tape& tape) { return inverse(tape.parameter(matrix(1))); });
  CHECK(status(solution, {.name = "solution"}, matrix(3)) == 0);
  CHECK(status(solution, {.name = "solution"}, matrix(0)) == 3);
  Var index;
  const Program selection = of([&](Tape& tape) {
    index = tape.constant(Tensor::from<std::int64_t>({0}, {1}));
    return index_select(full(tape, {4}, 2), 0, index);
  });
  const ExportOptions options{.name = "selection", .arguments = {{"index", index}}};
  CHECK(status(selection, options, Tensor::from<std::int64_t>({3}, {1})) == 0);
  CHECK(status(selection, options, Tensor::from<std::int64_t>({4}, {1})) == 1);
  CHECK(status(selection, options, Tensor::from<std::int64_t>({-1}, {1})) == 1);
}

}  // namespace
}  // namespace palimpsest::export_test
