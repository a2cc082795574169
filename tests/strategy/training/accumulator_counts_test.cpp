// Micro-batches whose losses are means over counted targets.
#include <cmath>

#include "palimpsest.h"
#include "tests/catch.h"
#include "tests/error_of.h"

namespace palimpsest::accumulator_counts_test {
namespace {

constexpr std::int64_t none = -100;

/// Four examples of three classes, with a number of targets each.
struct Tokens {
  Tensor weights = Tensor::normal({4, 3}, 1, 0, 1, DType::f64);
  Tensor inputs = Tensor::normal({4, 5, 4}, 2, 0, 1, DType::f64);
  Tensor targets;

  explicit Tokens(const std::vector<std::int64_t>& lengths) {
    std::vector<std::int64_t> all;
    for (const std::int64_t length : lengths) {
      for (std::int64_t t = 0; t < 5; ++t) all.push_back(t < length ? (t + length) % 3 : none);
    }
    targets = Tensor::from(all, {4, 5});
  }

  enum class Loss { tokens, with_penalty, with_mean, two_means };
  Var loss(Tape& tape, const Tensor& x, const Tensor& y, Loss kind) const {
    const Var w = tape.parameter(weights);
    const Var scores = matmul(tape.constant(x), w);
    const Var classes = tape.constant(y);
    const Var loss = cross_entropy(scores, classes, {.ignore_index = none});
    switch (kind) {
      case Loss::tokens:
        return loss;
      case Loss::with_penalty:
        return 2.0 * loss + 0.1 * sum(square(w));
      case Loss::with_mean:
        return loss + mean(square(scores));
      case Loss::two_means:
        return loss + weighted_mean(sum(square(scores)), sum(equal(classes, 1)));
    }
    throw InternalError("unknown loss");
  }
  Gradients whole(Loss kind) const {
    Tape tape;
    return backward(loss(tape, inputs, targets, kind));
  }
  /// The update of micro-batches of these sizes, each on a tape that is gone when it is added.
  Gradients update(const std::vector<std::int64_t>& sizes, Loss kind,
                   GradientNormalization normalization) const {
    GradientAccumulator accumulator(
        {.steps = static_cast<int>(sizes.size()), .normalization = normalization});
    Tape last;
    std::int64_t first = 0;
    for (const std::int64_t size : sizes) {
      const Slice rows{first, first + size};
      const auto step = [&](Tape& tape) {
        accumulator.step(backward(loss(tape, inputs[rows], targets[rows], kind)), size);
      };
      first += size;
      if (first == 4) {
        step(last);
      } else {
        Tape own;
        step(own);
      }
    }
    return accumulator.gradients();
  }
};

double difference(const Gradients& a, const Gradients& b) {
  double most = std::abs(a.loss().item() - b.loss().item());
  for (std::size_t i = 0; i < a.entries().size(); ++i) {
    const Tensor& one = a.entries()[i].gradient;
    for (std::int64_t k = 0; k < one.elements(); ++k) {
      const double each = std::abs(one.at(k) - b.entries()[i].gradient.at(k));
      if (!(each <= most)) most = each;
    }
  }
  return most;
}

using Loss = Tokens::Loss;

TEST_CASE("accumulator: micro-batches weigh by the targets that count") {
  for (const auto& lengths : std::vector<std::vector<std::int64_t>>{
           {5, 1, 1, 1}, {0, 0, 5, 2}, {2, 3, 0, 0}, {0, 1, 0, 0}}) {
    const Tokens model(lengths);
    for (const Loss kind : {Loss::tokens, Loss::with_penalty}) {
      for (const auto normalization : {GradientNormalization::sum, GradientNormalization::mean,
                                       GradientNormalization::weighted}) {
        for (const auto& sizes :
             std::vector<std::vector<std::int64_t>>{{4}, {2, 2}, {1, 1, 1, 1}, {1, 3}, {3, 1}}) {
          const bool is_equal = sizes.size() != 2 || sizes[0] == sizes[1];
          if (!is_equal && normalization == GradientNormalization::mean) continue;
          CAPTURE(lengths, static_cast<int>(kind), static_cast<int>(normalization), sizes);
          CHECK(difference(model.update(sizes, kind, normalization), model.whole(kind)) < 1e-12);
        }
      }
    }
  }
}

TEST_CASE("accumulator: without any target the loss is that of the whole batch") {
  const Tokens model({0, 0, 0, 0});
  const Gradients expected = model.whole(Loss::tokens);
  const Gradients found = model.update({2, 2}, Loss::tokens, GradientNormalization::weighted);
  CHECK(std::isnan(found.loss().item()));
  for (std::int64_t k = 0; k < 12; ++k) {
    CHECK(std::isnan(found.entries()[0].gradient.at(k)) ==
          std::isnan(expected.entries()[0].gradient.at(k)));
  }
}

TEST_CASE("accumulator: one weight for several terms is an error, unless it is right for all") {
  const Tokens uneven({5, 1, 1, 1});
  for (const Loss kind : {Loss::with_mean, Loss::two_means}) {
    check_error([&] { uneven.update({2, 2}, kind, GradientNormalization::weighted); },
                {"[accumulator]", "no one weight", "Execution"});
  }
  check_error([&] { uneven.update({2, 2}, Loss::with_mean, GradientNormalization::sum); },
              {"[accumulator]", "sums over examples", "Execution"});
  const Tokens even({3, 2, 1, 4});
  CHECK(difference(even.update({2, 2}, Loss::with_mean, GradientNormalization::weighted),
                   even.whole(Loss::with_mean)) < 1e-12);
}

TEST_CASE("accumulator: a first step that is refused registers no parameters") {
  const Tokens model({5, 1, 1, 1});
  GradientAccumulator accumulator({.steps = 2, .normalization = GradientNormalization::sum});
  Tape tape;
  const Gradients refused =
      backward(model.loss(tape, model.inputs, model.targets, Loss::with_mean));
  check_error([&] { accumulator.step(refused, 4); }, {"[accumulator]", "sums over examples"});
  // Another model, with a parameter of another shape.
  const Tensor weight = Tensor::from(std::vector{1.0, 2.0}, {2});
  for (const bool is_last : {false, true}) {
    Tape other;
    const Gradients gradients = backward(sum(square(other.parameter(weight))));
    CHECK(accumulator.step(gradients, 1) == is_last);
  }
  CHECK(accumulator.gradients().entries()[0].gradient.at(1) == 8);
}

TEST_CASE("accumulator: gradients of runners have the counts of their runs") {
  const Tokens model({5, 1, 0, 1});
  std::vector<Var> leaves;
  const Program program = Program::gradients([&](Tape& tape) {
    const Var w = tape.parameter(model.weights);
    leaves = {tape.constant(model.inputs[{Slice{0, 1}}]),
              tape.constant(model.targets[{Slice{0, 1}}])};
    return cross_entropy(matmul(leaves[0], w), leaves[1], {.ignore_index = none});
  });
  CHECK(program.outputs().size() == 2);
  Runner runner(program);
  GradientAccumulator accumulator({.steps = 4});
  for (std::int64_t i = 0; i < 4; ++i) {
    runner.bind(leaves[0], model.inputs[{Slice{i, i + 1}}]);
    runner.bind(leaves[1], model.targets[{Slice{i, i + 1}}]);
    runner.run();
    accumulator.step(runner.gradients());
  }
  CHECK(difference(accumulator.gradients(), model.whole(Loss::tokens)) < 1e-12);
}

TEST_CASE("accumulator: counts are found in mixed precision, in checkpoints and behind scaling") {
  const Tokens model({5, 1, 0, 1});
  const auto loss = [&](Tape& tape) {
    const Var w = tape.parameter(model.weights);
    const Var x = tape.constant(model.inputs);
    const Var classes = tape.constant(model.targets);
    return checkpoint(
        [&](const Var& rows) {
          return cross_entropy(matmul(rows, w), classes, {.ignore_index = none});
        },
        x);
  };
  Tape tape;
  const LossCounts counts = backward(loss(tape)).counts();
  CHECK(counts.counts == std::vector<double>{7});
  CHECK(counts.has_other_terms);  // what else a checkpoint computes is not known
  Tape half(precise({PrecisionKind::mixed, DType::bf16}));
  LossScaler scaler;
  const Gradients made =
      backward(scaler.scale(model.loss(half, model.inputs, model.targets, Loss::tokens)));
  CHECK(made.counts().counts == std::vector<double>{7});
  CHECK_FALSE(made.counts().has_other_terms);
}

}  // namespace
}  // namespace palimpsest::accumulator_counts_test
