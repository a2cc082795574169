#include "strategy/loops/loop_identity.h"

#include <algorithm>
#include <cstdio>

#include "checkpoint/stores/hash.h"
#include "strategy/base/digest.h"
#include "strategy/loops/loop_run.h"

namespace palimpsest {
namespace {

/// A hash of a node's operation with all attributes, inputs and types, and of the value that it
/// holds. Attributes that hold user functions are left out.
std::uint64_t hash_of_node(const Tape& tape, NodeId node) {
  Digest digest;
  digest.put(tape.operation(node).name);
  for (const ValueId input : tape.inputs(node)) digest.put(std::uint64_t{input});
  // The last outputs of a loop in a step hold what a plan gave to it, which may differ.
  const std::uint32_t given = tape.operation(node).has_state_budget ? 3 : 0;
  for (std::uint32_t i = 0; i + given < tape.output_count(node); ++i) {
    const ValueId value = tape.first_output(node) + i;
    digest.put(static_cast<std::uint64_t>(tape.dtype(value)));
    digest.put(tape.shape(value));
    if (!tape.has_value(value)) continue;
    const auto bytes = static_cast<std::size_t>(tape.bytes(value));
    digest.put(hash_bytes({tape.buffer(value).get(), bytes}));
  }
  std::vector<std::uint64_t> words;
  if (tape.attributes(node).describe(words)) {
    for (const std::uint64_t word : words) digest.put(word);
  }
  return digest.value();
}

std::uint64_t hash_of_results(const RecordedStep& step) {
  Digest digest;
  for (const auto* values : {&step.next, &step.outputs}) {
    digest.put(values->size());
    for (const ValueId value : *values) digest.put(std::uint64_t{value});
  }
  return digest.value();
}

/// A line for each operation, so that an error can name the one that differs. Long steps have lines
/// for several operations.
void append_operations(const RecordedStep& step, const std::string& name,
                       std::vector<std::string>& lines) {
  constexpr NodeId most_lines = 100;
  const Tape& tape = *step.tape;
  const NodeId count = tape.node_count();
  const NodeId each = std::max<NodeId>(1, (count + most_lines - 1) / most_lines);
  for (NodeId first = 0; first < count; first += each) {
    const NodeId end = std::min(first + each, count);
    Digest digest;
    for (NodeId node = first; node < end; ++node) digest.put(hash_of_node(tape, node));
    const std::string which = each == 1 ? "operation " + std::to_string(first) + " of " + name +
                                              ", " + std::string(tape.operation(first).name) + ","
                                        : "operations " + std::to_string(first) + " to " +
                                              std::to_string(end - 1) + " of " + name;
    lines.push_back(which + " with the hash " + hash_text(digest.value()));
  }
  lines.push_back(name + " of " + std::to_string(count) + " operations that returns values with " +
                  "the hash " + hash_text(hash_of_results(step)));
}

std::string hash_of_operands(std::span<const Operand> operands) {
  std::vector<std::span<std::byte>> pieces;
  for (const Operand& operand : operands) pieces.push_back(memory_of(operand));
  return hash_text(hash_of(pieces));
}

/// Whether a step may draw random numbers. User functions may.
bool draws_numbers(const RecordedStep& step) {
  if (step.may_differ()) return true;
  const Tape& tape = *step.tape;
  for (NodeId node = 0; node < tape.node_count(); ++node) {
    const Attributes& attributes = tape.attributes(node);
    if (!attributes.may_come_again() || !attributes.are_in_round(1, attributes)) return true;
  }
  return false;
}

std::string budget_text(Bytes bytes) {
  return bytes == unlimited ? "unlimited" : std::to_string(bytes);
}

}  // namespace

std::uint64_t hash_of(const std::vector<std::span<std::byte>>& pieces, std::uint64_t seed) {
  for (const std::span<std::byte> piece : pieces) seed = hash_bytes(piece, seed);
  return seed;
}

std::uint64_t hash_of_step(const RecordedStep& step) {
  Digest digest;
  for (NodeId node = 0; node < step.tape->node_count(); ++node) {
    digest.put(hash_of_node(*step.tape, node));
  }
  digest.put(hash_of_results(step));
  return digest.value();
}

std::uint64_t hash_of_requested(const LoopGradient::Requested& requested) {
  std::vector<std::byte> flags;
  for (const auto* list : {&requested.next, &requested.outputs, &requested.state, &requested.inputs,
                           &requested.captured}) {
    for (const bool flag : *list) flags.push_back(std::byte{flag});
  }
  return hash_of({std::span(flags)});
}

std::string hash_text(std::uint64_t hash) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(hash));
  return text;
}

std::vector<std::string> identity_of(const Loop& loop, const KernelCall& call,
                                     const HeldStates* held, std::uint64_t first_step) {
  const LoopOptions& options = loop.options();
  const std::size_t states = loop.state_count();
  const auto number = [](const char* name, auto value) {
    return std::string(name) + " " + std::to_string(value);
  };
  std::vector<std::string> lines{
      "tag '" + options.tag + "'",
      loop.has_condition() ? "an unknown number of steps" : number("steps", loop.steps()),
      number("max_steps", loop.has_condition() ? options.max_steps : 0),
      "a budget of the loop " + budget_text(options.memory_budget),
      "a budget of the run " +
          budget_text(division_given(call.outputs, call.outputs.back(), loop).run_budget),
      number("spill", options.spill.empty() ? 0 : 1),
      number("codec", static_cast<int>(options.codec)),
      number("check", options.check ? 1 : 0)};
  append_operations(loop.step(), "a step", lines);
  if (loop.has_condition()) append_operations(loop.condition(), "a condition", lines);
  const auto inputs = call.inputs.subspan(states, loop.input_count());
  const auto captured = call.inputs.subspan(states + loop.input_count(), loop.captured_count());
  lines.push_back("a first state with the hash " + hash_of_operands(call.inputs.first(states)));
  lines.push_back("inputs with the hash " + hash_of_operands(inputs));
  lines.push_back("captured values with the hash " + hash_of_operands(captured));
  lines.push_back("a first step that makes results with the hash " + hash_text(first_step));
  if (draws_numbers(loop.step()) || (loop.has_condition() && draws_numbers(loop.condition()))) {
    lines.push_back(number("random numbers of run", loop.body().generation + call.round.run) +
                    (call.round.part == 0 ? "" : number(" of part", call.round.part)) +
                    number(" with the seed", loop.body().seed));
  }
  if (held != nullptr) {
    lines.push_back(number("states in memory", held->slots()));
    if (held->layout().disk) {
      const DiskCosts costs = held->components().disk()->costs();
      char text[96];
      std::snprintf(text, sizeof text, "disk_costs %a and %a", costs.write, costs.read);
      lines.emplace_back(text);
    }
  }
  return lines;
}

}  // namespace palimpsest
