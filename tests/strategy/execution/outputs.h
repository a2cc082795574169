#pragma once

#include <utility>

#include "tests/strategy/execution/runs.h"

namespace palimpsest {

/// A model whose loss comes with auxiliary outputs of every kind, and that updates two tensors.
struct ModelWithOutputs {
  std::vector<Tensor> parameters{Tensor::normal({8, 16}, 1, 0, 0.3),
                                 Tensor::normal({16, 16}, 2, 0, 0.3),
                                 Tensor::normal({16, 4}, 3, 0, 0.3)};
  std::vector<Tensor> batch{Tensor::normal({12, 8}, 4), Tensor::normal({12, 4}, 5)};
  Tensor mean_of_hidden = Tensor::ones({16});
  Tensor last = Tensor::zeros({4});

  static constexpr std::size_t outputs = 8;

  LossAndOutputs record(Tape& tape, std::span<const Var> p, std::span<const Var> b) const {
    Var hidden;
    {
      const auto scope = tape.scope("first");
      hidden = dropout(tanh(matmul(b[0], p[0])), 0.2);
      tape.update_after_run(mean_of_hidden, mean(hidden, {0}), 0.1);
    }
    Var deeper;
    {
      const auto scope = tape.scope("second");
      deeper = sin(matmul(hidden, p[1]));
      tape.update_after_run(mean_of_hidden, mean(deeper, {0}), 0.5);
    }
    const auto scope = tape.scope("third");
    const Var logits = matmul(deeper, p[2]);
    tape.update_after_run(last, sum(logits, {0}));
    const Var error = logits - b[1];
    const Var loss = mean(error * error);
    // Read by nothing else, views, a scalar, a leaf, a value twice, and the loss itself.
    return {loss,
            {logits, hidden, exp(deeper), reshape(hidden, {-1, 2, 8}), mean(abs(logits)), b[0],
             logits, loss}};
  }

  ModelFunction function() const {
    return [this](Tape& tape, std::span<const Var> p, std::span<const Var> b) {
      return record(tape, p, b);
    };
  }
};

/// Everything that steps of a `ModelWithOutputs` return and change.
struct FoundOutputs {
  Found last;  ///< of the last step
  std::vector<Tensor> outputs;
  Tensor mean_of_hidden;
  Tensor last_sum;
};

inline FoundOutputs run_with_outputs(const ExecutionStrategy& strategy, int steps = 3) {
  const ModelWithOutputs model;
  Execution execution(strategy);
  FoundOutputs found;
  for (int step = 0; step < steps; ++step) {
    const Gradients g = execution.gradients(model.function(), model.parameters, model.batch);
    found.last = {g.loss().item(), {}, g.report()};
    found.outputs.clear();
    for (const Gradients::Entry& entry : g) found.last.gradients.push_back(entry.gradient.clone());
    for (const Tensor& output : g.outputs()) found.outputs.push_back(output.clone());
  }
  found.mean_of_hidden = model.mean_of_hidden;
  found.last_sum = model.last;
  return found;
}

inline bool have_same_bits(const FoundOutputs& a, const FoundOutputs& b) {
  if (!have_same_bits(a.last, b.last) || a.outputs.size() != b.outputs.size()) return false;
  for (std::size_t i = 0; i < a.outputs.size(); ++i) {
    if (!same_bits(a.outputs[i], b.outputs[i])) return false;
  }
  return same_bits(a.mean_of_hidden, b.mean_of_hidden) && same_bits(a.last_sum, b.last_sum);
}

/// The smallest budget that an error names when one byte is given.
template <class Run>
Bytes budget_named_by(Run run) {
  try {
    run(Bytes{1});
  } catch (const BudgetError& error) {
    return error.smallest_feasible();
  }
  return 0;
}

}  // namespace palimpsest
