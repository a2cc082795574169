#pragma once

#include <optional>
#include <string>

#include "tests/programs/program_text.h"

namespace palimpsest {

/// Differentiates a program twice and three times along directions, by parameters and by a value
/// that is no leaf. Returns the problem, if there is one:
/// - Products have other bits when the direction is the value itself than when it is a copy.
/// - They do not agree with the gradient of an inner product, or third derivatives with each other.
/// - A direction is refused although its copy is not.
std::optional<std::string> problem_of_directions(const ProgramText& text);

}  // namespace palimpsest
