#include "strategy/base/part_outputs.h"

#include <string>
#include <utility>

#include "strategy/base/batch_parts.h"

namespace palimpsest {
namespace {

Shape with_axis(const Shape& shape) { return shape.rank() == 0 ? Shape{1} : shape; }

/// One output of all parts.
Tensor join_parts(std::vector<Tensor> parts) {
  if (parts.size() == 1) return parts[0];
  for (Tensor& part : parts) part = part.reshape(with_axis(part.shape()));
  return put_together(parts);
}

}  // namespace

void require_equally_many(std::size_t outputs, std::size_t others) {
  if (outputs == others) return;
  throw ArgumentError("[execution] parts of a batch return " + std::to_string(outputs) + " and " +
                      std::to_string(others) +
                      " outputs and updates; return equally many for each part");
}

ValueType type_of_output(std::span<const ValueType> parts) {
  if (parts.size() == 1) return parts[0];
  std::vector<ValueType> types;
  for (const ValueType& part : parts) types.push_back({with_axis(part.shape), part.dtype});
  return type_together(types);
}

void PartOutputs::add(std::vector<Tensor> outputs, std::int64_t examples) {
  if (!examples_.empty()) require_equally_many(by_output_.size(), outputs.size());
  by_output_.resize(outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i) by_output_[i].push_back(std::move(outputs[i]));
  examples_.push_back(examples);
}

PartOutputs::Joined PartOutputs::join(std::span<const Tape::Update> updates) {
  const std::size_t requested = by_output_.size() - updates.size();
  std::vector<Tensor> outputs;
  for (std::size_t i = 0; i < requested; ++i) {
    outputs.push_back(join_parts(std::exchange(by_output_[i], {})));
  }
  std::vector<Tensor> values;
  for (const std::vector<Tensor>& parts : std::span(by_output_).subspan(requested)) {
    values.push_back(parts.size() == 1 ? parts[0] : mean_of_parts(parts, examples_));
  }
  keep_from_updates(updates, outputs);
  return {std::move(outputs), StagedUpdates(updates, values)};
}

std::vector<Tensor> PartOutputs::finish(std::span<const Tape::Update> updates) {
  Joined joined = join(updates);
  joined.updates.apply();
  return std::move(joined.outputs);
}

}  // namespace palimpsest
