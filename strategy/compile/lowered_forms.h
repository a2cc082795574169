#pragma once

#include <memory>

#include "strategy/compile/fusion/lowered.h"
#include "strategy/compile/program_spec.h"

namespace palimpsest {

/// A recorded program after common subexpression elimination and constant folding, lowered on
/// demand: fused or not, simplified or as recorded.
class LoweredForms {
 public:
  /// Simplifies the tape.
  LoweredForms(const Tape& tape, const ProgramSpec& spec) { simplify(tape, spec, nullptr); }

  /// Adapts to a tape of the same structural fingerprint whose attributes may differ. Drops
  /// simplifications that depend on different attributes, and the forms made with them.
  void follow(const Tape& tape, const ProgramSpec& spec);
  /// The program in a form, `Lowered::fused` or `Lowered::unfused`. `tape` and `spec` are those
  /// last given to the constructor or `follow`.
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
  void simplify(const Tape& tape, const ProgramSpec& spec, const Simplification* before);

  Simplification simplification_;
  std::shared_ptr<const Lowered> forms_[2][2];  // by `fuse`, `simplify`
};

}  // namespace palimpsest
