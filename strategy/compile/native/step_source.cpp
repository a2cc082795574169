#include "strategy/compile/native/step_source.h"

#include "strategy/compile/native/formulas.h"
#include "strategy/compile/native/source_text.h"

namespace palimpsest {
namespace {

/// With more stretches or elements, the call of the executor costs little.
constexpr std::size_t most_stretches = 16;
constexpr std::int64_t most_summed = 1024;

class StepWriter {
 public:
  StepWriter(const Instructions& instructions, const Instructions::Instruction& step,
             const Tape& tape, ProgramSource& to)
      : instructions_(instructions),
        step_(step),
        tape_(tape),
        operands_(instructions.operands().subspan(step.first_operand, step.inputs + step.outputs)),
        to_(to) {}

  std::optional<std::string> write() {
    const bool is_plain = !step_.is_of_user && step_.given == nullptr &&
                          step_.epilogue == nullptr && step_.outputs == 1;
    if (!is_plain) return {};
    if (std::optional<std::string> text = product()) return text;
    if (step_.accumulates) return {};
    if (step_.operation->stretches != nullptr) return copies();
    return step_.operation->name == "sum" ? sum() : std::nullopt;
  }

 private:
  std::string at(std::uint32_t operand) const {
    return "at[" + std::to_string(instructions_.places()[step_.first_operand + operand]) + "]";
  }
  std::string result() const { return at(step_.inputs); }
  const Operand& output() const { return operands_[step_.inputs]; }

  std::string entry(const void* address) {
    to_.table.push_back({address, none});
    return "table[" + std::to_string(to_.table.size() - 1) + "]";
  }

  std::optional<std::string> product() {
    const Attributes& attributes = tape_.attributes(step_.node);
    const auto prepared =
        prepared_product(*step_.operation, attributes, operands_.first(step_.inputs), output());
    if (prepared == nullptr) return {};
    to_.products.push_back({prepared, step_.node, attributes});
    const std::string function = entry(reinterpret_cast<const void*>(prepared->run()));
    const std::string addend = step_.inputs > 2 ? at(2) : "0";
    const std::string workspace =
        step_.workspace != none ? "at[" + std::to_string(step_.workspace) + "]" : "0";
    return "  ((product)" + function + ")(" + entry(prepared.get()) + ", " + at(0) + ", " + at(1) +
           ", " + addend + ", " + result() + ", " + workspace + ");\n";
  }

  std::optional<std::string> copies() const {
    const NodeView view(tape_.nodes(), step_.node);
    std::vector<Stretch> stretches = step_.operation->stretches(view);
    const bool is_all = !stretches.empty() && stretches.back().end == output().elements();
    std::erase_if(stretches, [](const Stretch& each) { return each.begin == each.end; });
    if (!is_all || stretches.size() > most_stretches) return {};
    std::string text;
    const Bytes size = size_of(output().dtype());
    for (const Stretch& each : stretches) {
      const std::string to = result() + " + " + text_of(each.begin * size);
      const std::string bytes = text_of((each.end - each.begin) * size);
      if (each.input < 0) {
        if (!same_number(each.number, 0)) return {};
        text += "  __builtin_memset(" + to + ", 0, " + bytes + ");\n";
        continue;
      }
      const auto input = static_cast<std::uint32_t>(each.input);
      if (operands_[input].type != view.input(input)) return {};
      if (operands_[input].dtype() != output().dtype()) return {};
      text += "  __builtin_memcpy(" + to + ", " + at(input) + " + " + text_of(each.from * size) +
              ", " + bytes + ");\n";
    }
    return text;
  }

  std::optional<std::string> sum() const {
    const Operand& x = operands_[0];
    const bool is_short = x.elements() > 0 && x.elements() <= most_summed;
    if (!is_short || output().elements() != 1 || x.dtype() != output().dtype()) return {};
    if (x.dtype() != DType::f32 && x.dtype() != DType::f64) return {};
    const std::string type(c_type(x.dtype()));
    const std::string count = text_of(x.elements());
    return "  *(" + type + "*)" + result() + " = (" + type + ")sum_of_" + type + "((const " + type +
           "*)" + at(0) + ", " + count + ");\n";
  }

  const Instructions& instructions_;
  const Instructions::Instruction& step_;
  const Tape& tape_;
  std::span<const Operand> operands_;
  ProgramSource& to_;
};

}  // namespace

std::optional<std::string> step_source(const Instructions& instructions,
                                       const Instructions::Instruction& step, const Tape& tape,
                                       ProgramSource& to) {
  return StepWriter(instructions, step, tape, to).write();
}

}  // namespace palimpsest
