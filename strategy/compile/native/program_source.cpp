#include "strategy/compile/native/program_source.h"

#include <map>
#include <set>

namespace palimpsest {
namespace {

using Instruction = Instructions::Instruction;

/// A longer program runs instruction by instruction.
constexpr std::size_t most_in_run = 256;

/// Text with the name in place of `@`.
std::string with_name(const std::string& text, const std::string& name) {
  std::string made;
  for (const char letter : text) {
    if (letter == '@') {
      made += name;
    } else {
      made += letter;
    }
  }
  return made;
}

class Builder {
 public:
  Builder(const Instructions& instructions, const Tape& tape, bool comments)
      : instructions_(instructions), tape_(tape), comments_(comments) {}

  ProgramSource build() {
    std::size_t computed = 0;
    for (const Instruction& step : instructions_.steps()) {
      made_.groups.push_back(step.group == nullptr ? ProgramSource::Group{} : group(step));
      if (step.operation != nullptr) ++computed;
    }
    made_.functions = static_cast<std::uint32_t>(names_.size());
    if (names_.empty()) return std::move(made_);
    std::string text(native_prelude());
    text += functions_;
    made_.has_run = computed <= most_in_run;
    if (made_.has_run) write_run(text);
    made_.text = std::move(text);
    return std::move(made_);
  }

 private:
  ProgramSource::Group group(const Instruction& step) {
    const auto [known, is_new] = groups_.try_emplace(step.group);
    if (!is_new) return known->second;
    GroupSource source = group_source(*step.group, tape_);
    if (!source.problem.empty()) {
      if (made_.problem.empty()) made_.problem = std::move(source.problem);
      return {};
    }
    const auto [name, is_new_text] =
        names_.try_emplace(source.text, "group_" + std::to_string(names_.size()));
    if (is_new_text) {
      if (comments_) functions_ += comment(step);
      functions_ += with_name(source.text, name->second);
    }
    known->second = {name->second, static_cast<std::uint32_t>(made_.table.size())};
    made_.table.insert(made_.table.end(), source.table.begin(), source.table.end());
    return known->second;
  }

  /// The operations of a group, and the lines that recorded them.
  std::string comment(const Instruction& step) const {
    std::string text;
    for (const NodeId node : instructions_.lowered().members(step.unit)) {
      text += "// " + std::string(tape_.operation(node).name) + " (" +
              to_string(tape_.where(node)) + ")\n";
    }
    return text;
  }

  /// The address of an operand during a run.
  std::string place(const Instruction& step, std::uint32_t operand) const {
    return "at[" + std::to_string(instructions_.places()[step.first_operand + operand]) + "]";
  }

  void write_run(std::string& to) {
    made_.is_complete = true;
    to +=
        "void run(char* const* at, const char* numbers, const void* const* table, "
        "void (*step)(void*, unsigned), void* executor) {\n";
    for (std::size_t index = 0; index < made_.groups.size(); ++index) {
      const Instruction& step = instructions_.steps()[index];
      if (step.operation == nullptr) continue;
      const ProgramSource::Group& group = made_.groups[index];
      if (group.name.empty() || !step.group->is_one_call()) {
        to += "  step(executor, " + std::to_string(index) + ");\n";
        made_.is_complete = false;
        continue;
      }
      std::string inputs;
      std::string outputs;
      for (std::uint32_t k = 0; k < step.inputs; ++k) inputs += place(step, k) + ", ";
      for (std::uint32_t k = 0; k < step.outputs; ++k) {
        outputs += place(step, step.inputs + k) + ", ";
      }
      const std::string numbers = std::to_string(step.first_number * sizeof(FusedKernel::Number));
      to += "  {\n    const char* in[] = {" + inputs + "0};\n    char* out[] = {" + outputs +
            "0};\n    " + group.name + "(in, out, numbers + " + numbers + ", table + " +
            std::to_string(group.first_entry) + ", 0, 0, " +
            std::to_string(step.group->elements()) + ");\n  }\n";
    }
    to += "}\n";
  }

  const Instructions& instructions_;
  const Tape& tape_;
  bool comments_;
  ProgramSource made_;
  std::map<const FusedKernel*, ProgramSource::Group> groups_;
  std::map<std::string, std::string> names_;  // by text
  std::string functions_;
};

}  // namespace

ProgramSource program_source(const Instructions& instructions, const Tape& tape, bool comments) {
  return Builder(instructions, tape, comments).build();
}

}  // namespace palimpsest
