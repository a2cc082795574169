#include "strategy/mpi/rank_updates.h"

namespace palimpsest {

void RankUpdates::begin(const Tape& tape, std::span<const Tape::Update> updates) {
  updates_.assign(updates.begin(), updates.end());
  types_.clear();
  std::size_t elements = 0;
  for (const Tape::Update& update : updates_) {
    types_.push_back(tape.type(update.value));
    elements += static_cast<std::size_t>(types_.back().shape.elements());
  }
  for (std::vector<double>* sums : {&own_, &all_, &of_a_rank_}) sums->assign(elements, 0);
}

void RankUpdates::add(std::span<const Tensor> values, std::int64_t examples) {
  const auto weight = static_cast<double>(examples);
  auto sum = own_.begin();
  for (const Tensor& value : values) {
    const Tensor wide = value.to(DType::f64);
    for (const double term : wide.data<double>()) *sum++ += weight * term;
  }
}

void RankUpdates::exchange(RankLink& link) { link.add(own_, of_a_rank_, all_); }

StagedUpdates RankUpdates::staged(std::int64_t examples) const {
  std::vector<Tensor> means;
  auto sum = all_.begin();
  for (const ValueType& type : types_) {
    const Tensor wide(type.shape, DType::f64);
    for (double& mean : wide.data<double>()) mean = *sum++ / static_cast<double>(examples);
    means.push_back(wide.to(type.dtype));
  }
  return {updates_, means};
}

}  // namespace palimpsest
