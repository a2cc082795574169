#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "autodiff/export.h"
#include "checkpoint/meter.h"
#include "strategy/backward.h"
#include "strategy/base/precision.h"
#include "strategy/execution/layer_checkpointing/layer_checkpointing.h"
#include "strategy/execution/layer_checkpointing/layer_model.h"
#include "strategy/execution/layer_checkpointing/layer_use.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// The result of a backward pass through layers.
struct LayerGradients {
  /// The gradients of all parameters, for an optimizer, layer after layer. Their `Var`s are those
  /// that `LayerCheckpointer::parameter` returns. The loss is undefined where an adjoint was given.
  ///
  /// The auxiliary outputs are those of all layers, in order, and then those of the loss.
  ///
  /// The report adds up the runs of the backward pass. Layers that are computed again count as
  /// recomputed. Its peaks are the highest of any single run; kept activations and tapes come on
  /// top. Its `compute_overhead` is 0: a `LayerForecast` has the factor.
  Gradients parameters;
  /// The gradient of the model's input; undefined where that is not floating.
  Tensor input;
};

/// Runs a model layer by layer, and keeps the activations and tapes that a configuration selects.
///
/// Every layer is recorded, run and differentiated on a tape of its own, which is destroyed after
/// use. `backward` processes one segment after the other, from the last to the first. It recomputes
/// the layers of the segment from the activation kept before them, holds their tapes, and
/// differentiates them. The gradients have the same bits as those of the whole model on one tape,
/// unless a codec rounds (`LayerCheckpointing::codec`). Use it from one thread at a time.
class LayerCheckpointer {
 public:
  /// `options`, including a memory budget, apply to every run of a layer. A layer's auxiliary
  /// outputs count in the run of its forward pass; like the returned gradients they come on top of
  /// later runs. A run that does not fit
  /// throws `BudgetError` when it is reached, after earlier runs have been carried out. The error
  /// names the layer and the smallest budget for that run; other runs may need more.
  ///
  /// With a `precision` each layer is computed as `precise` says, and so is the loss after them.
  /// Inputs, outputs and parameters of layers have the dtypes recorded.
  ///
  /// Throws `ArgumentError` for a configuration that is not valid or does not fit the model, and
  /// for a model without layers or functions; `DTypeError` for a parameter that is not floating.
  LayerCheckpointer(LayerModel model, LayerCheckpointing checkpointing, RunOptions options = {},
                    const std::optional<Precision>& precision = {}, Where where = Where::current());
  ~LayerCheckpointer();
  LayerCheckpointer(LayerCheckpointer&&) noexcept;
  LayerCheckpointer& operator=(LayerCheckpointer&&) noexcept;

  /// The number of layers of the model.
  int layers() const;
  /// The configuration that was given.
  const LayerCheckpointing& checkpointing() const;
  /// The `Var` that identifies a parameter among the gradients. It is valid while the checkpointer
  /// exists. Throws `ArgumentError` for a parameter that does not exist.
  Var parameter(int layer, int index, Sublayer sublayer = Sublayer::attention) const;

  /// Computes the output of the model. Discards what an earlier forward pass kept. Do not change
  /// `input` and the parameters until `backward` has been called. Random operations draw the
  /// numbers that they would on one fresh tape with this seed.
  ///
  /// Usage errors in a layer's function and budgets that are too small name the layer. Other
  /// exceptions pass through unchanged. After an exception nothing is kept. Mode `dynamic` first
  /// records all layers without values, and measures those that have changed since the last pass.
  /// It throws `BudgetError`, before any work, when the fraction is too small.
  Tensor forward(const Tensor& input, std::uint64_t seed = 0);

  /// A copy of the input of a layer, or of one of its sublayers, in the last forward pass. It is
  /// computed from the nearest activation kept before it. `activation(layers())` is the model's
  /// output. Throws `ArgumentError` for a layer that does not exist, and before a forward pass.
  /// Throws `TapeError` if it is not kept and a layer before it reads a tensor that the library has
  /// written into since the forward pass (see `backward`).
  Tensor activation(int layer, Sublayer sublayer = Sublayer::attention);

  /// Whether that activation is held since the last forward pass, on its own or in a tape. Then
  /// `activation` computes nothing. Throws `ArgumentError` as `activation`.
  bool is_kept(int layer, Sublayer sublayer = Sublayer::attention) const;

  /// Keeps the input of a layer, or of one of its sublayers, from the last forward pass until the
  /// next, in addition to what the configuration keeps. It is computed from the nearest activation
  /// kept before it. No effect where it is kept already. Forecasts do not include it. Throws as
  /// `activation`, and `ArgumentError` where `max_kept` activations are kept already.
  void save(int layer, Sublayer sublayer = Sublayer::attention);

  /// The gradients of the parameters and the input, given the adjoint of the output. Kept
  /// activations and tapes stay, so `backward` can be called again. The exception is the last
  /// segment in modes `every` and `listed`: its tapes are dropped after use, and another call
  /// computes them again.
  ///
  /// Tensors that layers and the loss update (`Tape::update_after_run`) change at the end of the
  /// first call after a forward pass, by the values of that pass. Recomputation and later calls
  /// do not change them. If a layer's output depends on such a tensor, a later call throws
  /// `TapeError`, since the kept activations do not belong to the new elements. It does so for any
  /// constant or parameter that the library has written into since the forward pass. A constant
  /// recorded inside `checkpoint` or a loop counts if the results of that function depend on it.
  ///
  /// If a layer passes no derivative to its input, the layers before it are not differentiated;
  /// their gradients are zeros. Throws `ArgumentError` before a forward pass, `ShapeError` and
  /// `DTypeError` for an adjoint of another type.
  LayerGradients backward(const Tensor& adjoint);
  /// The gradients of a loss that `loss` records from the output, perhaps with auxiliary outputs.
  /// The loss has no parameters. Throws `ShapeError` unless it has one element, and `TapeError` for
  /// an auxiliary output of another tape.
  LayerGradients backward(const std::function<LossAndOutputs(const Var& output)>& loss,
                          Where where = Where::current());

  /// Predicts what a forward and a backward pass from an input of this type hold and compute. It
  /// simulates them with the sizes of the layers, and computes nothing. The layers are recorded as
  /// they would be now, for example in training or in evaluation. Throws `ArgumentError` when a
  /// layer looks at values.
  LayerForecast forecast(const ValueType& input);
  /// The memory and work since the last forward pass began. After one `backward` it equals the
  /// forecast. `activation` adds its work to the forward passes. Throws `ArgumentError` before a
  /// forward pass.
  LayerUse use() const;
  /// Discards what is kept, and releases the memory that runs of layers left for the next.
  void release();
  /// Counts the bytes of what is kept, and of recomputed tapes while they are held.
  const Meter& meter() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace palimpsest
