#include "checkpoint/node_seconds.h"

#include <algorithm>

#include "autodiff/operations/registry.h"

namespace palimpsest {
namespace {

bool is_among(std::span<const Operation* const> family, const Operation& operation) {
  return std::ranges::find(family, &operation) != family.end();
}

FlopRates rates_for(const Operation& operation, const Machine& machine) {
  const auto is_of = [&](auto... family) { return (is_among(family(), operation) || ...); };
  if (is_of(matmul_operations)) return machine.products;
  if (is_of(convolution_operations)) return machine.convolutions;
  if (is_of(normalization_operations, classification_operations)) return machine.reductions;
  if (operation.pointwise != nullptr || is_of(random_operations, attention_operations)) {
    return machine.functions;
  }
  // Loops, checkpoints and user-defined operations are work of all kinds.
  if (operation.mixed == MixedPrecision::recorded) return {};
  // Operations that only move elements support 16-bit types natively.
  return operation.half == HalfSupport::native ? machine.functions : machine.reductions;
}

double half_elements(const NodeView& node) {
  std::int64_t elements = 0;
  const auto add = [&](const ValueType& type) {
    if (is_half(type.dtype)) elements += type.shape.elements();
  };
  for (std::size_t i = 0; i < node.input_count(); ++i) add(node.input(i));
  for (std::size_t i = 0; i < node.output_count(); ++i) add(node.output(i));
  return static_cast<double>(elements);
}

/// Seconds in which a kernel without 16-bit support widens and narrows its operands. 0 when the
/// machine has no rate for it.
double widening_seconds(const NodeView& node, const Machine& machine) {
  // Measured: each takes about as long as two operations of a function.
  constexpr double flops = 2;
  const double rate = machine.functions.f32;
  if (rate == 0 || node.operation().half == HalfSupport::native) return 0;
  return flops * half_elements(node) / rate;
}

double seconds_of_flops(const NodeView& node, double flops, const Machine& machine) {
  const FlopRates rates = rates_for(node.operation(), machine);
  return flops / flops_per_second(rates, computed_in(node), machine) +
         widening_seconds(node, machine);
}

double seconds_to_move(double bytes, const Machine& machine) {
  return bytes / bytes_per_second(bytes, machine) + machine.seconds_per_node;
}

}  // namespace

DType computed_in(const NodeView& node) {
  // Comparisons have boolean outputs, so their inputs decide.
  for (std::size_t i = 0; i < node.output_count(); ++i) {
    if (is_floating(node.output(i).dtype)) return node.output(i).dtype;
  }
  for (std::size_t i = 0; i < node.input_count(); ++i) {
    if (is_floating(node.input(i).dtype)) return node.input(i).dtype;
  }
  return DType::f32;
}

double seconds_of(const NodeView& node, const Machine& machine) {
  return seconds_of(node, cost_of(node), machine);
}

double seconds_of(const NodeView& node, const Cost& cost, const Machine& machine) {
  return seconds_of_flops(node, cost.flops, machine) + seconds_to_move(cost.bytes, machine);
}

double seconds_of(const Tape& tape, std::span<const NodeId> nodes, double bytes,
                  const Machine& machine) {
  double seconds = seconds_to_move(bytes, machine);
  for (const NodeId id : nodes) {
    const NodeView node(tape.nodes(), id);
    seconds += seconds_of_flops(node, cost_of(node).flops, machine);
  }
  return seconds;
}

}  // namespace palimpsest
