#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "strategy/export/c_function.h"

namespace palimpsest {

/// The functions and tables of an exported file.
class CFile {
 public:
  explicit CFile(std::string name) : name_(std::move(name)) {}

  /// Names that functions and tables must not have.
  void reserve(const std::string& name) { names_.insert(name); }

  struct Function {
    std::string name;
    bool fails;          ///< returns a status
    bool has_workspace;  ///< takes a pointer to it as last argument
  };
  /// A function, and the element of the first input that it begins at.
  struct Use {
    const Function& function;
    std::int64_t start;
  };
  /// The function that computes a node. Nodes with equal bodies share one.
  Use function_of(const CNode& node);
  /// Adds a function with this definition once.
  void add_function(const std::string& definition);
  /// Adds a table of constants. Returns its name.
  std::string add_table(std::string_view name, const ValueType& type, const std::byte* elements);

  std::string tables() const { return tables_; }
  std::string functions() const;
  /// The name of the file's function.
  const std::string& name() const { return name_; }

 private:
  std::string unused_name(const std::string& like);

  std::string name_;
  std::set<std::string> names_;
  std::map<std::string, Function> by_text_;
  std::set<std::string> defined_;
  std::string helpers_;
  std::string definitions_;
  std::string tables_;
};

}  // namespace palimpsest
