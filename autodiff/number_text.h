#pragma once

#include <string>

#include "autodiff/export.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// The shortest decimal number that is read as the same f64, as in `0.1`, `2` and `1e-20`. Used in
/// messages, where `std::to_string` would show six digits after the point, or none that count.
std::string number_text(double number);

}  // namespace palimpsest
