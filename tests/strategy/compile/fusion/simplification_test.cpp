#include "strategy/compile/fusion/simplification.h"

#include <cmath>
#include <limits>

#include "palimpsest.h"
#include "strategy/evaluators/engine.h"
#include "tests/catch.h"
#include "tests/strategy/compile/fusion/computed.h"
#include "tests/strategy/compile/fusion/results.h"

namespace palimpsest::simplification_test {
namespace {

Var matrix(Tape& tape, std::uint64_t seed) {
  return tape.parameter(Tensor::uniform({12, 12}, seed, -1, 1, DType::f64));
}

// Common subexpressions --------------------------------------------------------------------------

struct Duplicates {
  const char* name;
  Record record;
  std::uint32_t common_subexpressions;
};

const Duplicates duplicates[] = {
    {"products",
     [](Tape& tape) {
       const Var x = matrix(tape, 1);
       const Var w = matrix(tape, 2);
       return std::vector{sum(matmul(x, w) * matmul(x, w))};
     },
     1},
    {"what follows from them",
     [](Tape& tape) {
       const Var x = matrix(tape, 1);
       const Var w = matrix(tape, 2);
       return std::vector{sum(tanh(matmul(x, w)) - exp(tanh(matmul(x, w))))};
     },
     2},
    {"products of other options",
     [](Tape& tape) {
       const Var x = matrix(tape, 1);
       return std::vector{matmul(x, x), matmul(x, x, {.transpose_a = true})};
     },
     0},
    {"equal numbers",
     [](Tape& tape) {
       const Var x = matrix(tape, 1);
       return std::vector{sum(matmul(x * 0.5, x)), sum(matmul(x, x * 0.5))};
     },
     1},
    {"other numbers",
     [](Tape& tape) {
       const Var x = matrix(tape, 1);
       return std::vector{sum(matmul(x * 0.5, x)), sum(matmul(x, x * 0.25))};
     },
     0},
    {"zeros of two signs",
     [](Tape& tape) {
       const Var x = matrix(tape, 1);
       return std::vector{1.0 / (x * 0.0), 1.0 / (x * -0.0)};
     },
     0},
    {"equal numbers as values",
     [](Tape& tape) {
       const Var x = matrix(tape, 1);
       const Var half = full(tape, {}, 0.5, DType::f64);
       const Var other = full(tape, {}, 0.5, DType::f64);
       return std::vector{sum(x * half), sum(sqrt(exp(x * other)))};
     },
     1},
    {"several outputs",
     [](Tape& tape) {
       const Var x = matrix(tape, 1);
       const BatchNorm a = batch_norm(x);
       const BatchNorm b = batch_norm(x);
       return std::vector{sum(a.y * b.y), sum(a.variance), sum(b.mean)};
     },
     1},
    {"slices, and slices of slices",
     [](Tape& tape) {
       const Var x = matrix(tape, 1);
       const auto part = [&](std::int64_t first) { return slice(x, 0, {first, first + 4}); };
       return std::vector{sum(part(0) * part(1)), sum(exp(part(0)) - part(2))};
     },
     1},
    {"targets",
     [](Tape& tape) {
       const Var x = matrix(tape, 1);
       return std::vector{exp(x), exp(x), tanh(exp(x)), reshape(exp(x), {-1})};
     },
     3},
    {"leaves with equal values",
     [](Tape& tape) { return std::vector{exp(matrix(tape, 1)), exp(matrix(tape, 1))}; }, 0},
    {"random numbers",
     [](Tape& tape) {
       const Var x = matrix(tape, 1);
       return std::vector{uniform(tape, {9}), uniform(tape, {9}), dropout(x, 0.5), dropout(x, 0.5)};
     },
     0},
    {"random numbers of one stream, and of two generations",
     [](Tape& tape) {
       const Var x = matrix(tape, 1);
       const RandomStream stream = tape.fresh_stream();
       return std::vector{dropout(x, 0.5, stream), dropout(x, 0.5, stream),
                          dropout(x, 0.5, in_round(stream, 1))};
     },
     0},
    {"an identity",
     [](Tape& tape) {
       const Var x = matrix(tape, 1);
       return std::vector{exp(x), exp(identity(x)), exp(identity(x))};
     },
     0},
};

TEST_CASE("what is recorded twice is computed once, with the same bits") {
  for (const auto& [name, record, common_subexpressions] : duplicates) {
    INFO(name);
    const Computed expected = compute(record, as_recorded);
    CHECK(expected.report.common_subexpressions == 0);
    for (const bool fuse : {true, false}) {
      for (const int threads : {1, 3}) {
        const Computed computed = compute(record, {.threads = threads, .fuse = fuse});
        CHECK(equal(computed.tensors, expected.tensors));
        CHECK(computed.report.common_subexpressions == common_subexpressions);
        CHECK(computed.report.folded_constants == 0);
      }
    }
    const Computed alone = compute(record, {.threads = 1, .fuse = false, .simplify = false});
    const Computed once = compute(record, {.threads = 1, .fuse = false});
    CHECK((once.report.computed < alone.report.computed) == (common_subexpressions > 0));
  }
}

TEST_CASE("a user's operation is called once for the same arguments") {
  int calls = 0;
  const CustomOperation operation({.name = "counted", .forward = [&](const CustomCall& call) {
                                     ++calls;
                                     call.outputs[0].data<float>()[0] =
                                         2 * call.inputs[0].data<float>()[0];
                                   }});
  Tape tape;
  const Var x = tape.parameter(Tensor::scalar(3));
  const Var y = operation({x}) + operation({x});
  evaluate({&y, 1}, {.threads = 1});
  CHECK(y.value().item() == 12);
  CHECK(calls == 1);
}

// Constants --------------------------------------------------------------------------------------

TEST_CASE("steps of arithmetic that change nothing are left out, and no others") {
  struct Row {
    const char* name;
    Var (*call)(const Var&);
    std::uint32_t left_out;
  };
  const Row rows[] = {
      {"x·1", [](const Var& x) { return x * 1.0; }, 1},
      {"x/1", [](const Var& x) { return x / 1.0; }, 1},
      {"x − 0", [](const Var& x) { return x - 0.0; }, 1},
      {"x + 0", [](const Var& x) { return x + 0.0; }, 0},
      {"x·2", [](const Var& x) { return x * 2.0; }, 0},
      {"x·ones", [](const Var& x) { return x * full_like(x, 1); }, 1},
      {"ones·x", [](const Var& x) { return full_like(x, 1) * x; }, 1},
      {"x·one", [](const Var& x) { return x * full(x.tape(), {}, 1, x.dtype()); }, 1},
      {"x/one", [](const Var& x) { return x / full(x.tape(), {}, 1, x.dtype()); }, 1},
      {"one/x", [](const Var& x) { return full_like(x, 1) / x; }, 0},
      {"x − zeros", [](const Var& x) { return x - full_like(x, 0); }, 1},
      {"x − −zeros", [](const Var& x) { return x - full_like(x, -0.0); }, 0},
      {"zeros − x", [](const Var& x) { return full_like(x, 0) - x; }, 0},
      {"x + zeros", [](const Var& x) { return x + full_like(x, 0); }, 0},
      {"x + −zeros", [](const Var& x) { return x + full_like(x, -0.0); }, 1},
      {"x·ones of another shape",
       [](const Var& x) { return x * full(x.tape(), {2, x.shape()[0]}, 1, x.dtype()); }, 0},
  };
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const std::vector<double> numbers{0.0,  -0.0, 1.5,      -1e-310,   1e-40,
                                    3e-6, 1e30, infinity, -infinity, std::nan("5")};
  const auto special = Tensor::from<double>(numbers, {10});
  for (const Row& row : rows) {
    INFO(row.name);
    for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
      INFO(name_of(dtype));
      const Record record = [&](Tape& tape) {
        const Var x = tape.parameter(special.to(dtype));
        return std::vector{row.call(concat(std::vector{x, x}, 0))};
      };
      const Computed computed = compute(record, {.threads = 1});
      CHECK(equal(computed.tensors, compute(record, as_recorded).tensors));
      CHECK(computed.report.common_subexpressions == row.left_out);
    }
  }
}

TEST_CASE("a leaf does not become a result by what leaves it as it is") {
  Tape tape;
  const Tensor leaf = Tensor::vector({1, 2});
  const Var x = tape.parameter(leaf);
  const Var y = reshape(x * 1.0, {2, 1});
  CHECK(y.value().raw() != leaf.raw());
}

TEST_CASE("what is made of numbers alone is a number") {
  const Record record = [](Tape& tape) {
    const Var x = matrix(tape, 1);
    const Var two = full(tape, {1, 12}, 2, DType::f64);
    const Var six = tanh(two * 3.0 - full(tape, {12, 1}, 1, DType::f64));
    const Var count =
        sum(broadcast_to(two, {5, 12})) + cast(full(tape, {}, 3, DType::i64), x.dtype());
    return std::vector{matmul(x, six), x * count, exp(two), where(greater(two, 1), x, six)};
  };
  const Computed expected = compute(record, as_recorded);
  for (const bool fuse : {true, false}) {
    const Computed computed = compute(record, {.threads = 1, .fuse = fuse});
    CHECK(equal(computed.tensors, expected.tensors));
    CHECK(computed.report.folded_constants == 9);
    CHECK(count_of(computed.report, "tanh") == 0);
    CHECK(count_of(computed.report, "sum") == 0);
  }
  Program program = Program::values(record, {.threads = 1, .profile = true});
  Runner runner(program);
  for (int run = 0; run < 2; ++run) {
    runner.run();
    for (std::size_t i = 0; i < expected.tensors.size(); ++i) {
      CHECK(same_bits(runner.value(program.outputs()[i]), expected.tensors[i]));
    }
    CHECK(count_of(runner.report(), "sum") == 0);
  }
}

TEST_CASE("numbers that f64 does not hold, random ones and long sums are computed") {
  const Record record = [](Tape& tape) {
    const Var zero = full(tape, {3}, 0, DType::f64);
    return std::vector{zero / zero, log(zero), dropout(exp(zero), 0.5),
                       sum(full(tape, {1 << 18}, 0.1, DType::f64))};
  };
  const Computed computed = compute(record, {.threads = 1});
  CHECK(equal(computed.tensors, compute(record, as_recorded).tensors));
  CHECK(computed.report.folded_constants == 1);
}

// Tapes recorded again ---------------------------------------------------------------------------

TEST_CASE("a program recorded again with other numbers computes with those") {
  using Numbers = std::array<double, 4>;
  const auto record = [](Tape& tape, const Numbers& numbers) {
    const auto [a, b, c, d] = numbers;
    const Var x = matrix(tape, 1);
    const Var p = matmul(x * a, x) + full(tape, {}, d, DType::f64);
    const Var q = matmul(x * b, x) + full(tape, {}, d, DType::f64);
    const Var r = tanh(p * full(tape, {12}, c, DType::f64)) * full(tape, {}, c * 2, DType::f64);
    return std::vector{sum(p * q + r), sum(exp(full(tape, {3}, d, DType::f64) * c))};
  };
  const Numbers all[] = {{0.5, 0.5, 1, 2}, {0.7, 0.7, 1, 2},    {0.5, 0.7, 1, 2},
                         {0.5, 0.5, 1, 2}, {0.5, 0.5, 3, 2},    {0.7, 0.5, 1, 3},
                         {0.5, 0.5, 1, 2}, {0.1, 0.2, 1, -0.0}, {0.1, 0.2, 1, 0.0}};
  const std::uint64_t plans[] = {1, 1, 2, 2, 3, 3, 3, 3, 3};
  for (const bool fuse : {true, false}) {
    const auto evaluator = std::make_shared<std::shared_ptr<EngineEvaluator>>(lazy());
    Tape tape(*evaluator);
    const Engine& engine = (*evaluator)->engine();
    std::size_t step = 0;
    for (const Numbers& numbers : all) {
      INFO(step);
      tape.clear();
      const std::vector<Var> values = record(tape, numbers);
      evaluate(values, {.threads = 1, .fuse = fuse});
      std::vector<Tensor> tensors;
      for (const Var& value : values) tensors.push_back(value.value());
      const auto expected =
          compute([&](Tape& fresh) { return record(fresh, numbers); }, as_recorded);
      CHECK(equal(tensors, expected.tensors));
      CHECK(engine.plans_made() <= plans[step++]);
    }
  }
}

TEST_CASE("nodes that no target needs are not computed") {
  const Record record = [](Tape& tape) {
    const Var x = matrix(tape, 1);
    const Var unread = matmul(exp(x), x);
    batch_norm(unread * 2.0);
    return std::vector{tanh(x)};
  };
  for (const bool simplify : {true, false}) {
    for (const bool fuse : {true, false}) {
      const Computed computed = compute(record, {.threads = 1, .fuse = fuse, .simplify = simplify});
      CHECK(computed.report.computed == 1);
      CHECK(computed.report.steps.size() == 1);
    }
  }
}

}  // namespace
}  // namespace palimpsest::simplification_test
