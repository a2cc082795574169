#pragma once

#include <optional>

#include "strategy/execution/layer_checkpointing/stage_tape.h"

namespace palimpsest {

/// What layers or a loss make in addition to what is differentiated.
struct LayerExtras {
  std::vector<Tensor> outputs = {};  ///< auxiliary outputs
  std::vector<Tape::Update> updates = {};
  std::vector<Tensor> values = {};  ///< of the updates

  /// Adds outputs, of which the last are the values of these updates.
  void add(std::vector<Tensor> made, std::span<const Tape::Update> recorded);
  void add(const LayerExtras& others);
};

/// One forward pass through stages. It keeps what the segments say, for backward passes and for
/// copies of activations.
class LayerRun {
 public:
  /// The context of a run. Everything in it outlives the run.
  struct Setting {
    std::span<const StageFunction> stages;
    Codec codec;  ///< of activations that stages are recomputed from
    std::shared_ptr<EngineEvaluator> evaluator;
    LayerPrecision precision;
    const Meter& meter;  ///< of what is kept; its peaks begin with the run
  };

  /// Runs the stages forward.
  LayerRun(const Setting& setting, std::vector<LayerSegment> segments, const Tensor& input,
           std::uint64_t seed);

  const Tensor& output() const { return output_; }
  /// What the stages made in addition, in order.
  const LayerExtras& extras() const { return extras_; }
  const LayerUse& use() const { return use_; }
  /// A tape whose random streams begin after those of the last stage.
  std::unique_ptr<Tape> tape_behind() const;

  /// A copy of the input of a stage, or of the output.
  Tensor activation(std::size_t stage);
  /// Whether that activation is held, so that nothing needs to be computed for it.
  bool is_kept(std::size_t stage) const;
  /// Keeps the input of a stage from here on. It is recomputed where it is not held.
  void save(std::size_t stage);

  struct Adjoints {
    std::vector<std::vector<Tensor>> parameters;  ///< by stage
    Tensor input;                                 ///< undefined where that is not floating
    Report report;  ///< of all runs together, including those that recompute
  };
  /// Runs the stages backward from the adjoint of the output, which has the output's type. An
  /// undefined adjoint means that nothing depends on the output. Stages before one that passes no
  /// derivative to its input are not run, and have adjoints of zeros. Throws `TapeError` for a
  /// stage that reads a tensor changed since the forward pass.
  Adjoints backward(Tensor adjoint);

 private:
  /// An activation as it is stored.
  struct Kept {
    Buffer buffer;
    ValueType type;  ///< of the activation
    bool rounded;
  };
  /// The activation and the tapes kept for a segment.
  struct Held {
    std::optional<Kept> input = {};  ///< none where it is available elsewhere
    std::vector<StageTape> tapes = {};
  };

  Allocate metered() const;
  /// Whether the tapes of a segment are held and have not been dropped yet.
  bool is_taped(std::size_t segment) const { return !held_[segment].tapes.empty(); }
  bool rounds(DType dtype) const { return stored_dtype(dtype, setting_.codec) != dtype; }
  StageTape record(std::size_t stage, const Tensor& input) const;
  /// Records a stage after the forward pass.
  StageTape record_again(std::size_t stage, const Tensor& input) const;
  /// Throws `TapeError` if a stage reads a tensor that was changed since the forward pass began.
  void require_current(const StageTape& tape) const;
  Kept keep(const Tensor& x, const LayerSegment& segment) const;
  Tensor forward_taped(const LayerSegment& segment, Tensor x);
  /// The segment that contains a stage.
  std::size_t segment_of(std::size_t stage) const;
  /// The input of a stage that no tape holds and that is not the first of its segment.
  Tensor computed(std::size_t stage, const Allocate& allocate);
  Tensor forward_passing(const LayerSegment& segment, Tensor x);
  /// The input of a segment, read from where it is kept.
  Tensor restored(std::size_t segment) const;
  std::vector<StageTape> hold_again(std::size_t segment, Report& report);

  Setting setting_;
  std::vector<LayerSegment> segments_;
  std::uint64_t seed_;
  std::uint64_t version_;                    // of storages, when the forward pass began
  std::vector<std::uint32_t> first_stream_;  // by stage, and one entry after the last
  std::vector<Held> held_;                   // by segment
  Tensor input_;
  Tensor output_;
  LayerExtras extras_;
  LayerUse use_;
};

}  // namespace palimpsest
