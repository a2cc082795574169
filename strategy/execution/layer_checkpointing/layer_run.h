#pragma once

#include <optional>

#include "strategy/execution/layer_checkpointing/stage_tape.h"

namespace palimpsest {

/// A forward pass through stages, of which segments say what is kept, and what is made of that.
class LayerRun {
 public:
  /// What it runs with; all of it outlives the run.
  struct Setting {
    std::span<const StageFunction> stages;
    Codec codec;  ///< of activations that stages are computed again from
    std::shared_ptr<EngineEvaluator> evaluator;
    LayerPrecision precision;
    const Meter& meter;  ///< of what is kept; its peaks begin with the run
  };

  /// Runs the stages forward.
  LayerRun(const Setting& setting, std::vector<LayerSegment> segments, const Tensor& input,
           std::uint64_t seed);

  const Tensor& output() const { return output_; }
  const LayerUse& use() const { return use_; }
  /// A tape that begins behind the last stage.
  std::unique_ptr<Tape> tape_behind() const;

  /// A copy of the input of a stage, or of the output.
  Tensor activation(std::size_t stage);
  /// Whether that is held, so that nothing is computed for it.
  bool is_kept(std::size_t stage) const;
  /// Keeps the input of a stage from here on, computed again where it is not held.
  void save(std::size_t stage);

  struct Adjoints {
    std::vector<std::vector<Tensor>> parameters;  ///< by stage
    Tensor input;                                 ///< undefined where that is not floating
    Report report;  ///< of the runs together, those that compute again among them
  };
  /// Runs the stages backward by the adjoint of the output, of whose type it is; undefined, nothing
  /// depends on the output. Stages before one through which no derivative flows are not run, and
  /// have adjoints of zeros.
  Adjoints backward(Tensor adjoint);

 private:
  /// An activation as it is kept.
  struct Kept {
    Buffer buffer;
    ValueType type;  ///< of the activation
    bool rounded;
  };
  /// What is kept of a segment.
  struct Held {
    std::optional<Kept> input = {};  ///< none where it is at hand
    std::vector<StageTape> tapes = {};
  };

  Allocate metered() const;
  /// Whether the tapes of a segment are held, which are not yet gone.
  bool is_taped(std::size_t segment) const { return !held_[segment].tapes.empty(); }
  bool rounds(DType dtype) const { return stored_dtype(dtype, setting_.codec) != dtype; }
  StageTape record(std::size_t stage, const Tensor& input) const;
  Kept keep(const Tensor& x, const LayerSegment& segment) const;
  Tensor forward_taped(const LayerSegment& segment, Tensor x);
  /// The segment of a stage.
  std::size_t segment_of(std::size_t stage) const;
  /// The input of a stage that no tape holds and that is not the first of its segment.
  Tensor computed(std::size_t stage, const Allocate& allocate);
  Tensor forward_passing(const LayerSegment& segment, Tensor x);
  /// The input of a segment, from where it is kept.
  Tensor restored(std::size_t segment) const;
  std::vector<StageTape> record_again(std::size_t segment, Report& report);

  Setting setting_;
  std::vector<LayerSegment> segments_;
  std::uint64_t seed_;
  std::vector<std::uint32_t> first_stream_;  // by stage, and behind the last
  std::vector<Held> held_;                   // by segment
  Tensor input_;
  Tensor output_;
  LayerUse use_;
};

}  // namespace palimpsest
