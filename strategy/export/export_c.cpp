#include "strategy/export/export_c.h"

#include <algorithm>
#include <optional>

#include "autodiff/files.h"
#include "strategy/export/export_plan.h"
#include "strategy/export/export_text.h"

namespace palimpsest {
namespace {

/// The file name of a line, which may stand in a comment.
std::string comment_line(const Where& where) {
  std::string file = where.file_name();
  file = file.substr(file.find_last_of("/\\") + 1);
  std::erase(file, '*');
  return file + ":" + std::to_string(where.line());
}

/// Writes the statements of the exported function.
class Exporter {
 public:
  Exporter(const Program& program, const ExportOptions& options, const Where& where)
      : program_(program),
        parts_(parts_of(program)),
        options_(options),
        optimizer_(options.optimizer, where),
        names_(program, parts_, options, optimizer_.exists(), where),
        state_(optimizer_, names_, parts_.parameters),
        file_(options.name) {
    if (!parts_.updates.empty()) {
      throw ArgumentError("export_c",
                          "the program updates " + std::to_string(parts_.updates.size()) +
                              " tensors after its run, such as running means of batch_norm, which "
                              "cannot be exported; record it without them",
                          where);
    }
    names_.reserve_in(file_);
    exported_.name = options.name;
    exported_.pointers = names_.pointers();
    exported_.has_state = state_.exists();
    exported_.has_learning_rate = optimizer_.exists();
    exported_.state_bytes = state_.bytes();
    exported_.parameter_bytes = names_.parameter_bytes();
    exported_.result_bytes = names_.result_bytes();
  }

  ExportedC run() {
    plan_.emplace(program_, parts_, options_, optimizer_.exists(), exported_);
    exported_.arena_bytes = instructions().arena_size();
    name_sources();
    for (const Instructions::Instruction& step : instructions().steps()) {
      if (step.operation != nullptr) add_call(step);
    }
    add_copies_of_results();
    add_updates();
    const ExportText text{exported_, optimizer_, state_, file_, statements_, fails_};
    std::string header = header_text(text);
    std::string source = source_text(text);
    exported_.header = std::move(header);
    exported_.source = std::move(source);
    return std::move(exported_);
  }

 private:
  const Instructions& instructions() const { return plan_->instructions(); }
  const Tape& tape() const { return plan_->tape(); }

  /// Finds what sources of the instructions are called: arguments, and results for targets that lie
  /// elsewhere, under their first name. A constant becomes a table when it is first used.
  void name_sources() {
    const std::span<const ValueId> sources = instructions().sources();
    source_names_.resize(sources.size());
    for (std::size_t k = 0; k < sources.size(); ++k) {
      if (const std::string* const name = names_.leaf(sources[k])) source_names_[k] = *name;
    }
    if (optimizer_.exists()) return;
    for (std::size_t i = 0; i < parts_.outputs.size(); ++i) {
      const Instructions::Place place = plan_->place(i);
      if (!instructions().is_source(place)) continue;
      const std::size_t k = place - instructions().source_place(0);
      if (tape().is_leaf(tape().producer(sources[k]))) continue;
      if (source_names_[k].empty()) source_names_[k] = names_.result(i);
    }
  }

  std::string place_text(Instructions::Place place, DType dtype) {
    if (place == instructions().empty_place()) return "0";
    if (instructions().is_source(place)) {
      const std::size_t k = place - instructions().source_place(0);
      if (source_names_[k].empty()) source_names_[k] = add_table(instructions().sources()[k]);
      return source_names_[k];
    }
    const Bytes offset = instructions().intervals()[place].offset;
    return with_prefix(filled("@@AT($T, $offset)", {{"T", c_type(dtype)}, {"offset", offset}}),
                       options_.name);
  }

  /// Writes the table of a constant; returns its name.
  std::string add_table(ValueId constant) {
    const ValueType type = tape().type(constant);
    const std::string_view given = tape().name(tape().producer(constant));
    exported_.constant_bytes += type.bytes();
    return file_.add_table(options_.name + "_" + (given.empty() ? "constant" : std::string(given)),
                           type, program_.tape().buffer(constant).get());
  }

  void add_call(const Instructions::Instruction& step) {
    const std::size_t count = step.inputs + step.outputs;
    const auto operands = instructions().operands().subspan(step.first_operand, count);
    if (std::ranges::all_of(operands.subspan(step.inputs),
                            [](const Operand& output) { return output.elements() == 0; })) {
      return;
    }
    std::vector<ValueType> types;
    std::vector<std::string> places;
    for (std::size_t k = 0; k < count; ++k) {
      types.push_back(operands[k].type);
      places.push_back(
          place_text(instructions().places()[step.first_operand + k], operands[k].dtype()));
    }
    const bool is_copy = step.operation->name == "copy";
    if (is_copy && places[0] == places[1]) return;  // it takes over its input's memory
    const std::span<const ValueType> all(types);
    const Attributes& attributes =
        step.given != nullptr ? *step.given : tape().attributes(step.node);
    const auto& [function, start] = file_.function_of(
        {*step.operation, attributes, all.first(step.inputs), all.subspan(step.inputs)});
    if (start != 0) places[0] += " + " + std::to_string(start);
    if (function.has_workspace) places.push_back(workspace_text(step.workspace));
    add_comment(tape().where(step.node));
    std::string call = function.name + "(";
    for (std::size_t k = 0; k < places.size(); ++k) call += (k == 0 ? "" : ", ") + places[k];
    call += ")";
    statements_ += function.fails ? "  if ((status = " + call + ") != 0) return status;\n"
                                  : "  " + call + ";\n";
    fails_ = fails_ || function.fails;
  }

  std::string workspace_text(std::uint32_t interval) const {
    if (interval == none) return "0";  // without elements
    const Bytes offset = instructions().intervals()[interval].offset;
    return with_prefix("@@AT(void, " + std::to_string(offset) + ")", options_.name);
  }

  void add_comment(const Where& where) {
    const std::string line = comment_line(where);
    if (line != commented_) statements_ += "  /* " + line + " */\n";
    commented_ = line;
  }

  /// Copies results that lie elsewhere: arguments, constants, other results and, with an optimizer,
  /// values in the arena.
  void add_copies_of_results() {
    for (std::size_t i = 0; i < names_.result_count(); ++i) {
      const std::string& name = names_.result(i);
      const ValueType type = parts_.outputs[i].type();
      if (type.bytes() == 0) continue;
      const std::string from = place_text(plan_->place(i), type.dtype);
      if (from == name) continue;
      statements_ += filled("  memcpy($to, $from, $n * sizeof(*$to));\n",
                            {{"to", name}, {"from", from}, {"n", type.shape.elements()}});
    }
  }

  void add_updates() {
    if (!optimizer_.exists()) return;
    if (optimizer_.counts_steps()) statements_ += "  ++state->steps;\n";
    for (std::size_t i = 0; i < parts_.parameters.size(); ++i) {
      const Var& parameter = parts_.parameters[i];
      const DType dtype = parameter.dtype();
      if (parameter.shape().elements() == 0) continue;
      file_.add_function(optimizer_.function(dtype));
      const std::string name = *names_.leaf(parameter.id());
      const Instructions::Place gradient = plan_->place(parts_.differentiated + i);
      std::string call = with_prefix(optimizer_.function_name(dtype), options_.name) + "(" + name +
                         ", " + place_text(gradient, dtype);
      for (const std::string& slot : optimizer_.slots()) call += ", state->" + name + "_" + slot;
      call += ", " + std::to_string(parameter.shape().elements()) + ", learning_rate";
      if (optimizer_.counts_steps()) call += ", (double)state->steps";
      statements_ += "  " + call + ");\n";
    }
  }

  const Program& program_;
  const ProgramParts parts_;
  const ExportOptions& options_;
  const COptimizerText optimizer_;
  const ExportNames names_;
  const ExportState state_;
  CFile file_;
  std::optional<ExportPlan> plan_;
  std::vector<std::string> source_names_;  // by source of the instructions
  ExportedC exported_;
  std::string statements_;
  std::string commented_;
  bool fails_ = false;
};

}  // namespace

ExportedC export_c(const Program& program, const ExportOptions& options, Where where) {
  if (options.memory_budget < 0) {
    throw ArgumentError(
        "export_c",
        "the budget is " + std::to_string(options.memory_budget) + " bytes; give 0 or more", where);
  }
  return Exporter(program, options, where).run();
}

void write_files(const ExportedC& exported, const std::string& folder) {
  const std::string path = (folder.empty() ? "." : folder) + "/" + exported.name;
  write_file(path + ".h", exported.header, "write_files");
  write_file(path + ".c", exported.source, "write_files");
}

}  // namespace palimpsest
