#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <type_traits>

#include "autodiff/error.h"

namespace palimpsest {

/// Throws `ArgumentError` that begins with `option` if `value` is none of `known`, all enumerators
/// of its type. A number that was converted to the type can be any other.
template <class E>
void require_enumerator(E value, std::initializer_list<E> known, const std::string& option) {
  if (std::ranges::find(known, value) != known.end()) return;
  const auto number = static_cast<std::underlying_type_t<E>>(value);
  std::string names;
  if constexpr (requires { name_of(value); }) {
    for (const E each : known) names.append(names.empty() ? "" : ", ").append(name_of(each));
  } else {
    names = "the " + std::to_string(known.size()) + " names of its type";
  }
  throw ArgumentError(option + " is " + std::to_string(number) +
                      ", which has no name; give one of " + names);
}

}  // namespace palimpsest
