#include "strategy/compile/lowered_forms.h"

#include "strategy/base/profile.h"
#include "strategy/compile/fusion/verify_lowered.h"
#include "strategy/compile/fusion/work.h"
#include "strategy/compile/verify_passes.h"

namespace palimpsest {

LoweredForms::LoweredForms(const Tape& tape, const ProgramSpec& spec, const LoweredForms* before)
    : simplification_(tape, Needs(tape, spec.targets, spec.held, spec.afresh), spec.backward_begins,
                      before == nullptr ? nullptr : &before->simplification_) {}

const std::shared_ptr<const Lowered>& LoweredForms::get(const Tape& tape, const ProgramSpec& spec,
                                                        GraphForm form) {
  const bool simplify = form.simplify && is_simplified();
  std::shared_ptr<const Lowered>& lowered = forms_[form.fuse][simplify];
  if (lowered != nullptr) return lowered;
  const Simplification recorded;
  const Simplification& by = simplify ? simplification_ : recorded;
  const auto lower = form.fuse ? Lowered::fused : Lowered::unfused;
  Lowered made = lower(tape, spec.targets, spec.threads, spec.backward_begins, spec.held, by,
                       spec.afresh, spec.machine);
  if (spec.costs != nullptr) {
    made.take_costs([&](NodeId unit) -> std::optional<double> {
      const std::optional<double> seconds = spec.costs->seconds(work_of(tape, made, unit));
      if (!seconds) return {};
      return *seconds + spec.machine.seconds_per_node;
    });
  }
  if (spec.results_in_buffers) made.place_results_elsewhere(spec.donations);
  if (verifies_passes()) verify(made, tape, spec.targets, by);
  lowered = std::make_shared<const Lowered>(std::move(made));
  return lowered;
}

bool LoweredForms::has(const Graph& graph) const {
  for (const auto& simplified_or_not : forms_) {
    for (const auto& lowered : simplified_or_not) {
      if (lowered != nullptr && &lowered->graph() == &graph) return true;
    }
  }
  return false;
}

Bytes LoweredForms::bytes() const {
  Bytes bytes = simplification_.bytes();
  for (const auto& simplified_or_not : forms_) {
    for (const auto& lowered : simplified_or_not) {
      if (lowered != nullptr) bytes += lowered->bytes();
    }
  }
  return bytes;
}

}  // namespace palimpsest
