#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "strategy/export/c_file.h"
#include "strategy/export/export_c.h"
#include "strategy/program_parts.h"

namespace palimpsest {

/// The pointers that an exported function takes, and their names: parameters, other arguments,
/// results.
class ExportNames {
 public:
  /// `updates`: gradients are no results, since parameters are updated. Throws `ArgumentError` for
  /// names and values that do not fit.
  ExportNames(const Program& program, const ProgramParts& parts, const ExportOptions& options,
              bool updates, const Where& where);

  const std::vector<CPointer>& pointers() const { return pointers_; }
  /// The name of a leaf that is an argument; null for a constant in a table.
  const std::string* leaf(ValueId value) const;
  /// Results are the first outputs of the program.
  std::size_t result_count() const { return result_names_.size(); }
  const std::string& result(std::size_t output) const { return result_names_[output]; }
  Bytes parameter_bytes() const { return parameter_bytes_; }
  Bytes result_bytes() const { return result_bytes_; }
  void reserve_in(CFile& file) const;

 private:
  /// Checks the names themselves, and takes them.
  void take_given(std::span<const CName> given, const std::string& role);
  void check_arguments(const Tape& tape) const;
  /// `count`: how many outputs are results.
  void check_results(std::size_t count) const;
  /// Throws `DTypeError` if C has no such dtype.
  void add_leaf(const Var& leaf, const std::string& name, const std::string& role, bool is_written);
  /// Adds the parameters that are not among the given arguments, in the order of recording.
  void add_parameters(const Tape& tape, bool updates);
  /// Adds the given arguments, in their order.
  void add_arguments(const Tape& tape, bool updates);
  void add_parameter(const Var& parameter, const std::string& name, bool updates);
  void add_results(std::size_t count);
  /// Takes a name and that of its macro, which is in capitals. False if one of them is taken.
  bool take(const std::string& name);
  /// The name that the options give to a value, or `like` with a number if it is taken.
  std::string choose(std::span<const CName> given, const Var& value, const std::string& like);

  const ProgramParts& parts_;
  const ExportOptions& options_;
  const Where& where_;
  std::set<std::string> used_;
  std::set<std::string> taken_;  // given names that a pointer has
  std::vector<CPointer> pointers_;
  std::map<ValueId, std::string> leaves_;
  std::vector<std::string> result_names_;
  Bytes parameter_bytes_ = 0;
  Bytes result_bytes_ = 0;
};

}  // namespace palimpsest
