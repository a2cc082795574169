#pragma once

#include <memory>

#include "strategy/compile/fusion/lowered.h"
#include "strategy/compile/program_spec.h"

namespace palimpsest {

/// A recorded program after common subexpression elimination and constant folding, lowered on
/// demand: fused or not, simplified or as recorded.
class LoweredForms {
 public:
  /// Simplifies the tape. `before`, if any, is of a tape of the same structural fingerprint whose
  /// attributes may differ; then only simplifications that hold for both are made.
  LoweredForms(const Tape& tape, const ProgramSpec& spec, const LoweredForms* before = nullptr);

  /// The program in a form, `Lowered::fused` or `Lowered::unfused`. `tape` and `spec` are those of
  /// the constructor, or of a tape for which the simplification holds.
  const std::shared_ptr<const Lowered>& get(const Tape& tape, const ProgramSpec& spec,
                                            GraphForm form);

  const Simplification& simplification() const { return simplification_; }
  /// True when something can be simplified.
  bool is_simplified() const { return !simplification_.empty(); }
  /// True when simplifying may hold values for longer.
  bool holds_longer() const { return simplification_.holds_longer(); }
  /// True when the graph is that of one of the forms.
  bool has(const Graph& graph) const;
  /// Approximate bytes of the forms.
  Bytes bytes() const;

 private:
  Simplification simplification_;
  std::shared_ptr<const Lowered> forms_[2][2];  // by `fuse`, `simplify`
};

}  // namespace palimpsest
