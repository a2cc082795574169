#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "strategy/base/precision.h"
#include "strategy/base/report.h"
#include "strategy/evaluators/evaluators.h"
#include "strategy/execution/layer_checkpointing/layer_plan.h"
#include "strategy/execution/layer_checkpointing/stage_function.h"

namespace palimpsest {

/// Where the random streams of a tape begin: those of a fresh tape with this seed that has already
/// given out `first` streams.
struct Streams {
  std::uint64_t seed = 0;
  std::uint32_t first = 0;
  std::uint32_t part = 0;  ///< of the tape: the number of the stage
};

/// The precision in which layers are computed; as recorded when empty.
using LayerPrecision = std::optional<Precision>;
/// The evaluator of tapes of layers in that precision.
std::shared_ptr<EngineEvaluator> in_precision_of(const std::shared_ptr<EngineEvaluator>& evaluator,
                                                 const LayerPrecision& precision);

/// A tape whose random streams begin at `streams`.
std::unique_ptr<Tape> tape_from(const Streams& streams, std::shared_ptr<Evaluator> evaluator);

/// Throws `TapeError` for an auxiliary output of another tape.
void require_outputs_of(const Tape& tape, std::span<const Var> outputs);

/// Throws `ArgumentError` unless a tape has exactly `count` parameters.
void require_parameters(const Tape& tape, std::size_t count);

/// Allocates storage for so many bytes.
using Allocate = std::function<Buffer(Bytes)>;

/// Whether a value is computed from `source`, or is `source`.
bool depends_on(const Tape& tape, ValueId value, ValueId source);

/// A copy of `tensor`, in storage from `allocate`.
Tensor copy_of(const Tensor& tensor, const Allocate& allocate);

/// A stage recorded on a tape of its own. Errors of its functions name the stage.
class StageTape {
 public:
  /// Records the stage for an input; nothing is computed. Throws what the stage's function throws,
  /// `ArgumentError` when it records a parameter, `DTypeError` when its output is not floating.
  StageTape(const StageFunction& stage, const Tensor& input, const Streams& streams,
            std::shared_ptr<EngineEvaluator> evaluator, const LayerPrecision& precision);
  /// Likewise, for an input of which only the type is known. Throws `ArgumentError` when the
  /// stage's function looks at a value.
  StageTape(const StageFunction& stage, const ValueType& input, const Streams& streams,
            const LayerPrecision& precision);

  /// Number of random streams that this stage and those before it take.
  std::uint32_t streams() const { return streams_; }
  ValueType output_type() const { return output_.type(); }
  /// Stages of equal structure have equal sizes.
  std::uint64_t structure() const;
  /// Throws `TapeError` if the output depends on a constant or parameter that the library has
  /// written into after this version (see `latest_version`). A constant of a loop or checkpoint
  /// counts if the results of that program depend on it. The input counts if it is the model's.
  void require_unchanged(std::uint64_t version, const Tensor& model_input) const;
  /// The updates that the stage records.
  std::span<const Tape::Update> updates() const { return updates_; }
  /// Copies of auxiliary outputs, followed by values of updates.
  using Outputs = std::vector<Tensor>;
  /// Computes the output, in storage from `allocate`. Appends to `outputs`, unless it is null.
  Tensor output(const Allocate& allocate, Outputs* outputs = nullptr);

  /// Records the adjoints too, and finds which values they read.
  void differentiate();
  /// The memory and time of the stage, except the stored input. Call it after `differentiate` and
  /// before anything is computed.
  LayerStage sizes(const Machine& machine) const;

  /// Whether the adjoint of the input depends on that of the output; otherwise it is zeros. Valid
  /// after `differentiate`.
  bool flows() const { return gradients_.size() > parameters_.size(); }

  enum class Output { unneeded, held, returned };
  struct Held {
    Tensor output;              ///< if it is returned
    std::optional<Report> run;  ///< none where there was nothing to compute
  };
  /// Computes the values that the adjoints read, and holds them in storage from `allocate`. The
  /// output is held with them, returned as a copy in storage of its own, or not needed. Appends to
  /// `outputs`, unless it is null.
  Held hold(const Allocate& allocate, Output output, Outputs* outputs = nullptr);
  /// True when `hold` computes something even where the output is unneeded.
  bool saves() const { return !saved_.empty(); }
  /// The output, once it is held.
  Tensor held_output() const { return output_.value(); }

  struct Adjoints {
    Tensor input;  ///< undefined unless `flows()`
    std::vector<Tensor> parameters;
    std::optional<Report> run;  ///< none where there was nothing to compute
  };
  /// The adjoints of the input and the parameters, given that of the output. They are computed from
  /// the held values. Throws `ArgumentError` when `adjoint` has another type than the output.
  Adjoints reverse(const Tensor& adjoint);

 private:
  void record(const std::function<Var(Tape&)>& input, const LayerPrecision& precision);
  Report run(std::span<const ValueId> targets);
  /// Adds the auxiliary outputs and values of updates that a run must compute.
  void append_outputs(std::vector<ValueId>& targets) const;
  void append_copies(Outputs& outputs) const;
  std::vector<ValueId> outputs_of_its_node(const Graph& graph) const;
  void settle(const Graph& graph, std::span<const ValueId> values, const Allocate& allocate);

  StageFunction stage_;
  std::shared_ptr<EngineEvaluator> evaluator_;  // null where nothing can be computed
  std::unique_ptr<Tape> tape_;
  std::uint32_t streams_ = 0;
  Var input_;
  std::vector<Var> parameters_;
  Var output_;
  std::vector<Var> outputs_;  // auxiliary outputs, then values of updates
  std::vector<Tape::Update> updates_;
  std::vector<InnerProgram> inner_;  // of loops and checkpoints
  // Recorded by `differentiate`.
  NodeId backward_begins_ = 0;
  Var seed_;
  std::vector<Var> gradients_;  // of the parameters and, where it flows, of the input
  std::vector<ValueId> saved_;  // what those read
  std::vector<Buffer> held_;    // storage of the saved values, so that no run releases it
};

}  // namespace palimpsest
