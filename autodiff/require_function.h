#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>

#include "autodiff/error.h"

namespace palimpsest::detail {

/// True for a `std::function` without a target and for a null pointer to a function. Other callable
/// objects are never empty.
template <class F>
bool is_empty_function(const F& f) {
  if constexpr (std::is_pointer_v<F> || (std::is_constructible_v<F, std::nullptr_t> &&
                                         std::is_constructible_v<bool, const F&>)) {
    return !static_cast<bool>(f);
  } else {
    return false;
  }
}

/// Throws `ArgumentError` for an empty function. `role` is what the operation calls it, as in "the
/// body", and `use` what it is for, as in "records a step".
template <class F>
void require_function(const F& f, std::string_view operation, std::string_view role,
                      std::string_view use, const Where& where) {
  if (!is_empty_function(f)) return;
  throw ArgumentError(
      operation, std::string(role) + " is an empty function; give one that " + std::string(use),
      where);
}

}  // namespace palimpsest::detail
