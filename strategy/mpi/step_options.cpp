#include "strategy/mpi/step_options.h"

#include "checkpoint/stores/hash.h"

namespace palimpsest {

std::vector<std::string> lines_of(const ExecutionStrategy& strategy,
                                  const DistributedOptions& options, double loss_scale,
                                  const Tape& count) {
  const bool is_pipeline = strategy.parallelism == ParallelMode::pipeline;
  return {is_pipeline ? "a stage of a pipeline on each rank" : "a shard of the batch on each rank",
          "bucket_bytes = " + std::to_string(options.bucket_bytes),
          std::string("deterministic = ") + (options.deterministic ? "true" : "false"),
          std::string("reduction = ") + (options.reduction == LossReduction::mean ? "mean" : "sum"),
          "verify_every = " + std::to_string(options.verify_every),
          "accumulation = " + std::to_string(strategy.accumulation),
          "precision = " + (strategy.precision ? strategy.precision->summary() : "as recorded"),
          "loss scale = " + std::to_string(loss_scale),
          "step " + std::to_string(count.generation())};
}

std::uint64_t hash_of(std::span<const std::string> lines) {
  std::uint64_t hash = 0;
  for (const std::string& line : lines) hash = hash_bytes(std::as_bytes(std::span(line)), hash);
  return hash;
}

}  // namespace palimpsest
