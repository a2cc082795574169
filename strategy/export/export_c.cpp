#include "strategy/export/export_c.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "autodiff/files.h"
#include "strategy/compile/compile.h"
#include "strategy/export/c_file.h"
#include "strategy/export/emit_optimizer.h"
#include "strategy/export/export_names.h"
#include "strategy/export/export_tape.h"
#include "strategy/program_parts.h"

namespace palimpsest {
namespace {

/// Bytes of a C struct with these arrays.
class StructBytes {
 public:
  void add(DType dtype, std::int64_t count) {
    const Bytes unit = size_of(dtype);
    alignment_ = std::max(alignment_, unit);
    bytes_ = (bytes_ + unit - 1) / unit * unit + unit * count;
  }
  Bytes total() const { return (bytes_ + alignment_ - 1) / alignment_ * alignment_; }

 private:
  Bytes bytes_ = 0;
  Bytes alignment_ = 1;
};

/// The file name of a line, which may stand in a comment.
std::string comment_line(const Where& where) {
  std::string file = where.file_name();
  file = file.substr(file.find_last_of("/\\") + 1);
  std::erase(file, '*');
  return file + ":" + std::to_string(where.line());
}

class Exporter {
 public:
  Exporter(const Program& program, const ExportOptions& options, const Where& where)
      : program_(program),
        parts_(parts_of(program)),
        options_(options),
        where_(where),
        optimizer_(options.optimizer, where),
        names_(program, parts_, options, optimizer_.exists(), where),
        file_(options.name) {
    if (!parts_.updates.empty()) {
      throw ArgumentError("export_c",
                          "the program updates " + std::to_string(parts_.updates.size()) +
                              " tensors after its run, such as running means of batch_norm, which "
                              "cannot be exported; record it without them",
                          where);
    }
    names_.reserve_in(file_);
  }

  ExportedC run() {
    compile_program();
    add_tables_and_results();
    for (const Instructions::Instruction& step : instructions().steps()) {
      if (step.operation != nullptr) add_call(step);
    }
    add_copies_of_results();
    add_updates();
    exported_.name = options_.name;
    exported_.pointers = names_.pointers();
    exported_.has_state = !optimizer_.slots().empty();
    exported_.has_learning_rate = optimizer_.exists();
    exported_.arena_bytes = instructions().arena_size();
    exported_.header = header();
    exported_.source = source();
    return std::move(exported_);
  }

 private:
  const Instructions& instructions() const { return *compiled_->instructions; }
  const Tape& tape() const { return tape_->tape(); }

  /// Plans the program in what parameters, results and state leave of the budget.
  void compile_program() {
    std::vector<ValueId> targets;
    for (const Var& output : parts_.outputs) targets.push_back(output.id());
    tape_.emplace(program_.tape(), targets);
    if (optimizer_.exists()) copy_gradients(targets);
    targets_ = targets;
    count_bytes();
    std::ranges::sort(targets);
    targets.erase(std::ranges::unique(targets).begin(), targets.end());
    const Bytes fixed = exported_.total_bytes();
    RunOptions run;
    run.fuse = false;
    run.threads = 1;
    run.planner = options_.planner;
    if (options_.memory_budget != unlimited) {
      run.memory_budget = std::max<Bytes>(0, options_.memory_budget - fixed);
    }
    ProgramSpec spec = spec_for(targets, parts_.backward_begins, run);
    spec.results_in_buffers = !optimizer_.exists();
    ProgramCache cache;
    const CompileContext context{.cache = cache, .loops = nullptr, .fit_caches = false};
    const OrRefusal<Compilation> made = compile(tape_->tape(), spec, run, context);
    if (!made) throw_refusal(fixed, made.refusal().smallest_feasible());
    compiled_ = made->program;
    const Bytes arena = instructions().arena_size();
    if (options_.memory_budget != unlimited && fixed + arena > options_.memory_budget) {
      throw_refusal(fixed, arena);
    }
  }

  /// A gradient may be a parameter, which the update of another one reads after it changed.
  void copy_gradients(std::vector<ValueId>& targets) {
    for (std::size_t i = parts_.differentiated; i < targets.size(); ++i) {
      targets[i] = tape_->record_copy(targets[i]);
    }
  }

  void count_bytes() {
    StructBytes state;
    if (optimizer_.counts_steps()) state.add(DType::i64, 1);
    for (const auto& [slot, parameter] : slots()) {
      state.add(parameter.dtype(), parameter.shape().elements());
    }
    exported_.state_bytes = state.total();
    exported_.parameter_bytes = names_.parameter_bytes();
    exported_.result_bytes = names_.result_bytes();
  }

  [[noreturn]] void throw_refusal(Bytes fixed, Bytes arena) const {
    const Bytes least = fixed + arena;
    throw BudgetError(
        "[export_c] a budget of " + std::to_string(options_.memory_budget) +
            " bytes is too small; the smallest feasible one is " + std::to_string(least) +
            " bytes, with parameters of " + std::to_string(exported_.parameter_bytes) +
            ", results of " + std::to_string(exported_.result_bytes) + ", optimizer state of " +
            std::to_string(exported_.state_bytes) + " and an arena of " + std::to_string(arena),
        options_.memory_budget, least);
  }

  /// Arrays of the optimizer's state, with their parameters.
  std::vector<std::pair<std::string, Var>> slots() const {
    std::vector<std::pair<std::string, Var>> all;
    for (const Var& parameter : parts_.parameters) {
      for (const std::string& slot : optimizer_.slots()) all.emplace_back(slot, parameter);
    }
    return all;
  }

  /// Finds what each source of the instructions is called. Targets that lie elsewhere are written
  /// to the result of their first name.
  void add_tables_and_results() {
    const std::span<const ValueId> sources = instructions().sources();
    source_names_.resize(sources.size());
    for (std::size_t k = 0; k < sources.size(); ++k) {
      const ValueId value = sources[k];
      const NodeId node = tape().producer(value);
      if (!tape().is_leaf(node)) continue;
      if (const std::string* const name = names_.leaf(value)) {
        source_names_[k] = *name;
        continue;
      }
      const ValueType type = tape().type(value);
      const std::string_view given = tape().name(node);
      source_names_[k] =
          file_.add_table(options_.name + "_" + (given.empty() ? "constant" : std::string(given)),
                          type, program_.tape().buffer(value).get());
      exported_.constant_bytes += type.bytes();
    }
    if (optimizer_.exists()) return;
    for (std::size_t i = 0; i < targets_.size(); ++i) {
      const Instructions::Place place = place_of(targets_[i]);
      if (!instructions().is_source(place)) continue;
      std::string& name = source_names_[place - instructions().source_place(0)];
      if (name.empty()) name = names_.result(i);
    }
  }

  Instructions::Place place_of(ValueId target) const {
    return std::ranges::find(instructions().results(), target, &Instructions::Held::value)->place;
  }

  std::string place_text(Instructions::Place place, DType dtype) const {
    if (place == instructions().empty_place()) return "0";
    if (instructions().is_source(place)) {
      return source_names_[place - instructions().source_place(0)];
    }
    const Bytes offset = instructions().intervals()[place].offset;
    return with_prefix(filled("@@AT($T, $offset)", {{"T", c_type(dtype)}, {"offset", offset}}),
                       options_.name);
  }

  void add_call(const Instructions::Instruction& step) {
    std::vector<ValueType> types;
    std::vector<std::string> places;
    bool is_empty = true;
    for (std::uint32_t k = 0; k < step.inputs + step.outputs; ++k) {
      const Operand& operand = instructions().operands()[step.first_operand + k];
      const Instructions::Place place = instructions().places()[step.first_operand + k];
      types.push_back(operand.type);
      places.push_back(place_text(place, operand.dtype()));
      if (k >= step.inputs && operand.elements() > 0) is_empty = false;
    }
    if (is_empty) return;
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
      const std::string from = place_text(place_of(targets_[i]), type.dtype);
      if (from == name || type.bytes() == 0) continue;
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
      const ValueId gradient = targets_[parts_.differentiated + i];
      std::string call = with_prefix(optimizer_.function_name(dtype), options_.name) + "(" + name +
                         ", " + place_text(place_of(gradient), dtype);
      for (const std::string& slot : optimizer_.slots()) call += ", state->" + name + "_" + slot;
      call += ", " + std::to_string(parameter.shape().elements()) + ", learning_rate";
      if (optimizer_.counts_steps()) call += ", (double)state->steps";
      statements_ += "  " + call + ");\n";
    }
  }

  std::string signature() const {
    std::string text = "int " + options_.name + "(";
    const std::string indent(text.size(), ' ');
    bool is_first = true;
    const auto append = [&](const std::string& parameter) {
      text += (is_first ? "" : ",\n" + indent) + parameter;
      is_first = false;
    };
    for (const CPointer& pointer : names_.pointers()) {
      append((pointer.is_written ? "" : "const ") + c_type(pointer.type.dtype) + " *" +
             pointer.name);
    }
    if (!optimizer_.slots().empty()) append(options_.name + "_state *state");
    if (optimizer_.exists()) append("double learning_rate");
    return text + (is_first ? "void)" : ")");
  }

  std::string header() const {
    std::string text = with_prefix(filled(R"(/* Written by Palimpsest. Do not edit.
 *
 * Memory in bytes: parameters $parameters, results $results, optimizer state $state,
 * arena $arena; in addition read-only tables of $constants.
 */
#ifndef @@H
#define @@H

#include <stdint.h>

#define @@ARENA_BYTES $arena
)",
                                          {{"parameters", exported_.parameter_bytes},
                                           {"results", exported_.result_bytes},
                                           {"state", exported_.state_bytes},
                                           {"arena", exported_.arena_bytes},
                                           {"constants", exported_.constant_bytes}}),
                                   options_.name);
    for (const CPointer& pointer : names_.pointers()) {
      text += "#define " + upper_case(options_.name + "_" + pointer.name) + "_ELEMENTS " +
              std::to_string(pointer.type.shape.elements()) + "  /* " +
              to_string(pointer.type.shape) + " */\n";
    }
    if (optimizer_.exists()) {
      text += "#define " + upper_case(options_.name) + "_LEARNING_RATE " +
              c_literal(optimizer_.learning_rate(), DType::f64) + "\n";
    }
    text += with_prefix(R"(
/* What @@OK and the other statuses mean: an index or a class is out of range; a matrix is not
 * positive definite, or its determinant is not positive; a matrix is singular. Results are undefined
 * unless the status is @@OK, but parameters and optimizer state are unchanged. */
#define @@OK 0
#define @@OUT_OF_RANGE 1
#define @@NOT_POSITIVE_DEFINITE 2
#define @@SINGULAR 3
)",
                        options_.name);
    if (!optimizer_.slots().empty()) text += state_text();
    text += "\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n";
    text +=
        "/* Returns a status. Not reentrant, since the arena is static. No two pointers may "
        "overlap. */\n";
    text += signature() + ";\n";
    return text + "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n";
  }

  std::string state_text() const {
    std::string text =
        "\n/* The optimizer's state: all zeros before the first call. */\ntypedef struct " +
        options_.name + "_state {\n";
    if (optimizer_.counts_steps()) text += "  int64_t steps;\n";
    for (const auto& [slot, parameter] : slots()) {
      const std::int64_t elements = parameter.shape().elements();
      if (elements == 0) continue;
      text += "  " + c_type(parameter.dtype()) + " " + *names_.leaf(parameter.id()) + "_" + slot +
              "[" + std::to_string(elements) + "];\n";
    }
    return text + "} " + options_.name + "_state;\n";
  }

  std::string source() const {
    std::string text = "/* Written by Palimpsest. Do not edit. */\n#include \"" + options_.name +
                       ".h\"\n" +
                       with_prefix(R"(
#include <math.h>
#include <string.h>

#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#endif
#if defined(__GNUC__)
#define @@FUNCTION static __attribute__((noinline))
#else
#define @@FUNCTION static
#endif
)",
                                   options_.name);
    if (exported_.arena_bytes > 0) {
      text += with_prefix(R"(
/* All intermediate values. Values that are not needed at the same time share memory. */
static union {
  unsigned char bytes[@@ARENA_BYTES];
  double alignment;
  int64_t other_alignment;
} @arena;
#define @@AT(type, offset) ((type *)(void *)(@arena.bytes + (offset)))
)",
                          options_.name);
    }
    text += file_.tables() + file_.functions() + "\n" + signature() + " {\n";
    if (fails_) text += "  int status;\n";
    for (const CPointer& pointer : names_.pointers()) {
      text += "  (void)" + pointer.name + ";\n";
    }
    return text + statements_ + "  return 0;\n}\n";
  }

  const Program& program_;
  const ProgramParts parts_;
  const ExportOptions& options_;
  const Where& where_;
  const COptimizerText optimizer_;
  ExportNames names_;
  CFile file_;
  std::optional<ExportTape> tape_;
  std::shared_ptr<const CompiledProgram> compiled_;
  std::vector<ValueId> targets_;  // by output
  std::vector<std::string> source_names_;
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
  write_file(folder + "/" + exported.name + ".h", exported.header, "write_files");
  write_file(folder + "/" + exported.name + ".c", exported.source, "write_files");
}

}  // namespace palimpsest
