#include "checkpoint/node_seconds.h"

#include <algorithm>

#include "autodiff/operations/registry.h"

namespace palimpsest {
namespace {

bool is_among(std::span<const Operation* const> family, const Operation& operation) {
  return std::ranges::find(family, &operation) != family.end();
}

/// None of what is work of all kinds, as programs are.
FlopRates rates_for(const Operation& operation, const Machine& machine) {
  if (operation.mixed == MixedPrecision::recorded) return {};
  if (is_among(matmul_operations(), operation)) return machine.products;
  if (is_among(convolution_operations(), operation)) return machine.convolutions;
  // What only moves elements takes 16-bit types as they are.
  const bool is_of_elements = operation.pointwise != nullptr ||
                              operation.half == HalfSupport::native ||
                              is_among(attention_operations(), operation);
  return is_of_elements ? machine.functions : machine.reductions;
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

}  // namespace

double widening_seconds(const NodeView& node, const Machine& machine) {
  // As measured: each takes about as long as two operations of a function.
  constexpr double flops = 2;
  const double rate = machine.functions.f32;
  if (rate == 0 || node.operation().half == HalfSupport::native) return 0;
  return flops * half_elements(node) / rate;
}

double seconds_of(const NodeView& node, const Machine& machine) {
  return seconds_of(node, cost_of(node), machine);
}

double seconds_of(const NodeView& node, const Cost& cost, const Machine& machine) {
  const DType dtype = node.output_count() > 0 ? node.output().dtype : DType::f32;
  const double rate = flops_per_second(rates_for(node.operation(), machine), dtype, machine);
  return cost.flops / rate + cost.bytes / bytes_per_second(cost.bytes, machine) +
         machine.seconds_per_node + widening_seconds(node, machine);
}

}  // namespace palimpsest
