#include "strategy/export/export_tape.h"

#include <cstring>
#include <vector>

#include "autodiff/operations/leaf.h"
#include "strategy/compile/fusion/needs.h"
#include "strategy/compile/fusion/simplification.h"
#include "strategy/export/emitters.h"
#include "strategy/loops/loop_operation.h"

namespace palimpsest {
namespace {

/// A value in memory of its own. Only exported programs contain it.
const Operation copy_operation{
    .name = "copy",
    .formula = "y = x",
    .summary = "x in memory of its own",
    .compute =
        [](const KernelCall& call) {
          const auto bytes = static_cast<std::size_t>(call.output().type.bytes());
          std::memmove(call.output().data, call.input().data, bytes);
        },
    .in_place = first_alike_input,
    .half = HalfSupport::native,
};

/// The nodes that the targets depend on.
std::vector<bool> needed_nodes(const Tape& tape, std::span<const ValueId> targets) {
  std::vector<bool> needed(tape.node_count());
  for (const ValueId target : targets) needed[tape.producer(target)] = true;
  for (NodeId node = tape.node_count(); node-- > 0;) {
    if (!needed[node]) continue;
    for (const ValueId input : tape.inputs(node)) needed[tape.producer(input)] = true;
  }
  return needed;
}

/// How a program without a refused operation computes the same.
std::string remedy_for(const NodeView& node) {
  const std::string_view loop = loop_function(node);
  if (loop == "while_loop") {
    return "record as many steps on the tape as the loop takes at most, with `where` for those "
           "after its end";
  }
  if (!loop.empty()) return "record the steps on the tape";
  if (node.operation().name == "checkpoint") {
    return "call its function without checkpoint; the plan of the C function recomputes values "
           "within ExportOptions::memory_budget";
  }
  return "docs/export-c.md lists those that can";
}

void require_in_c(const Tape& tape, NodeId node) {
  const NodeView view(tape.nodes(), node);
  const Operation& operation = view.operation();
  if (!operation.leaf && !operation.view && find_c_emitter(operation.name) == nullptr) {
    const std::string_view loop = loop_function(view);
    const std::string described = loop.empty() ? tape.describe(node) : "#" + std::to_string(node);
    throw ArgumentError("export_c",
                        "the operation " + std::string(loop.empty() ? operation.name : loop) +
                            ", " + described + " of " + to_string(view.output()) +
                            ", cannot be exported; " + remedy_for(view),
                        tape.where(node));
  }
  const auto check = [&](const ValueType& type) {
    if (is_c_dtype(type.dtype)) return;
    throw DTypeError("export_c",
                     "the operation " + std::string(operation.name) + ", " + tape.describe(node) +
                         ", has an operand of " + to_string(type) +
                         "; exported are f32, f64, i32, i64 and bool, so cast it first",
                     tape.where(node));
  };
  for (std::size_t i = 0; i < view.input_count(); ++i) check(view.input(i));
  for (std::size_t i = 0; i < view.output_count(); ++i) check(view.output(i));
}

}  // namespace

ExportTape::ExportTape(const Tape& program, std::span<const ValueId> targets)
    : tape_(std::make_unique<Tape>()) {
  const std::vector<bool> needed = needed_nodes(program, targets);
  for (NodeId node = 0; node < program.node_count(); ++node) {
    if (needed[node]) require_in_c(program, node);
  }
  // Constants are folded here, so that programs that are simplified and those that are not contain
  // the same ones. Sums in C would round differently.
  const Simplification simplification(program, Needs(program, targets, {}, true), 0);
  auto constant = simplification.folded_constants().begin();
  const auto end = simplification.folded_constants().end();
  for (NodeId node = 0; node < program.node_count(); ++node) {
    const NodeView view(program.nodes(), node);
    if (program.is_leaf(node)) {
      tape_->placeholder(view.output(), program.where(node));
    } else if (constant != end && constant->first == node) {
      const ValueType type = view.output();
      tape_->record(full_operation, {}, {&type, 1}, (constant++)->second, program.where(node));
    } else {
      std::vector<Var> inputs;
      for (const ValueId input : program.inputs(node)) inputs.push_back(tape_->var(input));
      std::vector<ValueType> types;
      for (std::size_t i = 0; i < view.output_count(); ++i) types.push_back(view.output(i));
      const Operation& operation =
          needed[node] ? operation_in_c(view.operation()) : view.operation();
      tape_->record(operation, inputs, types, view.attributes(), program.where(node));
    }
    if (!program.name(node).empty()) tape_->set_name(node, program.name(node));
  }
}

ValueId ExportTape::record_copy(ValueId value) {
  const Var x = tape_->var(value);
  const ValueType type = x.type();
  return tape_->record(copy_operation, {&x, 1}, {&type, 1}, {}, x.tape().where(x.node())).id();
}

const Operation& ExportTape::operation_in_c(const Operation& operation) {
  const CEmitter* const emitter = find_c_emitter(operation.name);
  // The passes of `compile` know `full` by its address.
  if (emitter == nullptr || (emitter->workspace == nullptr && operation.workspace == nullptr &&
                             emitter->in_place == nullptr && operation.in_place == nullptr)) {
    return operation;
  }
  const auto [known, is_new] = known_.emplace(&operation, nullptr);
  if (is_new) {
    Operation& in_c = operations_.emplace_back(operation);
    in_c.workspace = emitter->workspace;
    in_c.in_place = emitter->in_place;
    in_c.fold = nullptr;  // constants are folded already, with the kernels' own scratch
    known->second = &in_c;
  }
  return *known->second;
}

}  // namespace palimpsest
