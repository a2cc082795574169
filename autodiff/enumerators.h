#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

#include "autodiff/dtype.h"
#include "autodiff/error.h"

namespace palimpsest {

/// All enumerators of an option, in their order.
template <class E>
inline constexpr std::initializer_list<E> enumerators = {};

template <>
inline constexpr std::initializer_list<DType> enumerators<DType> = {
    DType::f64, DType::f32, DType::bf16, DType::f16, DType::i64,
    DType::i32, DType::i16, DType::i8,   DType::u8,  DType::boolean};

/// The text of an error about a value without a name. `known` has all enumerators of its type; a
/// cast from a number can make others.
template <class E>
std::string text_of_unnamed(E value, std::initializer_list<E> known) {
  const auto number = static_cast<std::underlying_type_t<E>>(value);
  std::string names;
  if constexpr (requires { name_of(value); }) {
    for (const E each : known) names.append(names.empty() ? "" : ", ").append(name_of(each));
  } else {
    names = "the " + std::to_string(known.size()) + " names of its type";
  }
  return " is " + std::to_string(number) + ", which has no name; give one of " + names;
}

/// Throws `ArgumentError` that begins with `option` if `value` is none of `known`.
template <class E>
void require_enumerator(E value, std::initializer_list<E> known, std::string_view option) {
  if (std::ranges::find(known, value) != known.end()) return;
  throw ArgumentError(std::string(option) + text_of_unnamed(value, known));
}
/// Likewise for an option of an operation.
template <class E>
void require_enumerator(E value, std::initializer_list<E> known, std::string_view operation,
                        const char* option, const Where& where) {
  if (std::ranges::find(known, value) != known.end()) return;
  throw ArgumentError(operation, option + text_of_unnamed(value, known), where);
}

}  // namespace palimpsest
