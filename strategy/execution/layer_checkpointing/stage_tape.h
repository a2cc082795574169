#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "strategy/base/precision.h"
#include "strategy/evaluators/evaluators.h"
#include "strategy/execution/layer_checkpointing/layer_plan.h"
#include "strategy/execution/layer_checkpointing/stage_function.h"

namespace palimpsest {

/// Where the random numbers of a tape begin: those that a fresh tape with this seed has when it has
/// given out `first` streams.
struct Streams {
  std::uint64_t seed = 0;
  std::uint32_t first = 0;
};

/// The one that layers are computed in, if not in that which they are recorded in.
using LayerPrecision = std::optional<Precision>;
/// What tapes of layers in that precision are computed by.
std::shared_ptr<Evaluator> in_precision_of(const std::shared_ptr<EngineEvaluator>& evaluator,
                                           const LayerPrecision& precision);

/// A tape that begins there.
std::unique_ptr<Tape> tape_from(const Streams& streams, std::shared_ptr<Evaluator> evaluator);

/// Throws `ArgumentError` unless a tape has just so many parameters.
void require_parameters(const Tape& tape, std::size_t count);

/// Storage for so many bytes.
using Allocate = std::function<Buffer(Bytes)>;

/// Whether a value is computed from another, or is that one.
bool depends_on(const Tape& tape, ValueId value, ValueId source);

/// `tensor` in storage that `allocate` gives.
Tensor copy_of(const Tensor& tensor, const Allocate& allocate);

/// A stage recorded on a tape of its own. Errors of its functions name the stage.
class StageTape {
 public:
  /// Records the stage of an input; nothing is computed. Throws what the stage's function throws,
  /// `ArgumentError` when it records a parameter, `DTypeError` when its output is not floating.
  StageTape(const StageFunction& stage, const Tensor& input, const Streams& streams,
            std::shared_ptr<EngineEvaluator> evaluator, const LayerPrecision& precision);
  /// The same of an input of which only the type is known. Throws `ArgumentError` when the stage's
  /// function looks at a value.
  StageTape(const StageFunction& stage, const ValueType& input, const Streams& streams,
            const LayerPrecision& precision);

  /// Streams that this stage and those before it take.
  std::uint32_t streams() const { return streams_; }
  ValueType output_type() const { return output_.type(); }
  /// The output, computed, in storage that `allocate` gives.
  Tensor output(const Allocate& allocate);

  /// Records the adjoints too, and finds what they read.
  void differentiate();
  /// What the stage takes, when it was differentiated and nothing was computed, but for the stored
  /// input.
  LayerStage sizes(const Machine& machine) const;

  /// Whether the adjoint of the input depends on that of the output, when it was differentiated;
  /// where not, it is zeros.
  bool flows() const { return gradients_.size() > parameters_.size(); }

  enum class Output { unneeded, held, returned };
  struct Held {
    Tensor output;              ///< where it is to be returned
    std::optional<Report> run;  ///< none where there was nothing to compute
  };
  /// Computes what the adjoints read and holds it in storage that `allocate` gives, together with
  /// the output or not; or returns a copy of that in storage of its own.
  Held hold(const Allocate& allocate, Output output);
  /// True when `hold` computes something even where the output is unneeded.
  bool saves() const { return !saved_.empty(); }
  /// The output, which is held.
  Tensor held_output() const { return output_.value(); }

  struct Adjoints {
    Tensor input;  ///< undefined unless it `flows`
    std::vector<Tensor> parameters;
    std::optional<Report> run;  ///< none where there was nothing to compute
  };
  /// The adjoints of the input and the parameters by that of the output, from what is held. Throws
  /// `ArgumentError` when the output's type is another.
  Adjoints reverse(const Tensor& adjoint);

 private:
  void record(const std::function<Var(Tape&)>& input, const LayerPrecision& precision);
  Report run(std::span<const ValueId> targets);
  std::vector<ValueId> outputs_of_its_node(const Graph& graph) const;
  void settle(const Graph& graph, std::span<const ValueId> values, const Allocate& allocate);

  StageFunction stage_;
  std::shared_ptr<EngineEvaluator> evaluator_;  // null where nothing can be computed
  std::unique_ptr<Tape> tape_;
  std::uint32_t streams_ = 0;
  Var input_;
  std::vector<Var> parameters_;
  Var output_;
  // What `differentiate` adds to the tape.
  NodeId backward_begins_ = 0;
  Var seed_;
  std::vector<Var> gradients_;  // of the parameters and, where it flows, of the input
  std::vector<ValueId> saved_;  // what those read
  std::vector<Buffer> held_;    // its storage, so that no run lets go of it
};

}  // namespace palimpsest
