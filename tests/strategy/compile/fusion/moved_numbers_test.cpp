#include "palimpsest.h"
#include "tests/catch.h"
#include "tests/strategy/compile/fusion/results.h"

/// Fused groups that read moved constants: adjoints that are equal at every position, after
/// rolling, slicing, padding and concatenating.
namespace moved_numbers_test {

using namespace palimpsest;

namespace {

struct Case {
  const char* name;
  Var (*loss)(const Var& v);
};

Var heat(const Var& v) {
  Var u = v;
  for (int step = 0; step < 5; ++step) u = u + 0.1 * (roll(u, 1, 0) - 2.0 * u + roll(u, -1, 0));
  return sum(u);
}

constexpr Case cases[] = {
    {"sum and sum of a slice", [](const Var& v) { return sum(v) + sum(slice(v, 0, {.stop = 2})); }},
    {"sum of a roll", [](const Var& v) { return sum(v + roll(v, 1, 0)); }},
    {"mean of a difference", [](const Var& v) { return mean(v - roll(v, 1, 0)); }},
    {"trapezoid rule",
     [](const Var& v) {
       const std::int64_t n = v.shape()[0];
       return 0.5 * sum(slice(v, 0, {.start = 1}) + slice(v, 0, {.stop = n - 1}));
     }},
    {"sum and sum of one element", [](const Var& v) { return sum(v) + sum(select(v, 0, 0)); }},
    {"sum of a concatenation", [](const Var& v) { return sum(concat({v, v + roll(v, 1, 0)}, 0)); }},
    {"heat", heat},
    {"padded numbers",
     [](const Var& v) {
       const Var two = full(v.tape(), v.shape(), 2, v.dtype());
       return sum(v * concat({slice(two, 0, {.stop = 1}), slice(v, 0, {.start = 1})}, 0));
     }},
};

std::vector<Tensor> gradients_of(const Case& each, const Shape& shape, DType dtype, bool eagerly,
                                 const RunOptions& options) {
  Tape tape(eagerly ? eager() : lazy());
  const Var v = tape.parameter(Tensor::uniform(shape, 1, -1, 1, dtype));
  const Gradients gradients = backward(each.loss(v), options);
  return {gradients.loss(), gradients[v]};
}

}  // namespace

TEST_CASE("Numbers that are moved and added have the bits of single operations", "[fusion]") {
  const Case& each = GENERATE(from_range(std::begin(cases), std::end(cases)));
  const DType dtype = GENERATE(DType::f64, DType::f32, DType::bf16, DType::f16);
  const Shape shape = GENERATE(Shape{2}, Shape{5}, Shape{1000}, Shape{4, 3}, Shape{300, 7});
  CAPTURE(each.name, name_of(dtype), to_string(shape));
  const RunOptions single{.threads = 1, .fuse = false, .simplify = false};
  const std::vector<Tensor> reference = gradients_of(each, shape, dtype, false, single);
  for (const bool simplify : {false, true}) {
    for (const bool fuse : {false, true}) {
      for (const int threads : {1, 2}) {
        const RunOptions options{.threads = threads, .fuse = fuse, .simplify = simplify};
        for (const bool eagerly : {false, true}) {
          CAPTURE(simplify, fuse, threads, eagerly);
          CHECK(equal(gradients_of(each, shape, dtype, eagerly, options), reference));
        }
      }
    }
  }
}

TEST_CASE("A program draws numbers that are moved anew for another tape of its structure",
          "[fusion]") {
  // The adjoint is 3 or 5 at every position; plans and groups are looked up by structure.
  Tape tape;
  for (const double factor : {3.0, 5.0, 3.0}) {
    tape.clear();
    const Var v = tape.parameter(Tensor::full({4}, 1, DType::f64));
    const Gradients gradients = backward(factor * (sum(v) + sum(slice(v, 0, {.stop = 2}))));
    CHECK(same_bits(gradients[v], Tensor::from({2 * factor, 2 * factor, factor, factor}, {4})));
  }
}

TEST_CASE("Programs and plans of numbers that are moved", "[fusion]") {
  const Case& each = GENERATE(from_range(std::begin(cases), std::end(cases)));
  CAPTURE(each.name);
  const Tensor values = Tensor::uniform({64}, 1, -1, 1, DType::f64);
  const auto record = [&](Tape& tape) { return each.loss(tape.parameter(values)); };
  Tape tape;
  const Var loss = record(tape);
  CHECK(plan_backward(loss).predicted_peak() > 0);
  Runner runner(Program::gradients(record));
  runner.run();
  CHECK(same_bits(runner.gradients().entries()[0].gradient, backward(loss).entries()[0].gradient));
}

}  // namespace moved_numbers_test
