#include "strategy/loops/loop_adjoints.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace palimpsest {

LoopAdjoints::LoopAdjoints(const LoopGradient& gradient, std::uint32_t steps,
                           const KernelCall& call, Cut& cut)
    : gradient_(gradient), steps_(steps) {
  const Loop& loop = gradient.loop();
  const LoopGradient::Requested& requested = gradient.requested();
  blocks_[0] = cut.take(gradient.adjoints());
  blocks_[1] = cut.take(gradient.adjoints());
  const Operand* operand =
      call.inputs.data() + loop.operand_count() + (loop.has_condition() ? 2 : 1);
  for (std::size_t i = 0; i < gradient.carried().size(); ++i) {
    const bool is_given = requested.next[gradient.carried()[i]];
    carried_.push_back(is_given ? (operand++)->data : blocks_[0][i]);
    const auto bytes = static_cast<std::size_t>(gradient.adjoints().sizes[i]);
    if (!is_given) std::memset(blocks_[0][i], 0, bytes);
  }
  outputs_ = Parts({operand, call.inputs.data() + call.inputs.size()}, steps_);

  operand = call.outputs.data();
  for (std::size_t i = 0; i < gradient.carried().size(); ++i) {
    const bool is_wanted = requested.state[gradient.carried()[i]];
    first_.push_back(is_wanted ? (operand++)->data : nullptr);
  }
  const auto inputs =
      static_cast<std::size_t>(std::count(requested.inputs.begin(), requested.inputs.end(), true));
  inputs_ = Parts({operand, inputs}, steps_);
  sums_[0] = cut.take(gradient.sums());
  for (operand += inputs; sums_[1].size() < sums_[0].size(); ++operand) {
    sums_[1].push_back(operand->data);
    sum_types_.push_back(operand->type);
  }
  // The blocks swap at every step; this start makes the last sums end up in the outputs.
  if (steps_ % 2 == 0) std::swap(sums_[0], sums_[1]);
  for (std::size_t i = 0; i < sum_types_.size(); ++i) {
    fill_with_nothing(sums_[0][i], sum_types_[i]);
  }
}

const Addresses& LoopAdjoints::given(std::uint32_t step) {
  given_.resize(carried_.size() + outputs_.size() + sums_[0].size());
  auto next = std::ranges::copy(carried_, given_.begin()).out;
  outputs_.for_each(step, [&](std::byte* each) { *next++ = each; });
  std::ranges::copy(sums_[0], next);
  return given_;
}

const Addresses& LoopAdjoints::results(std::uint32_t step) {
  const std::size_t block = (steps_ - step) % 2;
  results_.resize(carried_.size() + inputs_.size() + sums_[1].size());
  auto next = results_.begin();
  for (std::size_t i = 0; i < carried_.size(); ++i) {
    const bool is_returned = step == 0 && first_[i] != nullptr;
    *next++ = is_returned ? first_[i] : blocks_[block][i];
  }
  inputs_.for_each(step, [&](std::byte* each) { *next++ = each; });
  std::ranges::copy(sums_[1], next);
  return results_;
}

void LoopAdjoints::reversed() {
  std::copy_n(results_.begin(), carried_.size(), carried_.begin());
  std::swap(sums_[0], sums_[1]);
}

void LoopAdjoints::continue_with(std::uint32_t left) {
  if (left == steps_) return;
  carried_ = blocks_[(steps_ - left) % 2];
  if ((steps_ - left) % 2 == 1) std::swap(sums_[0], sums_[1]);
}

void LoopAdjoints::finish(const std::vector<bool>& untouched) {
  for (std::size_t i = 0; i < first_.size(); ++i) {
    const auto bytes = static_cast<std::size_t>(gradient_.adjoints().sizes[i]);
    if (steps_ == 0 && first_[i] != nullptr) std::memcpy(first_[i], carried_[i], bytes);
  }
  for (std::size_t i = 0; i < sum_types_.size(); ++i) {
    const auto bytes = static_cast<std::size_t>(gradient_.sums().sizes[i]);
    if (steps_ == 0 || untouched[i]) std::memset(sums_[0][i], 0, bytes);
  }
}

}  // namespace palimpsest
