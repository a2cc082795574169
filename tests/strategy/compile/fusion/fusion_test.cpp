#include <algorithm>
#include <cmath>
#include <limits>

#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/functions/exponential.h"
#include "autodiff/operations/functions/trigonometric.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/random.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/unary.h"
#include "strategy/backward.h"
#include "strategy/compile/program_cache.h"
#include "strategy/evaluators/evaluators.h"
#include "tests/autodiff/operation_rows.h"
#include "tests/catch.h"
#include "tests/strategy/compile/fusion/results.h"

namespace palimpsest::fusion_test {
namespace {

/// The results of an operation between elementwise ones.
std::vector<Tensor> sandwich(const OperationRow& row, DType dtype, const RunOptions& options) {
  Tape tape;
  tape.set_seed(7);
  std::vector<Var> parameters, inputs;
  for (const Tensor& input : row.inputs) {
    const bool floating = is_floating(input.dtype());
    parameters.push_back(floating ? tape.parameter(input.to(dtype)) : tape.constant(input));
    inputs.push_back(floating ? parameters.back() * 0.875 + 0.0 : parameters.back());
  }
  const Var y = row.call(inputs);
  std::vector<Var> results{y};
  if (is_floating(y.dtype())) {
    results.push_back(tanh(y * 0.5 - 0.125));
    if (row.order > 0) {
      for (std::size_t i = 0; i < parameters.size(); ++i) {
        if (!is_floating(parameters[i].dtype())) continue;
        results.push_back(gradient(sum(results[1]), parameters[i]) * 2.0);
      }
    }
  }
  evaluate(results, options);
  std::vector<Tensor> tensors;
  for (const Var& result : results) tensors.push_back(result.value());
  return tensors;
}

TEST_CASE("groups have the bits of single operations, for every operation") {
  for (const RowFamily& family : row_families()) {
    for (const OperationRow& row : family.rows()) {
      INFO(row.operation << ", " << row.label);
      for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
        if (is_half(dtype) && !row.half) continue;
        const auto alone = sandwich(row, dtype, {.threads = 1, .fuse = false});
        CHECK(equal(alone, sandwich(row, dtype, {.threads = 1})));
        CHECK(equal(alone, sandwich(row, dtype, {.threads = 3})));
      }
    }
  }
}

/// Elementwise operations with inputs that are not contiguous rows of elements of their own.
struct Reader {
  const char* name;
  Shape shape;
  Var (*call)(const Var&);
};

const Reader readers[] = {
    {"in order", {40'000}, [](const Var& x) { return exp(x) * x + 1.0; }},
    {"one number", {40'000}, [](const Var& x) { return x * mean(x) + exp(mean(x)); }},
    {"one number spread",
     {40'000},
     [](const Var& x) { return tanh(broadcast_to(mean(x), x.shape())) * x; }},
    {"rows", {200, 300}, [](const Var& x) { return x - mean(x, {0}) + exp(mean(x, {0})); }},
    {"columns", {300, 200}, [](const Var& x) { return exp(x - mean(x, {1}, true)); }},
    {"short rows", {9000, 5}, [](const Var& x) { return tanh(x * mean(x, {0})); }},
    {"middle axes", {20, 30, 50}, [](const Var& x) { return x * mean(x, {1}, true) - x; }},
    {"neighbours",
     {30'001},
     [](const Var& x) {
       const Var a = slice(x, 0, {1, 30'001}) * slice(x, 0, {0, 30'000});
       return a + tanh(a);
     }},
    {"a neighbour of its own",
     {30'001},
     [](const Var& x) {
       const Var y = x * x;
       return slice(y, 0, {1, 30'001}) - slice(tanh(y), 0, {0, 30'000});
     }},
    {"every other one",
     {30'000},
     [](const Var& x) { return slice(x, 0, {0, 30'000, 2}) * slice(x, 0, {1, 30'000, 2}); }},
    {"part of a matrix",
     {200, 300},
     [](const Var& x) { return exp(slice(x, {{10, 150}, {20, 280}})) * 2.0; }},
    {"turned", {200, 300}, [](const Var& x) { return exp(transpose(x)) * transpose(x); }},
    {"another shape", {200, 300}, [](const Var& x) { return tanh(reshape(x * x, {300, 200})); }},
    {"conditions",
     {40'000},
     [](const Var& x) { return where(greater(x, 0), x * x, exp(x)) + where(less(x, 0.5), x, 1); }},
    {"integers",
     {40'000},
     [](const Var& x) { return cast(cast(x * 100.0, DType::i64) * 3, x.dtype()) * x; }},
    {"16 bits between",
     {40'000},
     [](const Var& x) { return cast(cast(x * 2.0, DType::bf16), x.dtype()) * x; }},
    {"operations on 16 bits between",
     {40'000},
     [](const Var& x) {
       const Var narrow = cast(x * 2.0, DType::f16);
       return cast(cast(tanh(narrow) + narrow, DType::bf16) * 3.0, x.dtype()) * x;
     }},
    {"many operations",
     {5000},
     [](const Var& x) {
       Var y = x;
       for (int i = 0; i < 70; ++i) y = y * 0.99 + x * x * 0.01;
       return y;
     }},
    {"nothing", {0, 7}, [](const Var& x) { return tanh(x * 2.0); }},
};

TEST_CASE("groups read through what only moves elements") {
  for (const Reader& reader : readers) {
    INFO(reader.name);
    for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
      const auto results = [&](const RunOptions& options) {
        Tape tape;
        const Var x = tape.parameter(Tensor::uniform(reader.shape, 5, -1, 1, dtype));
        const Var y = reader.call(x);
        const Gradients gradients = backward(sum(y * y), options);
        return std::vector<Tensor>{y.value(), gradients.loss(), gradients[x]};
      };
      const auto alone = results({.threads = 1, .fuse = false});
      CHECK(equal(alone, results({.threads = 1})));
      CHECK(equal(alone, results({.threads = 3})));
    }
  }
}

TEST_CASE("a chain is one pass, and takes no memory between its ends") {
  Tape tape;
  const Var x = tape.parameter(Tensor::full({10'000}, 0.5, DType::f32));
  const Var y = tanh(exp(x * 0.5) + 1.0) * x - 2.0;
  const Report together = evaluate(std::vector<Var>{y}, {.threads = 1});
  CHECK(together.computed == 1);
  tape.drop(y.id());
  const Report apart = evaluate(std::vector<Var>{y}, {.threads = 1, .fuse = false});
  CHECK(apart.computed == 6);
  CHECK(together.measured_peak < apart.measured_peak * 2 / 3);
}

TEST_CASE("a chain is one pass, however long running it takes against planning") {
  for (std::int64_t elements = 1 << 16; elements <= 1 << 22; elements *= 2) {
    INFO(elements);
    Tape tape;
    const Var x = tape.constant(Tensor::full({elements}, 0.5, DType::f32));
    const Var y = tanh(exp(x * 0.5) + 1.0) * x - 2.0;
    CHECK(evaluate(std::vector<Var>{y}, {.threads = 1}).computed == 1);
  }
}

/// x and another operand, combined by one arithmetic operation.
using Join = Var (*)(const Var&, const Var&);
const Join joins[] = {[](const Var& x, const Var& y) { return x + y; },
                      [](const Var& x, const Var& y) { return y + x; },
                      [](const Var& x, const Var& y) { return x - y; },
                      [](const Var& x, const Var& y) { return y - x; },
                      [](const Var& x, const Var& y) { return x * y; },
                      [](const Var& x, const Var&) { return x + 0.3; },
                      [](const Var& x, const Var&) { return 0.7 - x; },
                      [](const Var& x, const Var&) { return x * -1.7; },
                      [](const Var& x, const Var&) { return -x; }};

/// All combinations of two or three operations on the operands x, a and b.
void record_steps(const Var& x, const Var& a, const Var& b, std::vector<Var>& results) {
  for (const Join begin : joins) {
    for (const Join next : joins) {
      results.push_back(next(begin(x, a), b));
      for (const Join end : joins) {
        results.push_back(end(next(begin(x, a), b), x));
        results.push_back(end(next(begin(a, x), a), b));
      }
    }
  }
}

TEST_CASE("steps of arithmetic round as each by itself, whatever they read") {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::f16}) {
    for (const std::int64_t size : {1, 37, 1000}) {
      Tensor x = Tensor::normal({size}, 1, 0, 1, dtype);
      visit(dtype, [&]<class T>(T) {
        x.data<T>().back() = convert_element<T>(std::numeric_limits<double>::infinity());
        x.data<T>().front() = convert_element<T>(-0.0);
      });
      const Tensor operands[] = {Tensor::normal({size}, 2, 0, 1, dtype),
                                 Tensor::normal({1}, 3, 0, 1, dtype)};
      for (const Tensor& a : operands) {
        for (const Tensor& b : operands) {
          const auto run = [&](bool fuse) {
            Tape tape;
            std::vector<Var> results;
            record_steps(tape.constant(x), tape.constant(a), tape.constant(b), results);
            evaluate(results, {.fuse = fuse, .simplify = false});
            std::vector<Tensor> tensors;
            for (const Var& result : results) tensors.push_back(result.value());
            return tensors;
          };
          CHECK(equal(run(true), run(false)));
        }
      }
    }
  }
}

TEST_CASE("slices, pads and concatenations between elementwise operations are not made") {
  Tape tape;
  const Var x = tape.parameter(Tensor::full({10'000}, 0.5, DType::f32));
  Var u = x;
  for (int step = 0; step < 5; ++step) u = u + (roll(u, 1, 0) - 2.0 * u + roll(u, -1, 0)) * 0.1;
  const Report report = backward(sum(u * u), {.threads = 1, .profile = true}).report();
  REQUIRE_FALSE(report.steps.empty());
  for (const Report::Step& step : report.steps) {
    INFO(step.operation);
    CHECK(step.operation.find("concat") == std::string::npos);
    CHECK(step.operation.find("slice") == std::string::npos);
    CHECK(step.operation.find("pad") == std::string::npos);
  }
}

TEST_CASE("the backward part makes again what takes no more bytes to make than to hold") {
  constexpr int steps = 20;
  const auto peak = [](bool fuse) {
    Tape tape;
    const Var x = tape.parameter(Tensor::full({10'000}, 0.5, DType::f32));
    const Var a = tape.parameter(Tensor::full({}, 0.1, DType::f32));
    const Var b = tape.parameter(Tensor::full({}, 0.2, DType::f32));
    Var u = x;
    for (int step = 0; step < steps; ++step) {
      const Var left = roll(u, 1, 0);
      const Var right = roll(u, -1, 0);
      u = u + (a * (left - 2.0 * u + right) - b * (right - left)) * 0.1;
    }
    return backward(sum(u), {.threads = 1, .fuse = fuse}).report().measured_peak;
  };
  // One state per step is kept, instead of a difference and a curvature per step.
  constexpr Bytes array = 40'000;
  CHECK(peak(false) >= 2 * steps * array);
  CHECK(peak(true) <= (steps + 8) * array);
}

TEST_CASE("a recognised program runs with its own numbers and random streams") {
  const auto evaluator = lazy({.threads = 1});
  const auto results = [&](double number, bool fuse) {
    Tape tape(evaluator);
    tape.set_seed(static_cast<std::uint64_t>(number));
    const Var x = tape.parameter(Tensor::full({1000}, 0.5));
    const Var y = dropout(tanh(x * number) + number, 0.5) * 2.0;
    const Gradients gradients = backward(sum(y * y), {.threads = 1, .fuse = fuse});
    return std::vector<Tensor>{gradients.loss(), gradients[x]};
  };
  for (const double number : {2.0, 3.0, 2.0})
    CHECK(equal(results(number, true), results(number, false)));
  CHECK_FALSE(equal(results(2, true), results(3, true)));
}

TEST_CASE("a group that would take more memory than its nodes is split") {
  Tape tape;
  const Var x = tape.parameter(Tensor::full({100, 100}, 0.5));
  const Var y = exp(x);
  const std::vector<Var> values{max(y, {0}), max(y * y, {0}), max(tanh(y), {0}), max(y - 1.0, {0})};
  const Bytes one = evaluate(values, {.threads = 1, .fuse = false}).measured_peak;
  for (const Var& value : values) tape.drop(value.id());
  CHECK(evaluate(values, {.threads = 1}).measured_peak <= one);
  for (const Var& value : values) tape.drop(value.id());
  CHECK(evaluate(values, {.memory_budget = one, .threads = 1}).measured_peak <= one);
}

TEST_CASE("a program recorded anew is known by what planning and fusing read of it") {
  ProgramCache cache;
  const auto lowered = [&](std::int64_t elements, double number, std::int64_t first, bool fuse) {
    Tape tape;
    const Var x = tape.parameter(Tensor::zeros({elements}));
    const Var y = tanh(slice(x, 0, {first, first + 10}) * number);
    const ValueId target = y.id();
    const ProgramSpec spec{{&target, 1}, tape.node_count(), {}, 1};
    return cache.find_or_add(tape, spec)->forms.get(tape, spec, {fuse, true});
  };
  const auto first = lowered(20, 2, 0, true);
  CHECK(lowered(20, 2, 0, true) == first);
  CHECK(lowered(20, 3, 0, true) == first);
  CHECK(lowered(20, 2, 5, true) != first);
  CHECK(lowered(30, 2, 0, true) != first);
  CHECK(lowered(20, 2, 0, false) != first);
  CHECK(lowered(20, 2, 0, true) == first);
}

}  // namespace
}  // namespace palimpsest::fusion_test
