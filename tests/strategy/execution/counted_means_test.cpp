// Means over counted targets in parts of a batch: the loss and the gradient of the whole batch.
#include <cmath>
#include <limits>

#include "tests/error_of.h"
#include "tests/strategy/execution/counted_tokens.h"

namespace palimpsest::counted_means_test {
namespace {

using Catch::Matchers::Contains;

TEST_CASE_METHOD(FourThreads, "counted means: parts of a batch add up to the whole") {
  const std::vector<std::vector<std::int64_t>> batches{
      {5, 1, 1, 1}, {0, 0, 5, 2}, {3, 0, 1, 5, 0, 4, 2}};
  for (const auto& lengths : batches) {
    for (const bool has_other_terms : {false, true}) {
      const SmallModel model = tokens(lengths, has_other_terms);
      const Found expected = whole(model);
      for (const int parts : {1, 2, 3, 4}) {
        for (const ExecutionStrategy& strategy : ways_to_cut(parts)) {
          CAPTURE(lengths.size(), has_other_terms, strategy.summary());
          CHECK(difference(run(model, strategy), expected) < 1e-12);
        }
      }
    }
  }
}

TEST_CASE("counted means: sums over examples keep them") {
  SmallModel model = tokens({4, 0, 2, 1}, false);
  model.loss = [](Tape&, std::span<const Var> p, std::span<const Var> b) {
    const Var x = tanh(b[0]);
    return cross_entropy(matmul(x, p[0]), b[1], {.ignore_index = ignored}) +
           sum(square(matmul(x, p[1])));
  };
  const Found expected = whole(model);
  for (const int parts : {2, 4}) {
    const Found found = run(model, {.accumulation = parts}, 2, LossReduction::sum);
    CHECK(difference(found, expected) < 1e-11);
  }
}

TEST_CASE("counted means: in a budget and in half width, parts are those of the whole") {
  const SmallModel model = tokens({5, 1, 0, 1}, true);
  const Found expected = whole(model);
  Bytes smallest = 0;
  try {
    run(model, {.accumulation = 2, .run = {.memory_budget = 1}});
  } catch (const BudgetError& error) {
    smallest = error.smallest_feasible();
  }
  const ExecutionStrategy within{.accumulation = 2, .run = {.memory_budget = smallest}};
  CHECK(difference(run(model, within), expected) < 1e-12);
  const Precision precision{PrecisionKind::mixed, DType::f16};
  const Found one = run(model, {.precision = precision});
  const Found two = run(model, {.precision = precision, .accumulation = 2});
  CHECK(difference(one, expected) < 3e-2);
  CHECK(difference(two, expected) < 3e-2);
}

TEST_CASE("counted means: a batch without targets has the loss of its whole") {
  const SmallModel model = tokens({0, 0, 0, 0}, false);
  const Found expected = whole(model);
  REQUIRE(std::isnan(expected.loss));
  const Found found = run(model, {.accumulation = 2});
  CHECK(std::isnan(found.loss));
  for (std::int64_t k = 0; k < 12; ++k) {
    CHECK(std::isnan(found.gradients[0].at(k)) == std::isnan(expected.gradients[0].at(k)));
  }
}

TEST_CASE(
    "counted means: in a checkpoint, of computed targets, and where a model looks at values") {
  const SmallModel model = tokens({5, 1, 0, 3, 2}, false);
  const auto targets = [](const Var& given) { return slice(given, 1, {.start = 1}); };
  const auto features = [](const Var& given) { return slice(tanh(given), 1, {.stop = 4}); };
  const std::vector<std::pair<const char*, ModelFunction>> models{
      {"targets given to a checkpoint",
       [&](Tape&, std::span<const Var> p, std::span<const Var> b) {
         return checkpoint(
             [](const Var& x, const Var& w, const Var& classes) {
               return cross_entropy(matmul(x, w), classes, {.ignore_index = ignored});
             },
             features(b[0]), p[0], targets(b[1]));
       }},
      {"targets captured by a checkpoint",
       [&](Tape&, std::span<const Var> p, std::span<const Var> b) {
         const Var classes = targets(b[1]);
         return checkpoint(
             [&](const Var& x) {
               return cross_entropy(matmul(x, p[0]), classes, {.ignore_index = ignored});
             },
             features(b[0]));
       }},
      {"targets that the model predicts",
       [&](Tape&, std::span<const Var> p, std::span<const Var> b) {
         const Var logits = matmul(features(b[0]), p[0]);
         const Var likely = greater(max(logits, {-1}), 0.5);
         const Var classes = where(likely, cast(argmax(logits, -1), DType::i64),
                                   Tensor::full({}, ignored, DType::i64));
         return cross_entropy(logits, classes, {.ignore_index = ignored});
       }},
      {"a loss that is looked at", [&](Tape&, std::span<const Var> p, std::span<const Var> b) {
         const Var loss =
             cross_entropy(matmul(features(b[0]), p[0]), targets(b[1]), {.ignore_index = ignored});
         loss.value();
         return loss;
       }}};
  for (const auto& [name, loss] : models) {
    SmallModel other = model;
    other.loss = loss;
    const Found expected = whole(other);
    for (const int parts : {2, 3}) {
      for (const ExecutionMode mode :
           {ExecutionMode::lazy, ExecutionMode::eager, ExecutionMode::hybrid}) {
        CAPTURE(name, parts, name_of(mode));
        CHECK(difference(run(other, {.mode = mode, .accumulation = parts}), expected) < 1e-12);
      }
    }
  }
}

TEST_CASE("counted means: a mean in a loop is refused where a batch is cut, and only there") {
  SmallModel model = tokens({5, 1, 0, 3}, false);
  model.loss = [](Tape& tape, std::span<const Var> p, std::span<const Var> b) {
    return scan(tape.constant(Tensor::zeros({}, DType::f64)), 2,
                [&](const Var& sum, const StepNumber&) {
                  return sum + cross_entropy(matmul(b[0], p[0]), b[1], {.ignore_index = ignored});
                }) +
           0.0 * sum(p[1]);
  };
  CHECK(difference(run(model, {}), whole(model)) < 1e-12);
  const auto error = error_of([&] { run(model, {.accumulation = 2}); });
  CHECK_THAT(error, Contains("loop") && Contains("weighted_mean") && Contains(__FILE__));
  CHECK_THROWS_AS(estimate({.accumulation = 2}, {model.loss, model.parameters, model.batch}),
                  ArgumentError);
}

TEST_CASE_METHOD(FourThreads, "counted means: parts with other means are refused") {
  SmallModel model = tokens({5, 1, 0, 3}, false);
  const ModelFunction counted = model.loss;
  const auto refused = [&](std::uint32_t part, int more, bool returns, Bytes budget) {
    model.loss = [=](Tape& tape, std::span<const Var> p, std::span<const Var> b) {
      Var loss = sum(square(p[0])) + sum(square(p[1]));
      for (int i = 0; i < (tape.part() == part ? more : more - 1); ++i) {
        const Var term = counted(tape, p, b).loss;
        if (returns) loss = loss + term;
      }
      return loss;
    };
    for (const ExecutionStrategy& way : ways_to_cut(2)) {
      CAPTURE(part, more, returns, budget, way.summary());
      ExecutionStrategy strategy = way;
      strategy.run.memory_budget = budget;
      const std::string error = error_of([&] { run(model, strategy); });
      const std::string numbers = part == 0
                                      ? std::to_string(more) + " and " + std::to_string(more - 1)
                                      : std::to_string(more - 1) + " and " + std::to_string(more);
      CHECK_THAT(error, Contains(numbers + " means"));
    }
  };
  for (const std::uint32_t part : {0, 1}) {
    for (const int more : {1, 2}) {
      for (const bool returns : {true, false}) {
        for (const Bytes budget : {unlimited, 1_MiB}) refused(part, more, returns, budget);
      }
    }
  }
}

TEST_CASE("counted means: an execution returns the counts of its batch, for an accumulator") {
  const SmallModel model = tokens({5, 1, 0, 3}, false);
  for (const int parts : {1, 2}) {
    for (const ExecutionStrategy& strategy : ways_to_cut(parts)) {
      CAPTURE(strategy.summary());
      Execution execution(strategy);
      const Gradients made = execution.gradients(model.loss, model.parameters, model.batch);
      CHECK(made.counts().counts == std::vector<double>{9});
      CHECK_FALSE(made.counts().has_other_terms);
      CHECK(made.outputs().empty());
    }
  }
  const SmallModel other = tokens({5, 1, 0, 3}, true);
  Execution execution({.accumulation = 2});
  const LossCounts counts = execution.gradients(other.loss, other.parameters, other.batch).counts();
  CHECK(counts.counts.size() == 3);
  CHECK(counts.has_other_terms);
}

TEST_CASE("counted means: beside one in a checkpoint, a loss may have other terms") {
  SmallModel model = tokens({5, 1, 0, 3}, false);
  model.loss = [](Tape&, std::span<const Var> p, std::span<const Var> b) {
    const Composition body = [](std::span<const Var> x) {
      return std::vector<Var>{cross_entropy(matmul(x[0], x[1]), x[2], {.ignore_index = ignored})};
    };
    const Var inputs[] = {b[0], p[0], b[1]};
    return checkpoint(body, inputs)[0] + mean(square(matmul(b[0], p[1])));
  };
  for (const int parts : {1, 2}) {
    for (const ExecutionStrategy& strategy : ways_to_cut(parts)) {
      CAPTURE(strategy.summary());
      const LossCounts counts =
          Execution(strategy).gradients(model.loss, model.parameters, model.batch).counts();
      CHECK(counts.counts == std::vector<double>{9});
      CHECK(counts.has_other_terms);
    }
  }
}

TEST_CASE("counted means: those that a loss does not depend on are not counted") {
  SmallModel model = tokens({5, 1, 0, 3}, false);
  model.loss = [](Tape&, std::span<const Var> p, std::span<const Var> b) {
    const Var wide = tanh(broadcast_to(sum(b[0]), {1000}));
    weighted_mean(sum(square(wide)), sum(where(wide > 0.1, 1.0, 0.25)));
    return sum(square(p[0])) + sum(square(p[1]));
  };
  for (const ExecutionStrategy& way : ways_to_cut(2)) {
    if (way.mode != ExecutionMode::lazy) continue;  // others compute all that is recorded
    CAPTURE(way.summary());
    ExecutionStrategy strategy = way;
    strategy.run.memory_budget = 1;
    const auto gradients = [&] {
      return Execution(strategy).gradients(model.loss, model.parameters, model.batch);
    };
    try {
      gradients();
    } catch (const BudgetError& error) {
      strategy.run.memory_budget = error.smallest_feasible();
    }
    CHECK(strategy.run.memory_budget < 4000);
    CHECK(gradients().counts().empty());
  }
}

TEST_CASE_METHOD(FourThreads,
                 "counted means: beside those that a loss needs, others change nothing") {
  const SmallModel model = tokens({5, 1, 0, 3}, true);
  SmallModel more = model;
  more.loss = [&](Tape& tape, std::span<const Var> p, std::span<const Var> b) {
    const auto other = [&] { return weighted_mean(sum(b[0] * 2.0), sum(b[3])); };
    other();
    LossAndOutputs made = model.loss(tape, p, b);
    made.outputs.push_back(other());
    other();
    return made;
  };
  const Found expected = whole(model);
  for (const int parts : {2, 4}) {
    for (const ExecutionStrategy& strategy : ways_to_cut(parts)) {
      CAPTURE(strategy.summary());
      Execution execution(strategy);
      for (int run = 0; run < 2; ++run) {
        const Gradients made = execution.gradients(more.loss, more.parameters, more.batch);
        CHECK(std::abs(made.loss().item() - expected.loss) < 1e-12);
        Found found{made.loss().item(), {}, {}};
        for (const Gradients::Entry& each : made) found.gradients.push_back(each.gradient);
        CHECK(difference(found, expected) < 1e-12);
        CHECK(made.counts().counts.size() == 3);  // without those of the output
      }
    }
  }
}

TEST_CASE("counted means: parts that need different ones share the counts of all parts") {
  SmallModel model = tokens({5, 2, 0, 0}, false);
  const auto loss = [](std::span<const Var> p, std::span<const Var> b, bool counts) {
    const Var mean_of_tokens = cross_entropy(matmul(b[0], p[0]), b[1], {.ignore_index = ignored});
    const Var plain = mean(square(matmul(b[0], p[1]))) + 0.0 * sum(square(p[0]));
    return counts ? plain + mean_of_tokens : plain;
  };
  // A part without targets leaves the mean out, to avoid 0/0.
  model.loss = [=](Tape& tape, std::span<const Var> p, std::span<const Var> b) {
    return loss(p, b, tape.part() != 1);
  };
  const Found expected = whole(model);
  for (const ExecutionMode mode :
       {ExecutionMode::lazy, ExecutionMode::eager, ExecutionMode::hybrid}) {
    CAPTURE(name_of(mode));
    CHECK(difference(run(model, {.mode = mode, .accumulation = 2}), expected) < 1e-12);
  }
  model = tokens({0, 0, 5, 2}, false);
  model.loss = [=](Tape& tape, std::span<const Var> p, std::span<const Var> b) {
    return loss(p, b, tape.part() != 0 || b[0].shape()[0] == 4);
  };
  const Found other = whole(model);
  for (const ExecutionMode mode :
       {ExecutionMode::lazy, ExecutionMode::eager, ExecutionMode::hybrid}) {
    CAPTURE(name_of(mode));
    CHECK(difference(run(model, {.mode = mode, .accumulation = 2}), other) < 1e-12);
  }
}

TEST_CASE("counted means: an execution may have a loss with and then one without") {
  const SmallModel counted = tokens({5, 1, 0, 3}, false);
  SmallModel plain = counted;
  plain.loss = [](Tape&, std::span<const Var> p, std::span<const Var> b) {
    return mean(square(matmul(b[0], p[0]))) + sum(square(p[1]));
  };
  for (const ExecutionStrategy& strategy : ways_to_cut(2)) {
    CAPTURE(strategy.summary());
    Execution execution(strategy);
    for (const bool has_counts : {true, false, false, true}) {
      const SmallModel& model = has_counts ? counted : plain;
      const Gradients made = execution.gradients(model.loss, model.parameters, model.batch);
      CHECK(std::abs(made.loss().item() - whole(model).loss) < 1e-12);
      CHECK(made.counts().empty() != has_counts);
    }
  }
}

TEST_CASE_METHOD(FourThreads, "counted means: a loop whose steps differ may make the weights") {
  SmallModel model = tokens({5, 1, 0, 3}, false);
  model.loss = [](Tape&, std::span<const Var> p, std::span<const Var> b) {
    const Var scale = 1 + square(mean(p[1]));
    const Var weights = scan(b[3], 4, [scale](const Var& w, const StepNumber& n) {
      return n % 2 == 1 ? tanh(w * scale) : w + 0.1 * scale;
    });
    return weighted_mean(sum(mean(square(matmul(tanh(b[0]), p[0])), {-1}) * weights), sum(weights));
  };
  const Found expected = whole(model);
  for (const int parts : {2, 4}) {
    for (const ExecutionStrategy& strategy : ways_to_cut(parts)) {
      CAPTURE(strategy.summary());
      CHECK(difference(run(model, strategy), expected) < 1e-12);
    }
  }
}

TEST_CASE_METHOD(FourThreads,
                 "counted means: estimates are exact, and recommend cuts such batches") {
  const SmallModel model = tokens({5, 1, 0, 3}, true);
  for (const int parts : {1, 2}) {
    for (const ExecutionStrategy& strategy : ways_to_cut(parts)) {
      CAPTURE(strategy.summary());
      Execution execution(strategy);
      const Report report = execution.gradients(model.loss, model.parameters, model.batch).report();
      const Estimate found = estimate(strategy, {model.loss, model.parameters, model.batch});
      CHECK(found.peak == report.predicted_peak);
    }
  }
  const Recommendation made = recommend({model.loss, model.parameters, model.batch});
  CHECK(std::ranges::any_of(made.considered, [](const Considered& each) {
    return each.strategy.accumulation > 1 && each.estimate;
  }));
}

}  // namespace
}  // namespace palimpsest::counted_means_test
