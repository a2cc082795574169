#pragma once

#include <optional>
#include <string>

#include "tests/programs/program_text.h"

namespace palimpsest {

/// Differentiates a program twice and three times along directions, by parameters and by a value
/// that is no leaf. Each direction is the value itself, and then a copy of it. Products with both
/// have the same bits. Third derivatives agree, and so does the gradient of an inner product. A
/// direction is refused only where its copy is. Returns what does not hold.
std::optional<std::string> problem_of_directions(const ProgramText& text);

}  // namespace palimpsest
