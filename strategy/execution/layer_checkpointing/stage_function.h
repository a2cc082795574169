#pragma once

#include <string>
#include <utility>

#include "strategy/base/named_errors.h"
#include "strategy/execution/layer_checkpointing/layer_model.h"

namespace palimpsest {

/// One layer of a model, or one sublayer.
struct StageFunction {
  const LayerFunction* function;
  int layer;
  const char* sublayer;  ///< its name, or null
  Where where;           ///< the line that made the model

  const std::vector<Tensor>& parameters() const {
    return function->parameters[static_cast<std::size_t>(layer)];
  }
  /// For messages, such as `layer 3, attention`.
  std::string describe() const {
    return "layer " + std::to_string(layer) +
           (sublayer != nullptr ? ", " + std::string(sublayer) : "");
  }
};

/// Calls `f`. Usage errors that it throws, and budgets that are too small, name `part` of the
/// model.
template <class F>
auto naming(const std::string& part, F f) {
  return naming_errors("[layers] " + part, std::move(f));
}

}  // namespace palimpsest
