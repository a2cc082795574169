#pragma once

#include <initializer_list>

#include "autodiff/export.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// No value of this type can be made.
class NoOption {
  NoOption(const NoOption*, int);
};

/// `{}` as the only argument of a constructor: all options have their defaults. A class that takes
/// only a struct of options needs a constructor for it. Otherwise `Class object({})` would be
/// ambiguous, because `{}` can also stand for an object of the class that is to be copied.
using DefaultOptions = std::initializer_list<NoOption>;

}  // namespace palimpsest
