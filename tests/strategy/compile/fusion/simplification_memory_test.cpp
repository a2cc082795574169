#include "tests/catch.h"
//
#include <rapidcheck.h>
#include <rapidcheck/catch.h>

#include <algorithm>
#include <limits>
#include <random>

#include "palimpsest.h"
#include "tests/strategy/compile/fusion/computed.h"
#include "tests/strategy/compile/fusion/results.h"

namespace palimpsest::simplification_memory_test {
namespace {

TEST_CASE("what a checkpoint computes again is computed again") {
  const auto record = [](Tape& tape) {
    Var x = tape.parameter(Tensor::uniform({64, 64}, 1, -1, 1));
    const Var w = tape.parameter(Tensor::uniform({64, 64}, 2, -0.1, 0.1));
    const Var data = tape.constant(Tensor::uniform({64, 64}, 3, -0.1, 0.1));
    Var y = x;
    for (int block = 0; block < 6; ++block) {
      y = checkpoint(
          [&](const Var& z) {
            return tanh(matmul(tanh(matmul(z, w) + matmul(data, data)), w)) +
                   dropout(exp(uniform(z.tape(), {64, 64})), 0.5);
          },
          y);
    }
    const Var loss = sum(y * y);
    const Var other = sum(exp(y));
    return std::vector{gradient(loss, w), gradient(other, w)};
  };
  const Computed expected = compute(record, as_recorded);
  const Computed computed = compute(record, {.threads = 1});
  CHECK(equal(computed.tensors, expected.tensors));
  CHECK(computed.report.predicted_peak <= expected.report.predicted_peak);
}

TEST_CASE("the backward part makes for itself what the forward part need not hold") {
  const auto record = [](Tape& tape) {
    const Var x = tape.parameter(Tensor::uniform({256, 64}, 1, -1, 1));
    const Var w = tape.parameter(Tensor::uniform({64, 64}, 2, -1, 1));
    const CustomOperation operation({.name = "squares",
                                     .forward =
                                         [](const CustomCall& call) {
                                           for (std::int64_t i = 0; i < call.outputs[0].elements();
                                                ++i) {
                                             const float x = call.inputs[0].data<float>()[i];
                                             call.outputs[0].data<float>()[i] = x * x;
                                           }
                                         },
                                     .vjp =
                                         [w](const Pullback& p) {
                                           // Reads again a product that the forward part has
                                           // computed and released.
                                           p.set(0, p.adjoint() * sum(matmul(p.input(), w)));
                                         }});
    const Var early = stop_gradient(sum(exp(matmul(x, w))));
    Var y = operation({x});
    for (int i = 0; i < 3; ++i) y = tanh(matmul(y, w));
    return sum(y) + early;
  };
  Tape tape;
  const Var loss = record(tape);
  const Gradients apart = backward(loss, as_recorded);
  const Gradients together = backward(loss, {.threads = 1});
  CHECK(same_bits(apart.entries()[0].gradient, together.entries()[0].gradient));
  CHECK(together.report().predicted_peak <= apart.report().predicted_peak);
}

/// A program in which every node is recorded twice, and some of them three times.
std::vector<Var> record_doubled(Tape& tape, std::uint64_t seed, int size) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  const std::int64_t rows = 5 + static_cast<std::int64_t>(below(200));
  std::vector<Var> leaves;
  for (std::uint64_t i = 0; i < 3; ++i) {
    leaves.push_back(tape.parameter(Tensor::uniform({rows, 8}, seed + i, -1, 1, DType::f64)));
  }
  leaves.push_back(tape.parameter(Tensor::uniform({8, 8}, seed, -0.4, 0.4, DType::f64)));
  const std::uint64_t order = random();
  const auto part = [&](std::size_t length) {
    std::mt19937_64 same(order);
    const auto pick = [&](std::size_t n) { return static_cast<std::size_t>(same() % n); };
    std::vector<Var> values(leaves.begin(), leaves.begin() + 3);
    const auto any = [&] { return values[pick(values.size())]; };
    for (std::size_t i = 0; i < length; ++i) {
      switch (pick(8)) {
        case 0:
          values.push_back(matmul(any(), leaves[3]));
          break;
        case 1:
          values.push_back(any() - mean(any(), {0}, true));
          break;
        case 2:
          values.push_back(any() * tanh(any() * 0.5));
          break;
        case 3:
          values.push_back(softmax(any(), 1) * 1.0);
          break;
        case 4:
          values.push_back(
              reshape(reshape(any(), {-1}) * full(tape, {}, 0.25, DType::f64), {rows, 8}));
          break;
        case 5:
          values.push_back(batch_norm(any()).y + full(tape, {8}, 0.5, DType::f64) * 0.5);
          break;
        case 6:
          values.push_back(any() * any());
          break;
        default:
          values.push_back(exp(-square(tanh(any()))));
          break;
      }
    }
    return sum(values.back() * values.back()) + mean(values[values.size() / 2]);
  };
  const auto length = static_cast<std::size_t>(size);
  Var loss = part(length) + part(length) * 0.5;
  if (below(2) == 0) loss = loss + tanh(part(length / 2));
  leaves.push_back(loss);
  return leaves;
}

TEST_CASE("programs recorded twice are computed once, within any budget") {
  rc::prop("the same bits, fewer nodes, no larger budget needed", [] {
    const auto seed = *rc::gen::inRange<std::uint64_t>(1, 1'000'000);
    const int size = *rc::gen::inRange(2, 25);
    const int threads = *rc::gen::element(1, 2, 8);
    const bool fuse = *rc::gen::arbitrary<bool>();
    std::vector<Tensor> expected;
    {
      Tape interpreted;
      const std::vector<Var> values = record_doubled(interpreted, seed, size);
      for (const Var& each : gradient(values.back(), std::span(values).first(4))) {
        expected.push_back(each.value());
      }
    }
    Tape tape;
    const Var loss = record_doubled(tape, seed, size).back();
    const auto run = [&](const RunOptions& options) {
      const Gradients gradients = backward(loss, options);
      std::vector<Tensor> tensors;
      for (const auto& entry : gradients) tensors.push_back(entry.gradient);
      RC_ASSERT(equal(tensors, expected));
      RC_ASSERT(gradients.report().predicted_peak <= options.memory_budget);
      RC_ASSERT(gradients.report().measured_peak <= gradients.report().predicted_peak);
      return gradients.report();
    };
    const Report recorded = run({.threads = threads, .fuse = fuse, .simplify = false});
    const Report once = run({.threads = threads, .fuse = fuse});
    RC_ASSERT(once.common_subexpressions > 0);
    if (!fuse) RC_ASSERT(once.computed < recorded.computed);
    const auto smallest = [&](bool simplify) -> Bytes {
      try {
        plan_backward(loss,
                      {.memory_budget = 1, .threads = threads, .fuse = fuse, .simplify = simplify});
        return 0;
      } catch (const BudgetError& error) {
        return error.smallest_feasible();
      }
    };
    const Bytes least = smallest(true);
    RC_ASSERT(least <= smallest(false));
    double cost = std::numeric_limits<double>::infinity();
    for (int step = 0; step < 4; ++step) {
      const Bytes more = std::max<Bytes>(once.keep_all_peak - least, 0) * step / 3;
      const RunOptions options{.memory_budget = least + more, .threads = threads, .fuse = fuse};
      run(options);
      const double now = plan_backward(loss, options).simulation.cost;
      RC_ASSERT(now <= cost);
      cost = now;
    }
  });
}

TEST_CASE("values that were computed as one do not take twice the bytes in the run that follows") {
  Tape tape;
  const Var x = tape.parameter(Tensor::uniform({64, 64}, 1, -1, 1));
  const Var both[] = {exp(x), exp(x)};
  const Var other = sum(x);
  const RunOptions options{.memory_budget = 64 * 64 * 4 * 3 / 2, .threads = 1};
  evaluate(both, options);
  evaluate({&other, 1}, options);
  CHECK(same_bits(both[0].value(), both[1].value()));
}

TEST_CASE("values that were computed as one lie apart for what follows") {
  Tape tape;
  const Var x = tape.parameter(Tensor::uniform({64, 64}, 1, -1, 1));
  const Var w = tape.parameter(Tensor::uniform({64, 64}, 2, -1, 1));
  const Var a = matmul(x, w);
  const Var b = matmul(x, w);
  const Var both[] = {a, b};
  evaluate(both, {.threads = 1});
  CHECK(tape.has_value(a.id()));
  CHECK(tape.has_value(b.id()));
  CHECK(same_bits(a.value(), b.value()));
  const Bytes bytes = 64 * 64 * 4;
  // One of them is taken over, the other one is still read.
  const Var y = sum((a + matmul(x, w)) * exp(b) + b);
  const Report report = evaluate({&y, 1}, {.memory_budget = 6 * bytes, .threads = 1});
  CHECK(report.measured_peak <= 6 * bytes);
  Tape other;
  const Var u = other.parameter(x.value());
  const Var v = other.parameter(w.value());
  const Var z = matmul(u, v);
  CHECK(same_bits(y.value(), sum((z + matmul(u, v)) * exp(z) + z).value()));
}

}  // namespace
}  // namespace palimpsest::simplification_memory_test
