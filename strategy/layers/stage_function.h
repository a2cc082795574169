#pragma once

#include <string>

#include "checkpoint/plan.h"
#include "strategy/layers/layer_model.h"

namespace palimpsest {

/// One layer of a model, or one sublayer.
struct StageFunction {
  const LayerFunction* function;
  int layer;
  const char* sublayer;  ///< its name, or null

  const std::vector<Tensor>& parameters() const {
    return function->parameters[static_cast<std::size_t>(layer)];
  }
  /// `layer 3, attention`, for messages.
  std::string describe() const {
    return "layer " + std::to_string(layer) +
           (sublayer != nullptr ? ", " + std::string(sublayer) : "");
  }
};

/// Calls `f`. Of what it throws, errors of use and budgets that are too small name `part` of the
/// model.
template <class F>
auto naming(const std::string& part, F f) {
  const auto text = [&](const std::exception& error) {
    return "[layers] " + part + ": " + error.what();
  };
  try {
    return f();
  } catch (const ShapeError& error) {
    throw ShapeError(text(error));
  } catch (const DTypeError& error) {
    throw DTypeError(text(error));
  } catch (const ArgumentError& error) {
    throw ArgumentError(text(error));
  } catch (const TapeError& error) {
    throw TapeError(text(error));
  } catch (const AnomalyError& error) {
    throw AnomalyError(text(error));
  } catch (const BudgetError& error) {
    throw BudgetError(text(error), error.budget(), error.smallest_feasible());
  }
}

}  // namespace palimpsest
