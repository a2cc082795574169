#include "strategy/compile/native/program_source.h"

#include <map>
#include <set>

#include "strategy/compile/native/formulas.h"
#include "strategy/compile/native/step_source.h"

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
  Builder(const Instructions& instructions, const Tape& tape, const SourceOptions& options)
      : instructions_(instructions), tape_(tape), options_(options) {}

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
  struct Known {
    ProgramSource::Group named;
    std::vector<GroupSource::Literal> literals;
  };

  ProgramSource::Group group(const Instruction& step) {
    const auto [known, is_new] = groups_.try_emplace(step.group);
    Known& group = known->second;
    if (is_new) group = write(step);
    for (const GroupSource::Literal& literal : group.literals) {
      made_.literals.push_back({step.first_number + literal.index, literal.number});
    }
    return group.named;
  }

  Known write(const Instruction& step) {
    GroupSource source = group_source(*step.group, tape_, options_.literals);
    if (!source.problem.empty()) {
      if (made_.problem.empty()) made_.problem = std::move(source.problem);
      return {};
    }
    const auto [name, is_new_text] =
        names_.try_emplace(source.text, "group_" + std::to_string(names_.size()));
    if (is_new_text) {
      if (options_.comments) functions_ += comment(step);
      functions_ += with_name(source.text, name->second);
    }
    const auto first_entry = static_cast<std::uint32_t>(made_.table.size());
    made_.table.insert(made_.table.end(), source.table.begin(), source.table.end());
    return {{name->second, first_entry}, std::move(source.literals)};
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
    const std::uint32_t place = instructions_.places()[step.first_operand + operand];
    const bool is_variable = place < variables_.size() && !variables_[place].empty();
    return is_variable ? "(char*)p" + std::to_string(place) : "at[" + std::to_string(place) + "]";
  }

  bool is_native(std::size_t index) const {
    const Instruction& step = instructions_.steps()[index];
    return !made_.groups[index].name.empty() && step.group->is_one_call();
  }

  /// Finds values of few elements that no other code reads. They are variables of `run`, so that
  /// the compiler can hold them in registers.
  void find_variables() {
    variables_.resize(instructions_.intervals().size());
    std::vector<bool> is_in_memory(variables_.size());
    for (const Instructions::Held& result : instructions_.results()) {
      if (result.place < variables_.size()) is_in_memory[result.place] = true;
    }
    for (std::size_t index = 0; index < made_.groups.size(); ++index) {
      const Instruction& step = instructions_.steps()[index];
      if (step.operation == nullptr) continue;
      for (std::uint32_t k = 0; k < step.inputs + step.outputs; ++k) {
        const std::uint32_t place = instructions_.places()[step.first_operand + k];
        if (place >= variables_.size()) continue;
        const ValueType& type = instructions_.operands()[step.first_operand + k].type;
        const std::int64_t elements = type.shape.elements();
        const std::string text = std::string(c_type(type.dtype)) + " p" + std::to_string(place) +
                                 "[" + std::to_string(elements) + "];\n";
        const bool is_other = !variables_[place].empty() && variables_[place] != text;
        if (!is_native(index) || elements > GroupParts::most_inlined || is_other) {
          is_in_memory[place] = true;
        }
        variables_[place] = text;
      }
    }
    for (std::size_t place = 0; place < variables_.size(); ++place) {
      if (is_in_memory[place]) variables_[place].clear();
    }
  }

  void write_run(std::string& to) {
    made_.is_complete = true;
    to +=
        "void run(char* const* at, const char* numbers, const void* const* table, "
        "void (*step)(void*, unsigned), void* executor) {\n";
    find_variables();
    for (const std::string& variable : variables_) {
      if (!variable.empty()) to += "  _Alignas(64) " + variable;
    }
    for (std::size_t index = 0; index < made_.groups.size(); ++index) {
      const Instruction& step = instructions_.steps()[index];
      if (step.operation == nullptr) continue;
      const ProgramSource::Group& group = made_.groups[index];
      if (!is_native(index)) {
        write_step(index, to);
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

  void write_step(std::size_t index, std::string& to) {
    const Instruction& step = instructions_.steps()[index];
    const bool is_group = step.group != nullptr;
    const std::optional<std::string> text =
        is_group ? std::nullopt : step_source(instructions_, step, tape_, made_);
    if (options_.comments && !is_group) to += comment(step);
    to += text ? *text : "  step(executor, " + std::to_string(index) + ");\n";
    made_.is_complete = made_.is_complete && text;
  }

  const Instructions& instructions_;
  const Tape& tape_;
  SourceOptions options_;
  ProgramSource made_;
  std::map<const FusedKernel*, Known> groups_;
  std::map<std::string, std::string> names_;  // by text
  std::string functions_;
  std::vector<std::string> variables_;  // by interval: its declaration, if it is a variable
};

}  // namespace

std::vector<std::string> ProgramSource::names() const {
  std::set<std::string> names;
  for (const Group& group : groups) {
    if (!group.name.empty()) names.insert(group.name);
  }
  if (has_run) names.insert("run");
  return {names.begin(), names.end()};
}

ProgramSource program_source(const Instructions& instructions, const Tape& tape,
                             const SourceOptions& options) {
  return Builder(instructions, tape, options).build();
}

}  // namespace palimpsest
