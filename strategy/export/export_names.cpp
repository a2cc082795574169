#include "strategy/export/export_names.h"

#include <algorithm>

namespace palimpsest {
namespace {

/// Names with another meaning in the exported function.
constexpr const char* other_meanings[] = {"arena",  "learning_rate", "memcpy",  "state",
                                          "status", "int32_t",       "int64_t", "uint8_t",
                                          "NAN",    "INFINITY",      "NULL"};

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
                            "letter first",
                        where);
  }
  if (updates && parts.differentiated == 0) {
    throw ArgumentError("export_c",
                        "the program computes only values, so an optimizer has no gradients; make "
                        "it with Program::gradients()",
                        where);
  }
  used_.insert({options.name, options.name + "_arena", options.name + "_state"});
  used_.insert(std::begin(other_meanings), std::end(other_meanings));
  check_given(program, options.arguments, "argument");
  check_given(program, options.results, "result");
  add_parameters(program, updates);
  add_arguments(program);
  add_results(updates ? parts.differentiated : parts.outputs.size());
}

void ExportNames::check_given(const Program& program, std::span<const CName> given,
                              const char* role) {
  for (const CName& each : given) {
    if (!is_c_identifier(each.name)) {
      throw ArgumentError("export_c",
                          "the " + std::string(role) + " name '" + each.name +
                              "' is no C identifier; give letters, digits and underscores, with a "
                              "letter first",
                          where_);
    }
    if (!used_.insert(each.name).second) {
      throw ArgumentError("export_c",
                          "the name '" + each.name +
                              "' is used twice or has another meaning in the file; give another",
                          where_);
    }
    const Tape& tape = program.tape();
    const bool is_here = each.value.defined() && each.value.belongs_to(tape);
    if (std::string_view(role) == "argument") {
      if (is_here && tape.is_leaf(each.value.node())) continue;
      throw ArgumentError("export_c",
                          "the argument '" + each.name +
                              "' is no leaf of the program; give a constant or a parameter",
                          where_);
    }
    const auto is_output = [&](std::span<const Var> outputs) {
      return std::ranges::find(outputs, each.value) != outputs.end();
    };
    if (!each.value.defined() || !(is_output(parts_.outputs) || is_output(parts_.names))) {
      throw ArgumentError("export_c",
                          "the result '" + each.name +
                              "' is no output of the program; return it from the recorded function",
                          where_);
    }
  }
}

std::string ExportNames::choose(std::span<const CName> given, const Var& value,
                                const std::string& like) {
  const auto found = std::ranges::find(given, value, &CName::value);
  // An output that is returned twice has its name once.
  if (found != given.end() && taken_.insert(found->name).second) return found->name;
  const std::string identifier = c_identifier(like);
  std::string name = identifier;
  for (int number = 2; !used_.insert(name).second; ++number) {
    name = identifier + "_" + std::to_string(number);
  }
  return name;
}

void ExportNames::add_parameters(const Program& program, bool updates) {
  const Tape& tape = program.tape();
  std::size_t number = 0;
  for (NodeId node = 0; node < tape.node_count(); ++node) {
    if (!tape.is_leaf(node) || !tape.is_parameter(node)) continue;
    const Var parameter(const_cast<Tape&>(tape), tape.first_output(node));
    const std::string scope(tape.scope_of(node));
    std::string like(tape.name(node));
    if (like.empty()) like = "parameter_" + std::to_string(number);
    if (!scope.empty()) like = scope + "_" + like;
    ++number;
    const std::string name = choose(options_.arguments, parameter, like);
    leaves_[parameter.id()] = name;
    pointers_.push_back({name, parameter.type(), updates});
    parameter_bytes_ += parameter.type().bytes();
  }
}

void ExportNames::add_arguments(const Program& program) {
  for (const CName& each : options_.arguments) {
    if (program.tape().is_parameter(each.value.node())) continue;
    leaves_[each.value.id()] = each.name;
    pointers_.push_back({each.name, each.value.type(), false});
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
}

const std::string* ExportNames::leaf(ValueId value) const {
  const auto found = leaves_.find(value);
  return found == leaves_.end() ? nullptr : &found->second;
}

void ExportNames::reserve_in(CFile& file) const {
  for (const std::string& name : used_) file.reserve(name);
}

}  // namespace palimpsest
