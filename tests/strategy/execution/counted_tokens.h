#pragma once

#include <oneapi/tbb/global_control.h>

#include <cmath>
#include <vector>

#include "tests/strategy/execution/runs.h"

namespace palimpsest {

struct FourThreads {
  tbb::global_control control{tbb::global_control::max_allowed_parallelism, 4};
};

constexpr std::int64_t ignored = -100;

/// Sequences of five tokens with padding: sequence i has `lengths[i]` targets.
inline Tensor padded(const std::vector<std::int64_t>& lengths, std::int64_t classes) {
  std::vector<std::int64_t> targets;
  for (const std::int64_t length : lengths) {
    for (std::int64_t t = 0; t < 5; ++t) {
      targets.push_back(t < length ? (t + length) % classes : ignored);
    }
  }
  return Tensor::from(targets, {std::ssize(lengths), 5});
}

/// A loss of tokens, by itself or among other terms.
inline SmallModel tokens(const std::vector<std::int64_t>& lengths, bool has_other_terms) {
  const auto examples = std::ssize(lengths);
  std::vector<std::int64_t> others(lengths.rbegin(), lengths.rend());
  SmallModel model{
      "tokens",
      {Tensor::normal({4, 3}, 1, 0, 1, DType::f64), Tensor::normal({4, 5}, 2, 0, 1, DType::f64)},
      {Tensor::normal({examples, 5, 4}, 3, 0, 1, DType::f64), padded(lengths, 3), padded(others, 5),
       Tensor::uniform({examples, 5}, 4, 0, 1, DType::f64)},
      [](Tape&, std::span<const Var> p, std::span<const Var> b) {
        const Var x = tanh(b[0]);
        return cross_entropy(matmul(x, p[0]), b[1], {.ignore_index = ignored}) +
               0.0 * sum(square(p[1]));
      }};
  if (!has_other_terms) return model;
  model.loss = [](Tape&, std::span<const Var> p, std::span<const Var> b) {
    const Var x = tanh(b[0]);
    const Var y = matmul(x, p[1]);
    const Var scores = log_softmax(y, -1);
    const Var masked = weighted_mean(sum(mean(square(y), {-1}) * b[3]), sum(b[3]));
    return cross_entropy(matmul(x, p[0]), b[1], {.label_smoothing = 0.1, .ignore_index = ignored}) +
           0.5 * nll(scores, b[2], {.ignore_index = ignored}) + 0.3 * masked +
           0.1 * mean(square(y)) + 0.01 * sum(square(p[0]));
  };
  return model;
}

inline double difference(const Found& a, const Found& b) {
  double most = std::abs(a.loss - b.loss);
  for (std::size_t i = 0; i < a.gradients.size(); ++i) {
    for (std::int64_t k = 0; k < a.gradients[i].elements(); ++k) {
      const double each = std::abs(a.gradients[i].at(k) - b.gradients[i].at(k));
      if (!(each <= most)) most = each;
    }
  }
  return most;
}

/// The model as one batch.
inline Found whole(const SmallModel& model) {
  Tape tape;
  std::vector<Var> parameters;
  std::vector<Var> batch;
  for (const Tensor& parameter : model.parameters) parameters.push_back(tape.parameter(parameter));
  for (const Tensor& tensor : model.batch) batch.push_back(tape.constant(tensor));
  const Gradients made = backward(model.loss(tape, parameters, batch));
  Found found{made.loss().item(), {}, {}};
  for (const Gradients::Entry& entry : made) found.gradients.push_back(entry.gradient);
  return found;
}

inline std::vector<ExecutionStrategy> ways_to_cut(int parts) {
  std::vector<ExecutionStrategy> list;
  for (const ExecutionMode mode :
       {ExecutionMode::lazy, ExecutionMode::eager, ExecutionMode::hybrid}) {
    list.push_back({.mode = mode, .accumulation = parts});
    ExecutionStrategy& replicas = list.emplace_back();
    replicas.mode = mode;
    replicas.parallelism = ParallelMode::data_parallel;
    replicas.workers = parts;
    if (parts == 4) {
      replicas.workers = 2;
      replicas.accumulation = 2;
    }
  }
  list.push_back(pipeline_of(2, parts));
  ExecutionStrategy& devices = list.emplace_back();
  devices.accumulation = parts;
  devices.parallelism = ParallelMode::model_parallel;
  devices.devices.resize(2);
  return list;
}

}  // namespace palimpsest
