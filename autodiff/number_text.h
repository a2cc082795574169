#pragma once

#include <string>

namespace palimpsest {

/// The shortest decimal number that is read as the same f64, as in `0.1`, `2` and `1e-20`. Used in
/// messages, where `std::to_string` would show six digits after the point, or none that count.
std::string number_text(double number);

}  // namespace palimpsest
