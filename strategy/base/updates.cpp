#include "strategy/base/updates.h"

#include <algorithm>

#include "autodiff/storage_version.h"

namespace palimpsest {

void append_updates(LossAndOutputs& values) {
  Tape& tape = values.loss.tape();
  for (const Tape::Update& update : tape.updates()) {
    values.outputs.push_back(tape.var(update.value));
  }
}

void keep_from_updates(std::span<const Tape::Update> updates, std::span<Tensor> tensors) {
  for (Tensor& tensor : tensors) {
    const bool is_changed = std::ranges::any_of(
        updates, [&](const Tape::Update& update) { return update.target.raw() == tensor.raw(); });
    if (is_changed) tensor = tensor.clone();
  }
}

namespace {

/// (1 − weight)·target + weight·value, rounded once to the target's dtype.
void blend(const Tensor& target, const Tensor& value, double weight) {
  const Tensor old = target.to(DType::f64);
  const Tensor made = value.to(DType::f64);
  const Tensor sum(target.shape(), DType::f64);
  for (std::size_t i = 0; i < sum.data<double>().size(); ++i) {
    sum.data<double>()[i] = (1 - weight) * old.data<double>()[i] + weight * made.data<double>()[i];
  }
  const Tensor rounded = sum.to(target.dtype());
  std::copy_n(rounded.raw(), rounded.bytes(), target.raw());
}

}  // namespace

StagedUpdates::StagedUpdates(std::span<const Tape::Update> updates,
                             std::span<const Tensor> values) {
  for (std::size_t i = 0; i < updates.size(); ++i) {
    const auto& [target, id, weight] = updates[i];
    auto found = std::ranges::find(targets_, target.raw(), &Tensor::raw);
    if (found == targets_.end()) {
      targets_.push_back(target);
      contents_.push_back(target.clone());
      found = targets_.end() - 1;
    }
    // Written in place, since a value may share its storage with another target.
    const Tensor& content = contents_[static_cast<std::size_t>(found - targets_.begin())];
    if (weight == 1) {
      const Tensor made = values[i].to(target.dtype());
      std::copy_n(made.raw(), made.bytes(), content.raw());
    } else {
      blend(content, values[i], weight);
    }
  }
}

void StagedUpdates::apply() const {
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    note_write(targets_[i], "update_after_run");
    std::copy_n(contents_[i].raw(), contents_[i].bytes(), targets_[i].raw());
  }
}

void apply_updates(std::span<const Tape::Update> updates, std::span<const Tensor> values) {
  StagedUpdates(updates, values).apply();
}

void require_same_updates(std::span<const Tape::Update> updates,
                          std::span<const Tape::Update> others) {
  const auto is_same = [](const Tape::Update& a, const Tape::Update& b) {
    return a.target.raw() == b.target.raw() && a.target.type() == b.target.type() &&
           a.weight == b.weight;
  };
  if (std::ranges::equal(updates, others, is_same)) return;
  throw ArgumentError(
      "[execution] parts of a batch register other updates: " + std::to_string(updates.size()) +
      " and " + std::to_string(others.size()) +
      " calls of update_after_run; let each part update the same tensors, in the same order and by "
      "the same weights");
}

Tensor mean_of_parts(std::span<const Tensor> values, std::span<const std::int64_t> examples) {
  Tensor sum = Tensor::zeros(values[0].shape(), DType::f64);
  const std::span<double> sums = sum.data<double>();
  double count = 0;
  for (std::size_t part = 0; part < values.size(); ++part) {
    if (values[part].shape() != values[0].shape()) {
      throw ShapeError("[update_after_run] parts of a batch update a tensor by shapes " +
                       to_string(values[0].shape()) + " and " + to_string(values[part].shape()) +
                       "; let each part record the same outputs and updates");
    }
    const auto weight = static_cast<double>(examples[part]);
    const Tensor wide = values[part].to(DType::f64);
    const std::span<const double> terms = wide.data<double>();
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += weight * terms[i];
    count += weight;
  }
  for (double& each : sums) each /= count;
  return sum.to(values[0].dtype());
}

}  // namespace palimpsest
