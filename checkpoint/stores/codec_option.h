#pragma once

#include <string>

#include "autodiff/enumerators.h"
#include "checkpoint/stores/codec.h"

namespace palimpsest {

/// Throws `ArgumentError` that begins with `option` for a number that is no codec.
inline void require_codec(Codec codec, const std::string& option) {
  require_enumerator(codec, {Codec::exact, Codec::half, Codec::half_f16}, option);
}

}  // namespace palimpsest
