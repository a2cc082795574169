#include "autodiff/execute.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "autodiff/convert.h"
#include "autodiff/parallel.h"

namespace palimpsest {
namespace {

bool needs_widening(const Operation& operation, DType dtype) {
  return operation.half == HalfSupport::widened && is_half(dtype);
}

Bytes widened_bytes(const Operation& operation, const ValueType& type) {
  if (!needs_widening(operation, type.dtype)) return 0;
  return aligned(type.shape.elements() * size_of(DType::f32));
}

}  // namespace

Bytes workspace_of(const NodeView& node, int threads) {
  const Operation& operation = node.operation();
  if (operation.leaf || operation.view) return 0;
  Bytes bytes = operation.workspace != nullptr ? aligned(operation.workspace(node, threads)) : 0;
  for (std::size_t i = 0; i < node.input_count(); ++i)
    bytes += widened_bytes(operation, node.input(i));
  for (std::size_t i = 0; i < node.output_count(); ++i) {
    bytes += widened_bytes(operation, node.output(i));
  }
  return bytes;
}

void execute(const Operation& operation, const Attributes& attributes,
             std::span<const Operand> inputs, std::span<const Operand> outputs,
             std::span<std::byte> workspace, int threads, std::uint32_t round) {
  const auto narrow = [&](const Operand& operand) {
    return needs_widening(operation, operand.dtype());
  };
  if (std::none_of(inputs.begin(), inputs.end(), narrow) &&
      std::none_of(outputs.begin(), outputs.end(), narrow)) {
    operation.compute({attributes, inputs, outputs, workspace, threads, round});
    return;
  }
  std::vector<Operand> wide(inputs.begin(), inputs.end());
  wide.insert(wide.end(), outputs.begin(), outputs.end());
  std::byte* free = workspace.data() + workspace.size();
  for (std::size_t i = 0; i < wide.size(); ++i) {
    if (!narrow(wide[i])) continue;
    free -= widened_bytes(operation, wide[i].type);
    const Operand original = wide[i];
    wide[i] = {free, {original.type.shape, DType::f32}};
    if (i < inputs.size()) convert(original, wide[i]);
  }
  const std::span<const Operand> all(wide);
  const auto scratch = workspace.first(static_cast<std::size_t>(free - workspace.data()));
  operation.compute(
      {attributes, all.first(inputs.size()), all.subspan(inputs.size()), scratch, threads, round});
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (narrow(outputs[i])) convert(wide[inputs.size() + i], outputs[i]);
  }
}

void execute_on_tape(Tape& tape, NodeId node, const Allocate& allocate, bool anomaly) {
  const Operation& operation = tape.operation(node);
  const ValueId first = tape.first_output(node);
  if (operation.view) {
    tape.set_buffer(first, tape.buffer(tape.inputs(node)[0]));
    return;
  }
  std::vector<Operand> inputs;
  for (const ValueId input : tape.inputs(node)) {
    inputs.push_back({tape.buffer(input).get(), tape.type(input)});
  }
  std::vector<Buffer> made;
  std::vector<Operand> outputs;
  for (ValueId i = 0; i < tape.output_count(node); ++i) {
    const ValueType type = tape.type(first + i);
    made.push_back(allocate(type.bytes()));
    outputs.push_back({made.back().get(), type});
  }
  const int threads = max_threads();
  const Bytes scratch = workspace_of(NodeView(tape, node), threads);
  const Buffer workspace = scratch > 0 ? allocate(scratch) : nullptr;
  execute(operation, tape.attributes(node), inputs, outputs,
          {workspace.get(), static_cast<std::size_t>(scratch)}, threads);
  if (anomaly) check_finite(tape, node, inputs, outputs);
  for (ValueId i = 0; i < made.size(); ++i) {
    if (!tape.has_value(first + i)) tape.set_buffer(first + i, std::move(made[i]));
  }
}

namespace {

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  std::int64_t bad = 0;
};

Range range_of(const Operand& operand) {
  const Tensor tensor(Buffer(Buffer(), operand.data), operand.shape(), operand.dtype());
  Range range;
  for (std::int64_t i = 0; i < operand.elements(); ++i) {
    const double element = tensor.at(i);
    if (!std::isfinite(element)) ++range.bad;
    if (element < range.low) range.low = element;
    if (element > range.high) range.high = element;
  }
  return range;
}

bool all_finite(const Operand& operand) {
  if (!is_floating(operand.dtype())) return true;
  return visit(operand.dtype(), [&]<class T>(T) {
    const T* data = operand.as<T>();
    return std::all_of(data, data + operand.elements(), [](const T& element) {
      if constexpr (std::is_floating_point_v<T>) {
        return std::isfinite(element);
      } else {
        return std::isfinite(static_cast<double>(static_cast<float>(element)));
      }
    });
  });
}

}  // namespace

void check_finite(const Tape& tape, NodeId node, std::span<const Operand> inputs,
                  std::span<const Operand> outputs) {
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    if (all_finite(outputs[o])) continue;
    std::string message = "output " + std::to_string(o) + " " + to_string(outputs[o].type) +
                          " of node " + tape.describe(node) + " has " +
                          std::to_string(range_of(outputs[o]).bad) +
                          " elements that are not finite";
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Range range = range_of(inputs[i]);
      message += "; input " + std::to_string(i) + " " + to_string(inputs[i].type) + " lies in [" +
                 std::to_string(range.low) + ", " + std::to_string(range.high) + "]";
      if (range.bad > 0) message += " with " + std::to_string(range.bad) + " not finite";
    }
    throw AnomalyError(tape.operation(node).name, message, tape.where(node));
  }
}

}  // namespace palimpsest
