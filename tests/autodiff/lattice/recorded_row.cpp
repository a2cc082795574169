#include "tests/autodiff/lattice/recorded_row.h"

#include <algorithm>

#include "autodiff/gradient.h"
#include "autodiff/operation.h"
#include "autodiff/operations/leaf.h"

namespace palimpsest::lattice {
namespace {

void append(Numbers& all, const Tensor& tensor) {
  for (std::int64_t i = 0; i < tensor.elements(); ++i) all.push_back(tensor.at(i));
}

}  // namespace

Numbers weights(std::size_t count, std::uint64_t seed) {
  Numbers result(count);
  for (std::size_t i = 0; i < count; ++i) {
    const auto drawn = (i + 1) * 0x9e3779b97f4a7c15 + seed * 0xbf58476d1ce4e5b9;
    result[i] = 0.5 + static_cast<double>(drawn >> 40) / static_cast<double>(1 << 24);
  }
  return result;
}

std::vector<Tensor> converted(std::span<const Tensor> inputs, DType dtype) {
  std::vector<Tensor> result;
  for (const Tensor& input : inputs) {
    result.push_back(is_floating(input.dtype()) ? input.to(dtype) : input);
  }
  return result;
}

RecordedRow::RecordedRow(const OperationRow& row, std::span<const Tensor> inputs, int order)
    : operation_(row.operation) {
  tape_.set_seed(7);
  for (const Tensor& input : inputs) {
    const bool floats = is_floating(input.dtype());
    xs_.push_back(floats ? tape_.parameter(input) : tape_.constant(input));
    if (floats) floating_.push_back(xs_.back());
  }
  ys_ = {row.call(xs_)};
  for (int i = 1; i < order && is_differentiable(); ++i) {
    Numbers all;
    for (const Var& y : ys_) {
      const Numbers some = weights(static_cast<std::size_t>(y.shape().elements()), 3);
      all.insert(all.end(), some.begin(), some.end());
    }
    ys_ = vjp(ys_, floating_, seeds_of(all));
  }
}

bool RecordedRow::is_elementwise() const {
  const Var& y = ys_[0];
  const Operation& operation = tape_.operation(y.node());
  return ys_.size() == 1 && operation.name == operation_ && operation.pointwise != nullptr &&
         std::ranges::all_of(xs_, [&](const Var& x) { return x.shape() == y.shape(); });
}

Numbers RecordedRow::values() const {
  Numbers all;
  for (const Var& y : ys_) append(all, y.value());
  return all;
}

std::vector<Numbers> RecordedRow::derivatives(const Numbers& by_output) {
  std::vector<Numbers> result;
  for (const Var& g : vjp(ys_, floating_, seeds_of(by_output)))
    append(result.emplace_back(), g.value());
  return result;
}

/// One seed for each output, with the next elements of `by_output`.
std::vector<Var> RecordedRow::seeds_of(const Numbers& by_output) {
  std::vector<Var> seeds;
  auto next = by_output.begin();
  for (const Var& y : ys_) {
    const auto end = next + static_cast<std::ptrdiff_t>(y.shape().elements());
    seeds.push_back(tape_.constant(Tensor::from(Numbers(next, end), y.shape()).to(y.dtype())));
    next = end;
  }
  return seeds;
}

}  // namespace palimpsest::lattice
