#include "strategy/base/batch_parts.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "autodiff/error.h"

namespace palimpsest {
namespace {

Shape with_examples(Shape shape, std::int64_t examples) {
  shape[0] = examples;
  return shape;
}

}  // namespace

std::int64_t examples_of(std::span<const Tensor> batch) {
  if (batch.empty()) {
    throw ArgumentError(
        "[execution] the batch has no tensors; give at least one, with the "
        "examples along its first axis");
  }
  for (const Tensor& tensor : batch) {
    const Shape shape = tensor.shape();
    if (shape.rank() > 0 && shape[0] == batch[0].shape()[0]) continue;
    throw ShapeError("[execution] the tensors of a batch have shapes " +
                     to_string(batch[0].shape()) + " and " + to_string(shape) +
                     "; give all of them the same number of examples along the first axis");
  }
  return batch[0].shape()[0];
}

std::int64_t examples_or_one(std::span<const Tensor> batch) {
  const bool has_axis = !batch.empty() && batch[0].shape().rank() > 0;
  return has_axis ? batch[0].shape()[0] : 1;
}

std::vector<Tensor> part_of(std::span<const Tensor> batch, int part, int parts) {
  if (parts == 1) return {batch.begin(), batch.end()};
  const std::int64_t examples = examples_of(batch);
  if (examples < parts) {
    throw ArgumentError("[execution] " + std::to_string(examples) +
                        " examples cannot be cut into " + std::to_string(parts) +
                        " parts; give a larger batch, or fewer replicas "
                        "and micro-batches");
  }
  const std::int64_t size = examples / parts;
  const std::int64_t longer = examples % parts;
  const std::int64_t first = part * size + std::min<std::int64_t>(part, longer);
  const std::int64_t count = size + (part < longer ? 1 : 0);
  std::vector<Tensor> tensors;
  for (const Tensor& whole : batch) {
    std::byte* const data = whole.raw() + first * (whole.bytes() / examples);
    tensors.emplace_back(Buffer(whole.buffer(), data), with_examples(whole.shape(), count),
                         whole.dtype());
  }
  return tensors;
}

ValueType type_together(std::span<const ValueType> parts) {
  if (parts.size() == 1) return parts[0];
  const auto& [first, dtype] = parts[0];
  std::int64_t examples = 0;
  for (const ValueType& part : parts) {
    const std::string both = "[execution] the model returns " + to_string(parts[0]) + " and " +
                             to_string(part) +
                             " for parts of a batch, which cannot be concatenated";
    if (part.dtype != dtype) throw DTypeError(both + "; cast the values of all parts to one dtype");
    if (part.shape.rank() == 0 || with_examples(part.shape, 0) != with_examples(first, 0)) {
      throw ShapeError(both + "; return values with the examples along the first axis");
    }
    examples += part.shape[0];
  }
  return {with_examples(first, examples), dtype};
}

Tensor put_together(std::span<const Tensor> parts) {
  if (parts.size() == 1) return parts[0];
  std::vector<ValueType> types;
  for (const Tensor& part : parts) types.push_back(part.type());
  const ValueType type = type_together(types);
  Tensor whole(type.shape, type.dtype);
  std::byte* to = whole.raw();
  for (const Tensor& part : parts) {
    std::memcpy(to, part.raw(), static_cast<std::size_t>(part.bytes()));
    to += part.bytes();
  }
  return whole;
}

}  // namespace palimpsest
