#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "checkpoint/meter.h"
#include "strategy/backward.h"
#include "strategy/base/precision.h"
#include "strategy/execution/layer_checkpointing/layer_checkpointing.h"
#include "strategy/execution/layer_checkpointing/layer_model.h"
#include "strategy/execution/layer_checkpointing/layer_use.h"

namespace palimpsest {

/// What a backward pass through layers gives.
struct LayerGradients {
  /// Of every parameter, by the `Var`s of `LayerCheckpointer::parameter`, layer after layer: what
  /// optimizers take. Its loss is undefined where an adjoint was given. Its report adds up the runs
  /// of the backward pass, those that compute layers again among them, as recomputed; of peaks it
  /// has the highest of a run, beside which what is kept is held. Its `compute_overhead` is 0: a
  /// `LayerForecast` has the factor.
  Gradients parameters;
  /// Of the model's input; undefined where that is not floating.
  Tensor input;
};

/// Runs a model layer by layer and keeps of it what a configuration says.
///
/// Every layer is recorded, run and differentiated on a tape of its own, which goes when it has
/// served. `backward` treats one segment after the other, from the last: it computes the segment's
/// layers again from the activation kept before them, holds their tapes, and differentiates them.
/// Gradients have the same bits as those of the whole model on one tape, whatever is kept, as long
/// as nothing is rounded (`LayerCheckpointing::codec`). For one thread at a time.
class LayerCheckpointer {
 public:
  /// `options` are those of every run of a layer, a memory budget among them: a run that does not
  /// fit throws `BudgetError` when its turn comes, behind others that did, and names its layer and
  /// the smallest budget for that run, which others may exceed. Throws `ArgumentError` for a
  /// configuration that is not valid or does not go with the model, and for a model without layers
  /// or functions; `DTypeError` for a parameter that is not floating. In a `precision` each layer
  /// is computed as `precise` says, and so is the loss behind them; inputs, outputs and parameters
  /// of layers have the dtypes recorded.
  LayerCheckpointer(LayerModel model, LayerCheckpointing checkpointing, RunOptions options = {},
                    const std::optional<Precision>& precision = {});
  ~LayerCheckpointer();
  LayerCheckpointer(LayerCheckpointer&&) noexcept;
  LayerCheckpointer& operator=(LayerCheckpointer&&) noexcept;

  int layers() const;
  const LayerCheckpointing& checkpointing() const;
  /// The name of a parameter among gradients. It is of use while the checkpointer is there. Throws
  /// `ArgumentError` for one that is not there.
  Var parameter(int layer, int index, Sublayer sublayer = Sublayer::attention) const;

  /// The output of the model, and forgets what was kept before. `input` and the parameters must not
  /// be changed until `backward` has been called. Random operations draw the numbers that they
  /// would on one fresh tape with this seed. Errors of use in a layer's function, and budgets that
  /// are too small, name the layer, other exceptions come as they are; afterwards nothing is kept.
  /// In mode `dynamic` throws `BudgetError`, before any work, when the fraction is too small.
  Tensor forward(const Tensor& input, std::uint64_t seed = 0);

  /// A copy of the input of a layer, or one of its sublayers, in the last forward pass, computed
  /// from the nearest activation kept before it; `activation(layers())` is the model's output.
  /// Throws `ArgumentError` for a layer that is not there, and before a forward pass.
  Tensor activation(int layer, Sublayer sublayer = Sublayer::attention);

  /// Whether that is held since the last forward pass, on its own or in a tape, so that
  /// `activation` computes nothing. Throws the same.
  bool is_kept(int layer, Sublayer sublayer = Sublayer::attention) const;

  /// Keeps the input of a layer, or one of its sublayers, from the last forward pass until the
  /// next, in addition to what the configuration says; computed from the nearest activation kept
  /// before it. No effect where it is kept. Forecasts do not know of it. Throws the same, and
  /// `ArgumentError` where `max_kept` activations are kept already.
  void save(int layer, Sublayer sublayer = Sublayer::attention);

  /// The gradients of the parameters and the input by the adjoint of the output. What is kept
  /// stays, so it can be called again; but in modes `every` and `listed` the tapes of the last
  /// segment go when they have served, and another call computes them again. Layers before one that
  /// lets no derivative through are not differentiated, and have gradients of zeros. Throws
  /// `ArgumentError` before a forward pass, `ShapeError` and `DTypeError` for an adjoint of another
  /// type.
  LayerGradients backward(const Tensor& adjoint);
  /// The gradients of a loss, which is recorded from the output and has no parameters. Throws
  /// `ShapeError` unless it has one element.
  LayerGradients backward(const std::function<Var(const Var& output)>& loss,
                          Where where = Where::current());

  /// What a forward and a backward pass from an input of this type will hold and compute, by
  /// simulation with the sizes of the layers, of which nothing is computed. The layers are taken to
  /// record the same for inputs of one type. Throws `ArgumentError` when a layer looks at values.
  LayerForecast forecast(const ValueType& input);
  /// What has been held and computed from the last forward pass on: behind one `backward`, what was
  /// forecast; `activation` adds what it computes to the forward passes. Throws `ArgumentError`
  /// before a forward pass.
  LayerUse use() const;
  /// Forgets what is kept, and gives back the memory that runs of layers left for the next.
  void release();
  /// Counts the bytes of what is kept, and of tapes computed again while they are held.
  const Meter& meter() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace palimpsest
