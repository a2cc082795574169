#include "palimpsest.h"
#include "tests/catch.h"
#include "tests/strategy/compile/fusion/results.h"

namespace palimpsest::sibling_fusion_test {
namespace {

struct Loss {
  const char* name;
  Var (*of)(const Var& x, const Var& factor);
  std::uint32_t units;  ///< that make its value and both gradients, with the first adjoint
};

const Loss losses[] = {
    {"a sum of squares",
     [](const Var& x, const Var& factor) {
       const Var y = (x * 2.0 + 1.0) * x - relu(x * factor);
       return sum(y * y);
     },
     2},
    {"a mean", [](const Var& x, const Var& factor) { return mean(tanh(x * factor)); }, 2},
    {"a sum of a moved array",
     [](const Var& x, const Var& factor) {
       const Var y = x * factor - roll(x, 1, 0);
       return sum(y * y);
     },
     3},
    {"a loss whose gradient reads its sum",
     [](const Var& x, const Var& factor) { return log(sum(exp(x * factor))); }, 4},
    {"sums of rows that others read",
     [](const Var& x, const Var& factor) {
       const Var rows = reshape(x * factor, {x.shape()[0] / 2, 2});
       const Var sums = sum(rows * rows, {1});
       return sum(sums * sums) + sum(sums);
     },
     7},
};

struct Made {
  std::vector<Tensor> tensors;
  Report report;
};

Made make(const Loss& loss, std::int64_t elements, DType dtype, const RunOptions& options) {
  Tape tape;
  const Var x = tape.parameter(Tensor::uniform({elements}, 1, -1, 1, dtype));
  const Var factor = tape.parameter(Tensor::scalar(0.75, dtype));
  const Gradients gradients = backward(loss.of(x, factor), options);
  return {{gradients.loss(), gradients[x], gradients[factor]}, gradients.report()};
}

Bytes smallest_budget(const Loss& loss, std::int64_t elements, DType dtype, bool fuse) {
  try {
    make(loss, elements, dtype, {.memory_budget = 1, .threads = 1, .fuse = fuse});
  } catch (const BudgetError& error) {
    return error.smallest_feasible();
  }
  FAIL("one byte is enough");
  return 0;
}

TEST_CASE("losses and their gradients take as few units as expected", "[fusion]") {
  for (const Loss& loss : losses) {
    INFO(loss.name);
    CHECK(make(loss, 100'000, DType::f32, {.threads = 1}).report.computed == loss.units);
  }
}

TEST_CASE("groups stay apart if arrays would be in memory for longer", "[fusion]") {
  constexpr Bytes array = 4 << 20;
  constexpr Bytes little = array / 8;
  const auto peak = [](const LossAndOutputs& values) {
    return backward(values, {.threads = 1}).report().measured_peak;
  };
  SECTION("that the later group writes over") {
    Tape tape;
    const Var p = tape.parameter(Tensor::uniform({1 << 10, 1}, 1));
    const Var q = tape.parameter(Tensor::uniform({1, 1 << 10}, 2));
    const Var h = matmul(p, q);
    CHECK(peak({sum(h * h + 3.0 * roll(h, 1, 0)), {}}) <= array + little);
  }
  SECTION("that the later group makes again") {
    Tape tape;
    const Var x = tape.parameter(Tensor::uniform({1 << 20}, 1));
    const Var y = tape.parameter(Tensor::uniform({1 << 20}, 2));
    const Var u = exp(x);
    const Var k = cumsum(u, 0);
    const Var metric = sum(u * k);
    const Var z = cumsum(exp(y), 0);
    CHECK(peak({logsumexp(k) + logsumexp(z), {metric}}) <= 3 * array + little);
  }
}

TEST_CASE("groups that read the same array have the bits of single operations", "[fusion]") {
  const DType dtype = GENERATE(DType::f64, DType::f32, DType::bf16);
  for (const Loss& loss : losses) {
    for (const std::int64_t elements : {2, 10, 1'000, 50'000}) {
      CAPTURE(loss.name, name_of(dtype), elements);
      const Made alone = make(loss, elements, dtype, {.threads = 1, .fuse = false});
      const auto same = [&](const RunOptions& options) {
        return equal(make(loss, elements, dtype, options).tensors, alone.tensors);
      };
      CHECK(same({.threads = 1}));
      CHECK(same({.threads = 3}));
      CHECK(same({.threads = 1, .native = NativeCode::at_once}));
      const Bytes smallest = smallest_budget(loss, elements, dtype, false);
      const Bytes most = alone.report.predicted_peak;
      for (const Bytes budget : {smallest, (smallest + most) / 2, most}) {
        CHECK(same({.memory_budget = budget, .threads = 1}));
      }
    }
  }
}

}  // namespace
}  // namespace palimpsest::sibling_fusion_test
