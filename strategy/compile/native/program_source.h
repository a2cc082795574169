#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "autodiff/operations/prepared_product.h"
#include "strategy/compile/instructions.h"
#include "strategy/compile/native/group_source.h"

namespace palimpsest {

/// A C file for the fused groups of a program.
struct ProgramSource {
  /// Names the function of an instruction.
  struct Group {
    std::string name;               ///< empty: the group is interpreted
    std::uint32_t first_entry = 0;  ///< in the table
  };
  /// A product that `run` calls.
  struct Product {
    std::shared_ptr<const PreparedProduct> prepared;
    NodeId node;  ///< whose attributes on the tape must be equal to these
    Attributes attributes;
  };
  std::string text;           ///< empty if no group has code
  std::vector<Group> groups;  ///< by step of the instructions
  std::vector<GroupSource::Entry> table;
  std::vector<GroupSource::Literal> literals;  ///< of all groups, by index among all numbers
  std::vector<Product> products;
  bool has_run = false;         ///< the function `run` carries out the whole program
  bool is_complete = false;     ///< `run` does so without the executor
  std::uint32_t functions = 0;  ///< different ones
  std::string problem;          ///< why the first interpreted group has no code

  /// The functions of `text` that are called.
  std::vector<std::string> names() const;
};

struct SourceOptions {
  /// The code names the operations and the user's lines. These texts differ between equal programs.
  bool comments = false;
  /// The code may name numbers of the program, where that makes it faster. Equal instructions with
  /// other numbers need other code.
  bool literals = true;
};
ProgramSource program_source(const Instructions& instructions, const Tape& tape,
                             const SourceOptions& options = {});

}  // namespace palimpsest
