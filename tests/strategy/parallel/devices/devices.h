#pragma once

#include "tests/strategy/execution/runs.h"

namespace palimpsest {

inline ExecutionStrategy on_devices(std::vector<Device> devices, int micro_batches = 1) {
  ExecutionStrategy strategy;
  strategy.parallelism = ParallelMode::model_parallel;
  strategy.devices = std::move(devices);
  strategy.accumulation = micro_batches;
  return strategy;
}

/// Two independent branches, each of several layers, that are joined at the end.
inline SmallModel two_towers(std::int64_t width = 32, std::size_t layers = 3) {
  std::vector<Tensor> parameters;
  for (std::size_t k = 0; k < 2 * layers; ++k) {
    parameters.push_back(Tensor::normal({width, width}, k, 0, 0.2));
  }
  return {"towers",
          parameters,
          {Tensor::uniform({24, width}, 90, -1, 1), Tensor::uniform({24, width}, 91, -1, 1)},
          [layers](Tape& tape, std::span<const Var> p, std::span<const Var> batch) {
            Var ends[2];
            for (std::size_t tower : {0, 1}) {
              const auto scope = tape.scope(tower == 0 ? "left" : "right");
              Var y = batch[tower];
              for (std::size_t k = 0; k < layers; ++k) {
                y = tanh(sin(matmul(y, p[tower * layers + k])) * 1.5);
              }
              ends[tower] = y;
            }
            const auto scope = tape.scope("together");
            return mean(ends[0] * ends[1]);
          }};
}

}  // namespace palimpsest
