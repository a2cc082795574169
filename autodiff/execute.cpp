#include "autodiff/execute.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>
#include <vector>

#include "autodiff/convert.h"
#include "autodiff/number_text.h"
#include "autodiff/parallel.h"
#include "autodiff/run_scope.h"

namespace palimpsest {
namespace {

Bytes widened_bytes(const ValueType& type) {
  return is_half(type.dtype) ? aligned(type.shape.elements() * size_of(DType::f32)) : 0;
}

bool is_narrow(const Operand& operand) { return is_half(operand.dtype()); }

}  // namespace

double bytes_moved(const NodeView& node) {
  Bytes bytes = 0;
  for (std::size_t i = 0; i < node.input_count(); ++i) bytes += node.input(i).bytes();
  for (std::size_t i = 0; i < node.output_count(); ++i) bytes += node.output(i).bytes();
  return static_cast<double>(bytes);
}

Cost cost_of(const NodeView& node) {
  if (node.operation().leaf || node.operation().view) return {};
  if (node.operation().cost != nullptr) return node.operation().cost(node);
  Cost cost{0, bytes_moved(node)};
  for (std::size_t i = 0; i < node.output_count(); ++i) {
    cost.flops += static_cast<double>(node.output(i).shape.elements());
  }
  return cost;
}

Bytes widening_bytes(const NodeView& node) {
  Bytes bytes = 0;
  for (std::size_t i = 0; i < node.input_count(); ++i) bytes += widened_bytes(node.input(i));
  for (std::size_t i = 0; i < node.output_count(); ++i) bytes += widened_bytes(node.output(i));
  return bytes;
}

Bytes workspace_of(const NodeView& node, int threads) {
  const Operation& operation = node.operation();
  if (operation.leaf || operation.view) return 0;
  const Bytes own = operation.workspace != nullptr ? operation.workspace(node, threads) : 0;
  return aligned(own) + (operation.half == HalfSupport::widened ? widening_bytes(node) : 0);
}

void compute_widened(void (*compute)(const KernelCall&), const KernelCall& call) {
  const std::size_t inputs = call.inputs.size();
  std::vector<Operand> wide(call.inputs.begin(), call.inputs.end());
  wide.insert(wide.end(), call.outputs.begin(), call.outputs.end());
  std::byte* free = call.workspace.data() + call.workspace.size();
  for (std::size_t i = 0; i < wide.size(); ++i) {
    if (!is_narrow(wide[i])) continue;
    free -= widened_bytes(wide[i].type);
    const Operand original = wide[i];
    wide[i] = {free, {original.type.shape, DType::f32}};
    if (i < inputs) convert(original, wide[i]);
  }
  const std::span<const Operand> all(wide);
  compute({call.attributes, all.first(inputs), all.subspan(inputs),
           call.workspace.first(static_cast<std::size_t>(free - call.workspace.data())),
           call.threads, call.round, nullptr, call.scope});
  for (std::size_t i = 0; i < call.outputs.size(); ++i) {
    if (is_narrow(call.outputs[i])) convert(wide[inputs + i], call.outputs[i]);
  }
}

void execute(const Operation& operation, const KernelCall& call) {
  const bool widened = operation.half == HalfSupport::widened &&
                       (std::any_of(call.inputs.begin(), call.inputs.end(), is_narrow) ||
                        std::any_of(call.outputs.begin(), call.outputs.end(), is_narrow));
  if (widened) {
    compute_widened(operation.compute, call);
  } else {
    operation.compute(call);
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
  const Bytes scratch = workspace_of(NodeView(tape.nodes(), node), threads);
  const Buffer workspace = scratch > 0 ? allocate(scratch) : nullptr;
  // Nothing that kernels keep in a scope would outlive this one.
  std::optional<RunScope> scope;
  if (anomaly) scope.emplace(nullptr, RunScope::Of::checkpoint, 0, true);
  execute(operation, {tape.attributes(node),
                      inputs,
                      outputs,
                      {workspace.get(), static_cast<std::size_t>(scratch)},
                      threads,
                      0,
                      nullptr,
                      scope ? &*scope : nullptr});
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

/// The exponent bits; they are all set in infinities and NaNs.
template <class T>
constexpr auto exponent_bits() {
  if constexpr (std::is_same_v<T, double>) {
    return std::uint64_t{0x7ff0'0000'0000'0000};
  } else if constexpr (std::is_same_v<T, float>) {
    return std::uint32_t{0x7f80'0000};
  } else {
    return std::uint16_t{std::is_same_v<T, BFloat16> ? 0x7f80 : 0x7c00};
  }
}

/// Does not stop at the first one found, so that compilers vectorize the loop.
template <class T>
bool all_finite(const T* data, std::int64_t count) {
  constexpr auto exponent = exponent_bits<T>();
  using Bits = std::remove_const_t<decltype(exponent)>;
  Bits any = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    any |= (std::bit_cast<Bits>(data[i]) & exponent) == exponent ? 1 : 0;
  }
  return any == 0;
}

bool all_finite(const Operand& operand) {
  if (!is_floating(operand.dtype())) return true;
  std::atomic<bool> all = true;
  visit(operand.dtype(), [&]<class T>(T) {
    if constexpr (!std::is_integral_v<T>) {
      const T* const data = operand.as<T>();
      parallel_chunks(operand.elements(), grain_for(1), [&](std::int64_t begin, std::int64_t end) {
        if (!all_finite(data + begin, end - begin)) all.store(false, std::memory_order_relaxed);
      });
    }
  });
  return all;
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
                 number_text(range.low) + ", " + number_text(range.high) + "]";
      if (range.bad > 0) message += " with " + std::to_string(range.bad) + " not finite";
    }
    throw AnomalyError(tape.operation(node).name, message, tape.where(node));
  }
}

}  // namespace palimpsest
