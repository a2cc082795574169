#include "strategy/base/updates.h"

#include <algorithm>

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

void apply_updates(std::span<const Tape::Update> updates, std::span<const Tensor> values) {
  std::vector<Tensor> kept(values.begin(), values.end());
  keep_from_updates(updates, kept);
  for (std::size_t i = 0; i < updates.size(); ++i) {
    const auto& [target, id, weight] = updates[i];
    if (weight == 1) {
      const Tensor made = kept[i].to(target.dtype());
      std::copy_n(made.raw(), made.bytes(), target.raw());
    } else {
      blend(target, kept[i], weight);
    }
  }
}

Tensor mean_of_parts(std::span<const Tensor> values, std::span<const std::int64_t> examples) {
  Tensor sum = Tensor::zeros(values[0].shape(), DType::f64);
  const std::span<double> sums = sum.data<double>();
  double count = 0;
  for (std::size_t part = 0; part < values.size(); ++part) {
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
