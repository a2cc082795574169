#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "autodiff/export.h"
#include "autodiff/var.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// What a layer returns: its output, and auxiliary outputs, which the caller receives with the
/// gradients. A `Var` converts to an output without them, and an output converts to its `Var`, so
/// that a function of plain layers can wrap another.
struct LayerOutput {
  // NOLINTNEXTLINE(google-explicit-constructor)
  LayerOutput(const Var& made, std::vector<Var> others = {})
      : output(made), outputs(std::move(others)) {}
  operator const Var&() const { return output; }  // NOLINT(google-explicit-constructor)

  Var output;
  std::vector<Var> outputs;
};

/// A function that every layer of a model runs, and the parameters of each layer.
struct LayerFunction {
  /// By layer. Floating tensors. Their storage is shared, so the next run sees what an optimizer
  /// changed. A tensor that two layers share gets a gradient from each.
  std::vector<std::vector<Tensor>> parameters = {};
  /// Records layer number `layer` on the tape of `x` and returns its output, which is floating. It
  /// is called again whenever the layer is recomputed, and must record the same for the same `x`.
  /// It must not record parameters of its own, since their gradients could not be returned. It may
  /// update tensors (`Tape::update_after_run`).
  std::function<LayerOutput(const Var& x, std::span<const Var> parameters, int layer)> forward =
      nullptr;
};

/// Layers in sequence: either `layer`, or `attention` followed by `feed_forward`. In the second
/// form an activation between the two can be kept too.
struct LayerModel {
  LayerFunction layer = {};
  LayerFunction attention = {};
  LayerFunction feed_forward = {};
};

/// A part of a layer. `attention` stands for the whole of a layer without parts.
enum class Sublayer : std::uint8_t { attention, feed_forward };

}  // namespace palimpsest
