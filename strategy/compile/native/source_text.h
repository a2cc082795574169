#pragma once

#include <string>

#include "strategy/compile/native/group_parts.h"

namespace palimpsest {

inline std::string text_of(std::int64_t number) { return std::to_string(number); }

/// The C literal of a number in a dtype.
std::string element_literal(double number, DType dtype);

/// `base + variable * move`, without zeros.
std::string moved(std::string base, const std::string& variable, std::int64_t move);

/// The address at which a range of load `slot` begins, inside the loops r0, r1 and so on.
std::string access_address(const GroupParts& parts, std::uint32_t slot,
                           const ElementRange::Access& access);

}  // namespace palimpsest
