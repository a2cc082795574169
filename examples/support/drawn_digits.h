#pragma once

#include "examples/support/idx.h"

namespace examples {

/// `count` images of digits, drawn by the seven segments of a display, at random places and with
/// noise. Pixels are multiples of 1/255. For examples where no data are installed.
LabelledImages drawn_digits(std::int64_t count, std::uint64_t seed);

}  // namespace examples
