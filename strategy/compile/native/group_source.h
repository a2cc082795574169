#pragma once

#include <string>
#include <vector>

#include "strategy/compile/native/group_parts.h"

namespace palimpsest {

/// The C code of a fused group, for a file that begins with `native_prelude`.
struct GroupSource {
  /// An entry of the table that the code gets: an address, or that of a node's attributes.
  struct Entry {
    const void* address = nullptr;
    NodeId node = none;
  };
  /// A number that the code names: the code is right only if the group's number is this one.
  struct Literal {
    std::uint32_t index;
    FusedKernel::Number number;
  };
  std::string text;  ///< functions; `@` stands for the name of the group
  std::vector<Entry> table;
  std::vector<Literal> literals;
  std::string problem;  ///< why there is no code; empty if there is
};

/// With `literals`, the code may name numbers of the group.
GroupSource group_source(const FusedKernel& kernel, const Tape& tape, bool literals);

/// Types and functions that the code of all groups uses.
std::string_view native_prelude();

}  // namespace palimpsest
