#include "strategy/compile/fusion/fingerprint.h"

#include <bit>
#include <functional>
#include <string_view>

#include "strategy/base/digest.h"

namespace palimpsest {
namespace {

/// Users' operations count by name: those created anew at every call can share a plan.
std::uint64_t word(const Operation& operation) {
  if (operation.of_user) {
    return std::hash<std::string_view>()(operation.name) ^
           (static_cast<std::uint64_t>(operation.half) << 1 | (operation.opaque ? 1 : 0));
  }
  return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(&operation));
}

/// The cost and the workspace of a node. A user's function may throw. Only a program that needs the
/// node fails then, when it is lowered.
template <class Put>
void put_costs(const NodeView& node, int threads, Put put) {
  Cost cost{-1, -1};
  Bytes workspace = -1;
  try {
    cost = cost_of(node);
    workspace = workspace_of(node, threads);
  } catch (const UsageError&) {
    if (!node.operation().of_user) throw;
  }
  put(std::bit_cast<std::uint64_t>(cost.flops));
  put(std::bit_cast<std::uint64_t>(cost.bytes));
  put(static_cast<std::uint64_t>(workspace));
}

std::uint64_t two(std::uint32_t high, std::uint32_t low) { return std::uint64_t{high} << 32 | low; }

/// Calls `put` with every word of a fingerprint.
template <class Put>
void put_structure(const Tape& tape, int threads, bool with_present, const Put& put) {
  for (NodeId node = 0; node < tape.node_count(); ++node) {
    const Operation& operation = tape.operation(node);
    const auto inputs = tape.inputs(node);
    const std::uint32_t outputs = tape.output_count(node);
    put(word(operation));
    put(two(static_cast<std::uint32_t>(inputs.size()), outputs));
    for (const ValueId input : inputs) put(input);
    for (std::uint32_t i = 0; i < outputs; ++i) {
      const ValueId output = tape.first_output(node) + i;
      const Shape shape = tape.shape(output);
      const auto rank = static_cast<std::uint32_t>(shape.rank());
      const bool is_present = with_present && tape.has_value(output);
      put(two(static_cast<std::uint32_t>(tape.dtype(output)) << 8 | rank, is_present));
      for (const std::int64_t size : shape) put(static_cast<std::uint64_t>(size));
    }
    if (operation.leaf || operation.view || operation.pointwise != nullptr) continue;
    const NodeView view(tape.nodes(), node);
    put_costs(view, threads, put);
    if (operation.fold != nullptr) {
      const FoldKernel kernel = operation.fold(view);
      put(static_cast<std::uint64_t>(kernel.elements));
      put(static_cast<std::uint64_t>(kernel.columns));
    }
    if (operation.access != nullptr) {
      const Access access = operation.access(view);
      put(static_cast<std::uint64_t>(access.offset));
      for (int axis = 0; axis < view.output().shape.rank(); ++axis) {
        put(static_cast<std::uint64_t>(access.strides[static_cast<std::size_t>(axis)]));
      }
    }
    if (operation.stretches != nullptr) {
      const std::vector<Stretch> stretches = operation.stretches(view);
      put(stretches.size());
      for (const Stretch& stretch : stretches) {
        put(static_cast<std::uint64_t>(stretch.begin));
        put(two(static_cast<std::uint32_t>(stretch.input), 0));
        put(std::bit_cast<std::uint64_t>(stretch.number));
        put(static_cast<std::uint64_t>(stretch.from));
      }
    }
  }
}

}  // namespace

void append_fingerprint(const Tape& tape, int threads, std::vector<std::uint64_t>& fingerprint) {
  fingerprint.clear();
  put_structure(tape, threads, true, [&](std::uint64_t word) { fingerprint.push_back(word); });
}

std::uint64_t hash_of_structure(const Tape& tape, int threads) {
  Digest digest;
  put_structure(tape, threads, false, [&](std::uint64_t word) { digest.put(word); });
  return digest.value();
}

std::uint64_t hash_of_program(const LossAndOutputs& values, int threads) {
  const Tape& tape = values.loss.tape();
  Digest digest;
  digest.put(hash_of_structure(tape, threads));
  std::vector<std::uint64_t> words;
  for (NodeId node = 0; node < tape.node_count(); ++node) {
    const Operation& operation = tape.operation(node);
    const ValueId output = tape.first_output(node);
    words.clear();
    if (operation.leaf && !tape.is_parameter(node) && tape.has_value(output) &&
        tape.type(output).shape.elements() == 1) {
      const auto bytes = static_cast<std::size_t>(tape.bytes(output));
      digest.put(hash_bytes({tape.buffer(output).get(), bytes}));
    } else if (!operation.random && tape.attributes(node).describe(words)) {
      for (const std::uint64_t word : words) digest.put(word);
    }
  }
  digest.put(values.loss.id());
  for (const Var& output : values.outputs) digest.put(output.id());
  return digest.value();
}

}  // namespace palimpsest
