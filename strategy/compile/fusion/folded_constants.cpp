#include "strategy/compile/fusion/folded_constants.h"

#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <span>
#include <vector>

#include "autodiff/execute.h"

namespace palimpsest {
namespace {

constexpr Bytes most_bytes = 1 << 20;

Operand allocate(const ValueType& type, Buffer& buffer) {
  buffer = allocate_buffer(type.bytes());
  return {buffer.get(), type};
}

void fill(const Operand& operand, double number) {
  visit(operand.dtype(), [&]<class T>(T) {
    std::fill_n(operand.as<T>(), operand.elements(), convert_element<T>(number));
  });
}

/// The number that all elements equal, if f64 represents it exactly.
std::optional<double> number_in(const Operand& operand) {
  return visit(operand.dtype(), [&]<class T>(T) -> std::optional<double> {
    const T* const elements = operand.as<T>();
    const auto number = convert_element<double>(elements[0]);
    if (!std::isfinite(number)) return {};
    if (std::integral<T> && std::abs(number) > 0x1p53) return {};
    const T back = convert_element<T>(number);
    const auto bytes = std::as_bytes(std::span(&back, 1));
    for (std::int64_t i = 0; i < operand.elements(); ++i) {
      if (!std::ranges::equal(std::as_bytes(std::span(&elements[i], 1)), bytes)) return {};
    }
    return number;
  });
}

}  // namespace

std::optional<double> folded_constant_of(const NodeView& node, std::span<const double> numbers) {
  const Operation& operation = node.operation();
  if (node.output_count() != 1 || node.output().shape.elements() == 0) return {};
  if (operation.view || operation.access != nullptr) return numbers[0];
  const bool pointwise = operation.pointwise != nullptr;
  if (!pointwise && operation.fold == nullptr) return {};
  if (pointwise && operation.workspace != nullptr) return {};
  // For elementwise operations a single element is enough.
  const auto type = [&](ValueType full) { return pointwise ? ValueType{{}, full.dtype} : full; };
  Bytes bytes = type(node.output()).bytes();
  for (std::size_t i = 0; i < numbers.size(); ++i) bytes += type(node.input(i)).bytes();
  if (bytes > most_bytes) return {};

  std::vector<Buffer> buffers(numbers.size() + 2);
  std::vector<Operand> inputs;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    inputs.push_back(allocate(type(node.input(i)), buffers[i]));
    fill(inputs.back(), numbers[i]);
  }
  const Operand output = allocate(type(node.output()), buffers[numbers.size()]);
  const Bytes scratch =
      pointwise ? std::ssize(buffers) * aligned(size_of(DType::f64)) : workspace_of(node, 1);
  buffers.back() = allocate_buffer(scratch);
  const std::span workspace(buffers.back().get(), static_cast<std::size_t>(scratch));
  const auto run = [&] {
    execute(operation, {node.attributes(), inputs, {&output, 1}, workspace, 1});
  };
  if (pointwise) {
    run();
  } else {
    tbb::task_arena(1).execute(run);  // the workspace is for one thread
  }
  return number_in(output);
}

}  // namespace palimpsest
