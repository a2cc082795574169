#include <oneapi/tbb/global_control.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "autodiff/recording_guards.h"
#include "palimpsest.h"
#include "strategy/evaluators/engine.h"
#include "tests/catch.h"
#include "tests/strategy/compile/fusion/results.h"
#include "tests/strategy/loops/loops.h"

namespace palimpsest::precise_test {
namespace {

using Catch::Matchers::Contains;

Engine& engine_of(const std::shared_ptr<EngineEvaluator>& evaluator) { return evaluator->engine(); }

Var perceptron(Tape& tape, std::int64_t width = 32) {
  Var x = tape.constant(Tensor::normal({64, width}, 1));
  for (std::uint64_t i = 0; i < 4; ++i) {
    const Var w = tape.parameter(Tensor::normal({width, width}, 2 + i, 0, 0.2), "w");
    const Var b = tape.parameter(Tensor::zeros({width}), "b");
    x = dropout(gelu(linear(x, w, b)), 0.1);
  }
  return mean(square(x));
}

TEST_CASE("precisions have names") {
  for (const PrecisionKind kind :
       {PrecisionKind::full, PrecisionKind::single, PrecisionKind::half, PrecisionKind::mixed}) {
    CHECK(precision_kind_named(name_of(kind)) == kind);
  }
  CHECK_THROWS_WITH(precision_kind_named("double"), Contains("full, single, half, mixed"));
}

TEST_CASE("evaluators that cannot be given a precision are refused") {
  struct Nothing : Evaluator {
    void on_record(Tape&, std::uint32_t) override {}
    void compute(Tape&, std::span<const std::uint32_t>) override {}
    void on_clear(Tape&) noexcept override {}
  };
  CHECK_THROWS_WITH(precise({.half = DType::f32}), Contains("bf16 or f16"));
  CHECK_THROWS_WITH(precise({}, std::make_shared<Nothing>()), Contains("engine"));
  CHECK_THROWS_WITH(precise({}, precise({})), Contains("already has a precision"));
}

double unit_roundoff(DType half) { return half == DType::bf16 ? 0x1p-8 : 0x1p-11; }

TEST_CASE("16-bit types round by their unit roundoff at most") {
  const Tensor x = Tensor::uniform({100'000}, 1, 1, 2);
  for (const DType half : {DType::bf16, DType::f16}) {
    const Tensor rounded = x.to(half);
    double largest = 0;
    for (std::int64_t i = 0; i < x.elements(); ++i) {
      largest = std::max(largest, std::abs(rounded.at(i) / x.at(i) - 1));
    }
    CHECK(largest <= unit_roundoff(half));
    CHECK(largest > 0.9 * unit_roundoff(half));
  }
}

TEST_CASE("products in mixed precision keep to their bound") {
  struct Case {
    std::int64_t m, n, k;
    MatmulOptions options;
  };
  // The last ones are computed in parts.
  for (const auto& [m, n, k, options] :
       {Case{7, 5, 300, {}}, Case{33, 65, 1, {}}, Case{2, 900, 64, {.transpose_b = true}},
        Case{1100, 40, 24, {}}, Case{700, 300, 90, {.transpose_b = true}},
        Case{40, 24, 2500, {.transpose_a = true}}, Case{600, 500, 1300, {.transpose_a = true}}}) {
    const Tensor a = Tensor::normal(options.transpose_a ? Shape{k, m} : Shape{m, k}, 1);
    const Tensor b = Tensor::normal(options.transpose_b ? Shape{n, k} : Shape{k, n}, 2);
    Tape exact(precise({PrecisionKind::full}));
    const Var left = exact.constant(a);
    const Var right = exact.constant(b);
    const Tensor product = cast(matmul(left, right, options), DType::f64).value();
    const Tensor sizes = matmul(abs(left), abs(right), options).value();
    for (const DType half : {DType::bf16, DType::f16}) {
      Tape tape(precise({.half = half}));
      const Tensor made = matmul(tape.constant(a), tape.constant(b), options).value();
      const double bound = 3.02 * unit_roundoff(half) + static_cast<double>(k) * 0x1p-24;
      double worst = 0;
      for (std::int64_t i = 0; i < made.elements(); ++i) {
        worst = std::max(worst, std::abs(made.at(i) - product.at(i)) / sizes.at(i));
      }
      INFO(m << " " << n << " " << k << " " << name_of(half));
      CHECK(worst <= bound);
      CHECK(worst > 0);
    }
  }
}

TEST_CASE("values and gradients have the dtypes that were recorded") {
  for (const PrecisionKind kind :
       {PrecisionKind::full, PrecisionKind::single, PrecisionKind::half, PrecisionKind::mixed}) {
    for (const auto& inner :
         {lazy(), eager(), eager({.memory_budget = 1 << 20}), hybrid({}, {.nodes = 2})}) {
      Tape tape(precise({kind}, inner));
      const Var x = tape.parameter(Tensor::normal({8, 8}, 1));
      const Var y = matmul(x, x);
      const Var loss = mean(square(y));
      INFO(name_of(kind));
      CHECK(y.value().dtype() == DType::f32);
      const Gradients gradients = backward(loss);
      CHECK(gradients.loss().dtype() == DType::f32);
      CHECK(gradients[x].dtype() == DType::f32);
      CHECK(gradients.entries()[0].parameter == x);
      CHECK(std::abs(loss.item() - gradients.loss().item()) < 1e-6);
      const double largest =
          kind == PrecisionKind::single || kind == PrecisionKind::full ? 1e-5 : 0.1;
      Tape plain;
      const Var p = plain.parameter(x.value());
      const Gradients exact = backward(mean(square(matmul(p, p))));
      for (int i = 0; i < 64; ++i) {
        CHECK(std::abs(gradients[x].at(i) - exact[p].at(i)) < largest);
      }
    }
  }
}

TEST_CASE("gradients recorded by the user are computed in the precision too") {
  Tape tape(precise({}));
  const Var x = tape.parameter(Tensor::normal({8, 8}, 1));
  const Var y = sum(gelu(matmul(x, x)));
  const Var dx = gradient(y, x);
  const Var second = sum(square(dx));
  const Gradients gradients = backward(second);
  Tape plain;
  const Var p = plain.parameter(x.value());
  const Gradients exact = backward(sum(square(gradient(sum(gelu(matmul(p, p))), p))));
  double error = 0, largest = 0;
  for (int i = 0; i < 64; ++i) {
    error = std::max(error, std::abs(gradients[x].at(i) - exact[p].at(i)));
    largest = std::max(largest, std::abs(exact[p].at(i)));
  }
  CHECK(error < 0.05 * largest);
  CHECK(error > 0);
}

TEST_CASE("a run in a precision keeps to its budget, with the same bits at any") {
  for (const DType half : {DType::bf16, DType::f16}) {
    const auto run = [&](const RunOptions& options) {
      Tape tape(precise({.half = half}));
      const Var loss = perceptron(tape);
      const Gradients gradients = backward(loss, options);
      const Report& report = gradients.report();
      CHECK(report.measured_peak <= report.predicted_peak);
      CHECK(report.predicted_peak <= options.memory_budget);
      std::vector<Tensor> tensors{gradients.loss()};
      for (const auto& entry : gradients) tensors.push_back(entry.gradient);
      return std::pair(tensors, report.predicted_peak);
    };
    const auto [exact, peak] = run({.threads = 1});
    for (const int threads : {2, 3}) CHECK(equal(exact, run({.threads = threads}).first));
    CHECK(equal(exact, run({.threads = 1, .fuse = false}).first));
    Bytes smallest = 0;
    Tape tape(precise({.half = half}));
    try {
      backward(perceptron(tape), {.memory_budget = 1});
    } catch (const BudgetError& error) {
      smallest = error.smallest_feasible();
    }
    REQUIRE(smallest > 0);
    CHECK(smallest < peak);
    for (const Bytes budget : {smallest, (smallest + peak) / 2}) {
      CHECK(equal(exact, run({.memory_budget = budget, .threads = 2}).first));
    }
    tape.clear();
    CHECK(plan_backward(perceptron(tape), {.memory_budget = smallest}).predicted_peak() <=
          smallest);
  }
}

TEST_CASE("a training loop in a precision plans once, and records its gradient once") {
  for (const bool fresh : {false, true}) {
    const auto evaluator = precise({});
    Tape kept(evaluator);
    std::vector<double> losses;
    for (int step = 0; step < 4; ++step) {
      std::optional<Tape> own;
      Tape& tape = fresh ? own.emplace(evaluator) : kept;
      tape.clear();
      losses.push_back(backward(perceptron(tape)).loss().item());
    }
    CHECK(engine_of(evaluator).plans_made() == 1);
    CHECK((losses[0] == losses[1]) == fresh);  // after `clear`, dropout drops other elements
  }
}

TEST_CASE("masks are the same in every precision") {
  const auto zeros = [](std::shared_ptr<EngineEvaluator> evaluator) {
    Tape tape(std::move(evaluator));
    tape.clear();
    const Tensor dropped =
        dropout(matmul(tape.constant(Tensor::ones({32, 4})), tape.constant(Tensor::ones({4, 8}))),
                0.5)
            .value();
    std::vector<bool> result;
    for (int i = 0; i < 256; ++i) result.push_back(dropped.at(i) == 0);
    return result;
  };
  const auto plain = zeros(lazy());
  for (const PrecisionKind kind :
       {PrecisionKind::full, PrecisionKind::single, PrecisionKind::half, PrecisionKind::mixed}) {
    CHECK(zeros(precise({kind})) == plain);
  }
}

TEST_CASE("a tape holds what was asked for last, and the other tape what is present") {
  const auto evaluator = precise({});
  Tape tape(evaluator);
  const Var x = tape.constant(Tensor::normal({8, 8}, 1));
  const Var y = matmul(x, x);
  const Var z = exp(y);
  y.value();
  CHECK(tape.has_value(y.id()));
  z.value();
  CHECK_FALSE(tape.has_value(y.id()));
  CHECK(tape.has_value(z.id()));
  const Report report = evaluate(std::vector{y, z}, {.memory_budget = 4096});
  CHECK(report.measured_peak <= 4096);
  CHECK_FALSE(tape.has_value(z.id()));
  CHECK(y.value().dtype() == DType::f32);
}

TEST_CASE("an operation that fails is taken off, and the tapes stay usable") {
  const CustomOperation failing({.name = "failing", .forward = [](const CustomCall&) {
                                   throw std::runtime_error("on purpose");
                                 }});
  Tape tape(precise({}, eager()));
  const Var x = tape.parameter(Tensor::normal({4, 4}, 1));
  const Var y = matmul(x, x);
  const std::uint32_t nodes = tape.node_count();
  CHECK_THROWS_WITH(failing({y}), Contains("on purpose"));
  CHECK(tape.node_count() == nodes);
  CHECK_THROWS_AS(matmul(x, tape.constant(Tensor::ones({3, 3}))), ShapeError);
  const Gradients gradients = backward(sum(y));
  CHECK(std::isfinite(gradients[x].at(0)));
  CHECK_THROWS_WITH(backward(y), Contains("one element"));
}

TEST_CASE("an evaluator given to a tape with nodes computes these too") {
  Tape tape;
  const Var x = tape.parameter(Tensor::normal({4, 4}, 1));
  const Var y = sum(matmul(x, x));
  const double plain = y.item();
  tape.set_evaluator(precise({}));
  const double mixed = backward(y).loss().item();
  CHECK(mixed != plain);
  CHECK(std::abs(mixed - plain) < 0.1);
  CHECK(y.item() == mixed);
  tape.set_evaluator(lazy());
  CHECK(y.item() == plain);
}

/// Two layers and five steps, as plain operations or as a checkpoint and a loop. The steps of the
/// loop are recorded once, or each by itself.
enum class Form { plain, once, each };

Var record_layers(Tape& tape, Form form) {
  const Var x = tape.parameter(Tensor::normal({8, 8}, 1, 0, 0.3), "x");
  const auto layer = [](const Var& in) { return tanh(matmul(in, in)); };
  const auto step = [x](const Var& state) { return tanh(matmul(state, x)) * 0.75; };
  Var state;
  if (form == Form::plain) {
    state = layer(x);
    for (int k = 0; k < 5; ++k) state = step(state);
  } else {
    const auto look = [&](const Var& in) {
      // During tracing, as operations do that count elements; a `Program` refuses users.
      CHECK(std::isfinite(in.tape().value(in.id()).at(0)));
      return layer(in);
    };
    state = scan(checkpoint(look, x), 5, [form, step](const Var& in, const StepNumber& number) {
      return form == Form::each && std::int64_t{number} < 0 ? in : step(in);
    });
  }
  return sum(square(state));
}

TEST_CASE("checkpoints and loops compute in the precision of their tape") {
  for (const Precision precision :
       {Precision{PrecisionKind::full}, Precision{PrecisionKind::single},
        Precision{PrecisionKind::mixed}, Precision{PrecisionKind::mixed, DType::f16},
        Precision{PrecisionKind::half}}) {
    const auto gradients = [](Form form, const std::shared_ptr<EngineEvaluator>& evaluator) {
      Tape tape(evaluator);
      return backward(record_layers(tape, form));
    };
    const Gradients plain = gradients(Form::plain, precise(precision));
    const Gradients single = gradients(Form::plain, lazy());
    for (const Form form : {Form::once, Form::each}) {
      INFO(precision.summary() << ", form " << static_cast<int>(form));
      const Gradients found = gradients(form, precise(precision));
      const bool rounds = precision.kind == PrecisionKind::full;
      const double error = std::abs(found.loss().item() - plain.loss().item());
      CHECK(error <= (rounds ? 1e-6 * plain.loss().item() : 0));
      const bool as_recorded = precision.kind == PrecisionKind::single || rounds;
      CHECK(std::abs(found.loss().item() - single.loss().item()) >= (as_recorded ? 0 : 1e-5));
      const double unit = as_recorded ? 1e-6 : 0.03;
      const Tensor expected = plain.begin()->gradient.to(DType::f64);
      const double largest = largest_difference(expected, Tensor::zeros({8, 8}, DType::f64));
      const Tensor gradient = found.begin()->gradient.to(DType::f64);
      CHECK(largest_difference(gradient, expected) <= unit * largest);
    }
  }
}

TEST_CASE("any thread of a run may record steps of loops in the precision of their tape") {
  const tbb::global_control four(tbb::global_control::max_allowed_parallelism, 4);
  const auto step = [](const Var& in, const StepNumber& number) {
    return std::int64_t{number} % 2 == 0 ? tanh(in * 1.1) : in * 0.9;
  };
  std::optional<Tensor> first;
  for (int run = 0; run < 30; ++run) {
    const RunOptions options{.threads = 4};
    Tape tape(precise({}, run % 3 == 0   ? std::shared_ptr<Evaluator>(lazy(options))
                          : run % 3 == 1 ? std::shared_ptr<Evaluator>(eager(options))
                                         : hybrid(options, {.nodes = 20})));
    const Var x = tape.parameter(Tensor::normal({64, 64}, 1));
    Var loss = sum(square(x));
    for (int k = 0; k < 4; ++k) loss = loss + sum(scan(x * (1.0 + k), 4, step));
    if (run % 2 == 1) evaluate(loss, {.threads = 4});
    const Gradients made = backward(loss, {.threads = 4});
    if (!first) first = made.begin()->gradient;
    CHECK(same_bits(made.begin()->gradient, *first));
  }
}

/// Blocks of a perceptron whose inputs are narrow in mixed precision, each as a checkpoint or not.
Gradients run_blocks(const std::shared_ptr<EngineEvaluator>& evaluator, bool checkpoints,
                     const RunOptions& options = {}) {
  Tape tape(evaluator);
  const Var w = tape.parameter(Tensor::normal({32, 32}, 1, 0, 0.2), "w");
  Var x = matmul(tape.constant(Tensor::normal({256, 32}, 2)), w);
  const auto block = [&](const Var& in) { return tanh(matmul(gelu(matmul(in, w)), w)); };
  for (int k = 0; k < 16; ++k) x = checkpoints ? checkpoint(block, x) : block(x);
  return backward(sum(square(x)), options);
}

TEST_CASE("inputs of checkpoints are kept in the precision in which they were made") {
  const RunOptions whole{.planner = keep_all(), .threads = 1};
  for (const DType half : {DType::bf16, DType::f16}) {
    CAPTURE(name_of(half));
    const auto mixed = [&] { return precise({.kind = PrecisionKind::mixed, .half = half}); };
    const Gradients wide = run_blocks(lazy(), true, whole);
    const Gradients narrow = run_blocks(mixed(), true, whole);
    CHECK(narrow.report().measured_peak <= wide.report().measured_peak * 7 / 10);
    // The blocks read and make what they do without checkpoints.
    const Gradients plain = run_blocks(mixed(), false, whole);
    CHECK(same_bits(narrow.loss(), plain.loss()));
    // A checkpoint adds up the two parts of each block first, so the sum rounds in another order.
    const Tensor expected = plain.begin()->gradient.to(DType::f64);
    const double largest = largest_difference(expected, Tensor::zeros({32, 32}, DType::f64));
    CHECK(largest_difference(narrow.begin()->gradient.to(DType::f64), expected) <= 3e-2 * largest);
    for (const Bytes budget : {unlimited, narrow.report().measured_peak / 2}) {
      const Gradients again = run_blocks(mixed(), true, {.memory_budget = budget});
      CHECK(same_bits(again.begin()->gradient, narrow.begin()->gradient));
    }
    const Gradients at_once =
        run_blocks(precise({.kind = PrecisionKind::mixed, .half = half}, eager()), true);
    CHECK(same_bits(at_once.begin()->gradient, narrow.begin()->gradient));
  }
}

TEST_CASE("operations after a checkpoint take its outputs for values of the recorded dtype") {
  Tape tape(precise({}));
  const Var x = tape.parameter(Tensor::normal({8, 8}, 1, 0, 0.3), "x");
  const Var y = checkpoint([](const Var& in) { return matmul(in, in); }, x);
  const Var kept = checkpoint([](const Var& in) { return in * 1.0; }, y);
  CHECK(y.value().dtype() == DType::f32);
  CHECK(same_bits(kept.value(), y.value()));
  CHECK(same_bits((y * 1.1).value(), Tensor(y.value() * 1.1)));
}

/// Loops in loops and in checkpoints, and a loop that reads its step number. The loss contains
/// their second derivative.
Var record_nested(Tape& tape, bool each) {
  const Var x = tape.parameter(Tensor::normal({8, 8}, 1, 0, 0.3), "x");
  const auto inner = [each](const Var& in, const StepNumber& number) {
    if (each && std::int64_t{number} % 2 == 1) return tanh(in);
    return tanh(matmul(in, in));
  };
  const auto outer = [inner](const Var& in, const StepNumber&) { return scan(in, 3, inner) + in; };
  Var y = scan(x, 2, outer);
  const auto step = [x](const Var& in, const StepNumber&) { return tanh(matmul(in, x)); };
  y = checkpoint([step](const Var& in) { return scan(in, 2, step); }, y);
  const auto is_small = [](const Var& in) { return sum(square(in)) < 50.0; };
  const auto grow = [](const Var& in, const StepNumber&) { return in * 1.5 + matmul(in, in); };
  const Var big = while_loop(y, is_small, grow);
  const Var slope = gradient(sum(square(y)), x);
  return sum(square(big)) + sum(square(slope));
}

TEST_CASE("nested loops and second derivatives of them compute in the precision of their tape") {
  for (const Precision precision :
       {Precision{PrecisionKind::full}, Precision{}, Precision{PrecisionKind::mixed, DType::f16}}) {
    for (const bool each : {false, true}) {
      INFO(precision.summary() << (each ? ", each step recorded" : ""));
      Tape plain;
      const double single = backward(record_nested(plain, each)).loss().item();
      Tape tape(precise(precision));
      const Gradients found = backward(record_nested(tape, each));
      const bool is_full = precision.kind == PrecisionKind::full;
      const double error = std::abs(found.loss().item() - single);
      CHECK(error <= (is_full ? 1e-4 : 0.1) * single);
      if (!is_full) CHECK(error > 1e-6 * single);
      Runner runner(
          Program::gradients([&](Tape& own) { return record_nested(own, each); }, precision));
      runner.run();
      CHECK(same_bits(runner.gradients().entries()[0].gradient, found.begin()->gradient));
    }
  }
}

TEST_CASE("a loop looks at values in the precision of its tape") {
  const auto seen = [](const std::shared_ptr<EngineEvaluator>& evaluator, bool in_loop) {
    Tape tape(evaluator);
    const Var x = tape.constant(Tensor::normal({8, 8}, 1, 0, 0.3));
    const auto product = [](const Var& in) { return sum(matmul(in, in)).item(); };
    double value = 0;
    if (!in_loop) return product(x);
    scan(x, 1, [&](const Var& in, const StepNumber&) {
      value = product(in);
      return in;
    });
    return value;
  };
  CHECK(seen(precise({}), true) == seen(precise({}), false));
  CHECK(seen(lazy(), true) != seen(precise({}), true));
}

TEST_CASE("a program in a precision has the bits of a tape in it") {
  for (const Precision precision : {Precision{PrecisionKind::full}, Precision{PrecisionKind::mixed},
                                    Precision{PrecisionKind::half, DType::f16}}) {
    for (const Form form : {Form::plain, Form::once, Form::each}) {
      INFO(precision.summary() << ", form " << static_cast<int>(form));
      Tape tape(precise(precision));
      const Gradients expected = backward(record_layers(tape, form));
      const auto record = [&](Tape& own) { return record_layers(own, form); };
      Runner runner(Program::gradients(record, precision));
      for (int round = 0; round < 2; ++round) {
        runner.run();
        const Gradients found = runner.gradients();
        CHECK(same_bits(found.loss(), expected.loss()));
        REQUIRE(found.begin() != found.end());
        CHECK(same_bits(found.begin()->gradient, expected.begin()->gradient));
      }
    }
  }
  Var leaf;
  Var product;
  const auto record = [&](Tape& tape) {
    leaf = tape.constant(Tensor::full({2, 2}, 1));
    product = matmul(leaf, leaf);
    return std::vector<Var>{product, leaf};
  };
  const Program program = Program::values(record, Precision{});
  Runner runner(program);
  runner.bind(leaf, Tensor::full({2, 2}, 1.01));
  runner.run();
  CHECK(runner.value(program.outputs()[0]).dtype() == DType::f32);
  CHECK(runner.value(program.outputs()[0]).at(0) == 2.03125);  // 1.01 in bf16: 1.0078125
  CHECK(runner.value(product).at(0) == 2.03125);               // the same value as the output
  CHECK(runner.value(leaf).at(0) == Tensor::scalar(1.01).item());
}

TEST_CASE("a tape that is being traced runs as a whole too") {
  Tape tape(precise({}));
  const Var x = tape.parameter(Tensor::ones({2}));
  for (int trace = 0; trace < 2; ++trace) {
    const TemporaryNodes region(tape);
    const Var y = sum(exp(x));
    const Gradients made = backward(y);
    CHECK(made.loss().item() == y.item());
    CHECK(same_bits(made[x], exp(x).value()));
    CHECK(evaluate(y).precision == "mixed bf16");
  }
  CHECK(tape.node_count() == 1);
}

}  // namespace
}  // namespace palimpsest::precise_test
