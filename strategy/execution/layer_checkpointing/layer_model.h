#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "autodiff/var.h"

namespace palimpsest {

/// One function that every layer of a model runs, and each layer's parameters.
struct LayerFunction {
  /// By layer. Floating tensors, whose storage is shared: the next run sees what an optimizer makes
  /// of them. A tensor that two layers have gets a gradient of each.
  std::vector<std::vector<Tensor>> parameters = {};
  /// Records layer number `layer` on the tape of `x` and returns its output, which is floating.
  /// Called again whenever the layer is computed again: it must record the same for the same `x`,
  /// and no parameters of its own, whose gradients nobody could ask for.
  std::function<Var(const Var& x, std::span<const Var> parameters, int layer)> forward = nullptr;
};

/// Layers that follow each other: either `layer`, or `attention` and behind it `feed_forward`,
/// between which an activation can be kept too.
struct LayerModel {
  LayerFunction layer = {};
  LayerFunction attention = {};
  LayerFunction feed_forward = {};
};

/// A part of a layer; of one that has no parts, `attention` stands for the whole.
enum class Sublayer : std::uint8_t { attention, feed_forward };

}  // namespace palimpsest
