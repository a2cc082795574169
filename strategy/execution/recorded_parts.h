#pragma once

#include <functional>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include "autodiff/export.h"
#include "strategy/base/model.h"
#include "strategy/batch_counts.h"
#include "strategy/execution/replica.h"

namespace palimpsest PALIMPSEST_EXPORT {  // for palimpsest-mpi

/// The parts of a batch that one process computes in a step, as they are recorded. Part p is a
/// micro-batch of replica p mod R, and number p / R of its micro-batches.
class RecordedParts {
 public:
  /// The processes that divide a batch. Part p of process r is part p · `count` + r of the batch.
  struct Process {
    int rank = 0;
    int count = 1;
    bool has_shard = false;  ///< the process is given its parts only, not the whole batch
  };
  struct Setting {
    const ModelFunction& model;
    std::span<const Tensor> parameters;
    std::span<const Tensor> batch;
    const Where& where;
    int parts;
    std::span<Replica> replicas;
    const Tape& count;  ///< cleared once for each batch
    BatchCounts& counts;
    std::function<Var(const Var& loss)> scale;  ///< replicas that record in parallel call it
    Process process = {};
  };
  explicit RecordedParts(Setting setting);

  /// Records a part on its replica's tape. Several threads may record parts of different replicas.
  void record(int part);
  bool has(int part) const { return parts_[static_cast<std::size_t>(part)].values.has_value(); }
  const LossAndOutputs& operator[](int part) const { return *at(part).values; }
  std::vector<Tensor> tensors(int part) const;
  /// The number of examples; 1 for a batch that is not cut.
  std::int64_t examples(int part) const { return at(part).examples; }
  std::int64_t total_examples() const {
    return std::accumulate(examples_.begin(), examples_.end(), std::int64_t{0});
  }
  /// The factors of the parts in the sum that is the loss of the batch.
  std::vector<double> weights(LossReduction reduction) const {
    return weights(reduction, total_examples());
  }
  /// Likewise, where all processes have `all` examples.
  std::vector<double> weights(LossReduction reduction, std::int64_t all) const {
    return weights_of_parts(examples_, all, reduction);
  }
  const std::vector<Tape::Update>& updates(int part) const { return at(part).updates; }
  /// Whether parts differ in size.
  bool have_two_sizes() const { return examples_.front() != examples_.back(); }

  /// Records every part on a tape of its own, and returns the counts that the means of all of them
  /// divide by. Parts that were recorded before must be recorded again: within a budget, their
  /// values are dropped.
  std::vector<double> count_first();

 private:
  struct Part {
    std::optional<LossAndOutputs> values;
    std::vector<Tape::Update> updates;  // as the part records them
    std::int64_t examples = 1;
  };

  const Part& at(int part) const { return parts_[static_cast<std::size_t>(part)]; }
  Replica& replica_of(int part) const {
    return setting_.replicas[static_cast<std::size_t>(part) % setting_.replicas.size()];
  }
  bool is_cut() const { return setting_.parts * setting_.process.count > 1; }
  /// The index in the batch.
  int index(int part) const { return part * setting_.process.count + setting_.process.rank; }
  /// Records the model, and notes its means over counted targets where the batch is cut.
  LossAndOutputs record_on(Tape& tape, int part);

  Setting setting_;
  std::vector<Part> parts_;
  std::vector<std::int64_t> examples_;
};

}  // namespace palimpsest
