#include "strategy/loops/loop_identity.h"

#include <cstdio>

#include "checkpoint/stores/hash.h"
#include "strategy/base/tape_digest.h"
#include "strategy/loops/loop_run.h"

namespace palimpsest {
namespace {

/// Operations, types and constants of a recorded step.
std::string structure_of(const RecordedStep& step) {
  const Tape& tape = *step.tape;
  const TapeDigest digest = digest_of(tape);
  const std::uint64_t words[] = {digest.structure, digest.shapes};
  std::uint64_t hash = hash_bytes(std::as_bytes(std::span(words)));
  for (const auto* values : {&step.next, &step.outputs}) {
    hash = hash_bytes(std::as_bytes(std::span(*values)), hash);
  }
  for (ValueId value = 0; value < tape.value_count(); ++value) {
    if (!tape.has_value(value)) continue;
    const auto bytes = static_cast<std::size_t>(tape.type(value).bytes());
    hash = hash_bytes({tape.buffer(value).get(), bytes}, hash);
  }
  return hash_text(hash);
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
      "a step with the structure " + structure_of(loop.step()),
      number("max_steps", loop.has_condition() ? options.max_steps : 0),
      "a budget of the loop " + budget_text(options.memory_budget),
      "a budget of the run " + budget_text(run_budget_in(steps_given(call.outputs))),
      number("spill", options.spill.empty() ? 0 : 1),
      number("codec", static_cast<int>(options.codec)),
      number("check", options.check ? 1 : 0),
      "a first state with the hash " + hash_of_operands(call.inputs.first(states)),
      "inputs with the hash " + hash_of_operands(call.inputs.subspan(states, loop.input_count())),
      "captured values with the hash " +
          hash_of_operands(call.inputs.subspan(states + loop.input_count(), loop.captured_count())),
      "a first step that makes results with the hash " + hash_text(first_step)};
  if (draws_numbers(loop.step()) || (loop.has_condition() && draws_numbers(loop.condition()))) {
    lines.push_back(number("random numbers of run", call.round) +
                    number(" with the seed", loop.body().seed));
  }
  if (loop.has_condition()) {
    lines.insert(lines.begin() + 3,
                 "a condition with the structure " + structure_of(loop.condition()));
  }
  if (held != nullptr) {
    lines.push_back(number("states in memory", held->slots()));
    if (held->layout().disk) {
      const DiskCosts costs = loop.disk()->costs();
      char text[96];
      std::snprintf(text, sizeof text, "disk_costs %a and %a", costs.write, costs.read);
      lines.emplace_back(text);
    }
  }
  return lines;
}

}  // namespace palimpsest
