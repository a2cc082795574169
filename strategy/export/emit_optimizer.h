#pragma once

#include <string>
#include <vector>

#include "strategy/export/export_c.h"

namespace palimpsest {

/// The update of an optimizer in C, with the formulas of strategy/training/.
class COptimizerText {
 public:
  /// Throws `ArgumentError` for settings that the optimizer refuses and for groups.
  COptimizerText(const COptimizer& optimizer, const Where& where);

  bool exists() const { return !slots_.empty() || !kind_.empty(); }
  /// Whether the state counts steps.
  bool counts_steps() const { return counts_steps_; }
  /// Names of the arrays that each parameter has in the state.
  const std::vector<std::string>& slots() const { return slots_; }
  double learning_rate() const { return learning_rate_; }
  /// The static function that updates a parameter of this dtype. Arguments are the parameter, its
  /// gradient, its slots, the number of elements, the learning rate and, if they are counted, the
  /// steps.
  std::string function(DType dtype) const;
  std::string function_name(DType dtype) const;

 private:
  std::string sgd_body(DType dtype) const;
  std::string adam_body(DType dtype) const;

  COptimizer optimizer_;
  std::string kind_;  // empty: no optimizer
  std::vector<std::string> slots_;
  bool counts_steps_ = false;
  double learning_rate_ = 0;
};

}  // namespace palimpsest
