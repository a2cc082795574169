#include "strategy/export/export_names.h"

#include <algorithm>

#include "strategy/export/c_library.h"
#include "strategy/export/c_text.h"

namespace palimpsest {
namespace {

/// Names with another meaning in the exported function.
constexpr const char* other_meanings[] = {"arena",  "learning_rate", "memcpy",  "state",
                                          "status", "int32_t",       "int64_t", "uint8_t"};

/// Macros of the file, which have its name in capitals before them.
constexpr const char* own_macros[] = {
    "ARENA_BYTES",           "AT", "FUNCTION",     "H",       "LEARNING_RATE",
    "NOT_POSITIVE_DEFINITE", "OK", "OUT_OF_RANGE", "SINGULAR"};

std::string names_of_outputs(const ProgramParts& parts, std::size_t output,
                             const std::map<ValueId, std::string>& leaves) {
  if (parts.differentiated == 0) return "result_" + std::to_string(output);
  if (output == 0) return "loss";
  if (output < parts.differentiated) return "output_" + std::to_string(output);
  return "gradient_of_" + leaves.at(parts.parameters[output - parts.differentiated].id());
}

}  // namespace

ExportNames::ExportNames(const Program& program, const ProgramParts& parts,
                         const ExportOptions& options, bool updates, const Where& where)
    : parts_(parts), options_(options), where_(where) {
  if (!is_c_identifier(options.name)) {
    throw ArgumentError("export_c",
                        "the name '" + options.name +
                            "' is no C identifier; give letters, digits and underscores, with a "
                            "letter first, but no word of the language",
                        where);
  }
  if (updates && parts.differentiated == 0) {
    throw ArgumentError("export_c",
                        "the program computes only values, so an optimizer has no gradients; make "
                        "it with Program::gradients()",
                        where);
  }
  const bool has_other_meaning =
      std::ranges::find(other_meanings, options.name) != std::end(other_meanings);
  if (has_other_meaning || is_c_library_name(options.name) || is_c_library_macro(options.name)) {
    throw ArgumentError(
        "export_c",
        "the name '" + options.name + "' has another meaning in C or in the file; give another",
        where);
  }
  used_.insert({options.name, options.name + "_arena", options.name + "_state"});
  used_.insert(std::begin(other_meanings), std::end(other_meanings));
  for (const char* macro : own_macros) used_.insert(upper_case(options.name) + "_" + macro);
  const std::size_t result_count = updates ? parts.differentiated : parts.outputs.size();
  take_given(options.arguments, "argument");
  check_arguments(program.tape());
  take_given(options.results, "result");
  check_results(result_count);
  add_parameters(program.tape(), updates);
  add_arguments(program.tape(), updates);
  add_results(result_count);
}

void ExportNames::take_given(std::span<const CName> given, const std::string& role) {
  for (const CName& each : given) {
    if (!is_c_identifier(each.name)) {
      throw ArgumentError("export_c",
                          "the " + role + " name '" + each.name +
                              "' is no C identifier; give letters, digits and underscores, with a "
                              "letter first",
                          where_);
    }
    if (!take(each.name)) {
      throw ArgumentError("export_c",
                          "the name '" + each.name +
                              "' is used twice or has another meaning in the file, whose macros "
                              "have names in capitals; give another",
                          where_);
    }
  }
}

void ExportNames::check_arguments(const Tape& tape) const {
  const std::vector<CName>& given = options_.arguments;
  for (auto each = given.begin(); each != given.end(); ++each) {
    const Var& value = each->value;
    if (!value.defined() || !value.belongs_to(tape) || !tape.is_leaf(value.node())) {
      throw ArgumentError("export_c",
                          "the argument '" + each->name +
                              "' is no leaf of the program; give a constant or a parameter",
                          where_);
    }
    const auto first = std::ranges::find(given.begin(), each, value, &CName::value);
    if (first == each) continue;
    throw ArgumentError("export_c",
                        "the value of the argument '" + each->name + "' is listed already as '" +
                            first->name + "'; list it once",
                        where_);
  }
}

void ExportNames::check_results(std::size_t count) const {
  const auto is_in = [](std::span<const Var> outputs, const Var& value) {
    return std::ranges::find(outputs, value) != outputs.end();
  };
  for (const auto& [name, value] : options_.results) {
    if (!value.defined() || !(is_in(parts_.outputs, value) || is_in(parts_.names, value))) {
      throw ArgumentError("export_c",
                          "the result '" + name +
                              "' is no output of the program; return it from the recorded function",
                          where_);
    }
    const auto recorded = parts_.names.first(std::min(count, parts_.names.size()));
    if (!is_in(parts_.outputs.first(count), value) && !is_in(recorded, value)) {
      throw ArgumentError("export_c",
                          "the result '" + name +
                              "' is a gradient, which the function does not return with an "
                              "optimizer; leave out the name or the optimizer",
                          where_);
    }
  }
}

bool ExportNames::take(const std::string& name) {
  const std::string macro = upper_case(options_.name + "_" + name) + "_ELEMENTS";
  if (is_c_library_macro(name) || used_.contains(name) || used_.contains(macro)) return false;
  used_.insert({name, macro});
  return true;
}

std::string ExportNames::choose(std::span<const CName> given, const Var& value,
                                const std::string& like) {
  // An output that is returned twice may have two names.
  for (const CName& each : given) {
    if (each.value == value && taken_.insert(each.name).second) return each.name;
  }
  const std::string identifier = c_identifier(like);
  std::string name = identifier;
  for (int number = 2; !take(name); ++number) {
    name = identifier + "_" + std::to_string(number);
  }
  return name;
}

void ExportNames::add_leaf(const Var& leaf, const std::string& name, const std::string& role,
                           bool is_written) {
  const ValueType type = leaf.type();
  if (!is_c_dtype(type.dtype)) {
    throw DTypeError("export_c",
                     "the " + role + " " + name + " is " + to_string(type) +
                         "; exported are f32, f64, i32, i64 and bool, so record another dtype",
                     leaf.tape().where(leaf.node()));
  }
  leaves_[leaf.id()] = name;
  pointers_.push_back({name, type, is_written});
}

void ExportNames::add_parameter(const Var& parameter, const std::string& name, bool updates) {
  add_leaf(parameter, name, "parameter", updates);
  parameter_bytes_ += parameter.type().bytes();
}

void ExportNames::add_parameters(const Tape& tape, bool updates) {
  std::size_t number = 0;
  for (NodeId node = 0; node < tape.node_count(); ++node) {
    if (!tape.is_leaf(node) || !tape.is_parameter(node)) continue;
    const Var parameter(const_cast<Tape&>(tape), tape.first_output(node));
    const std::string scope(tape.scope_of(node));
    std::string like(tape.name(node));
    if (like.empty()) like = "parameter_" + std::to_string(number);
    if (!scope.empty()) like = scope + "_" + like;
    ++number;
    if (std::ranges::find(options_.arguments, parameter, &CName::value) !=
        options_.arguments.end()) {
      continue;
    }
    add_parameter(parameter, choose({}, parameter, like), updates);
  }
}

void ExportNames::add_arguments(const Tape& tape, bool updates) {
  for (const CName& each : options_.arguments) {
    if (tape.is_parameter(each.value.node())) {
      add_parameter(each.value, each.name, updates);
    } else {
      add_leaf(each.value, each.name, "argument", false);
    }
  }
}

void ExportNames::add_results(std::size_t count) {
  for (std::size_t output = 0; output < count; ++output) {
    Var value = parts_.outputs[output];
    // A program in another precision names its outputs by the recorded ones.
    const bool has_name =
        std::ranges::find(options_.results, value, &CName::value) != options_.results.end();
    if (!has_name && output < parts_.names.size()) value = parts_.names[output];
    result_names_.push_back(
        choose(options_.results, value, names_of_outputs(parts_, output, leaves_)));
    const ValueType type = parts_.outputs[output].type();
    pointers_.push_back({result_names_.back(), type, true});
    result_bytes_ += type.bytes();
  }
  for (const CName& each : options_.results) {
    if (taken_.contains(each.name)) continue;
    throw ArgumentError(
        "export_c",
        "the output of the result '" + each.name + "' has a name already; leave out one of them",
        where_);
  }
}

const std::string* ExportNames::leaf(ValueId value) const {
  const auto found = leaves_.find(value);
  return found == leaves_.end() ? nullptr : &found->second;
}

void ExportNames::reserve_in(CFile& file) const {
  for (const std::string& name : used_) file.reserve(name);
}

}  // namespace palimpsest
