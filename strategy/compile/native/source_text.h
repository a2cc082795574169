#pragma once

#include <string>

#include "strategy/compile/native/group_parts.h"

namespace palimpsest {

inline std::string text_of(std::int64_t number) { return std::to_string(number); }

/// The C literal of a number in a dtype.
std::string element_literal(double number, DType dtype);

/// `base + variable * move`, without zeros.
std::string moved(std::string base, const std::string& variable, std::int64_t move);

/// Addresses of the first elements of inputs and outputs.
std::string input_address(std::uint32_t index, DType dtype);
std::string output_address(std::uint32_t index, DType dtype);
/// C code that loads these addresses. They are variables, since a compiler reloads what may have
/// changed at each iteration of a loop, and scatters the elements that the loop stores.
std::string load_addresses(const GroupParts& parts);

/// The address at which a range of load `slot` begins, inside the loops r0, r1 and so on.
std::string access_address(const GroupParts& parts, std::uint32_t slot,
                           const ElementRange::Access& access);

}  // namespace palimpsest
