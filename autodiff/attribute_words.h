#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <ranges>
#include <source_location>
#include <type_traits>
#include <utility>
#include <vector>

#include "autodiff/philox.h"

// Attributes as words, in the same way in every process. A struct is the sequence of its members,
// which are found without a list of their names.

namespace palimpsest::detail {

/// Stands for a member of `T` of any type, to count how many it has. Nothing is ever converted; the
/// bodies are there because Clang wants one for each constructor of `std::optional` it considers.
template <class T>
struct AnyMember {
  template <class U>
    requires(!std::is_base_of_v<U, T>)
  operator U() const {  // NOLINT(google-explicit-constructor)
    std::terminate();
  }
};
template <class T>
struct AnyBase {
  template <class U>
    requires(std::is_base_of_v<U, T> && !std::is_same_v<U, T>)
  operator U() const {  // NOLINT(google-explicit-constructor)
    std::terminate();
  }
};
template <class T, std::size_t>
using Member = AnyMember<T>;

template <class T, std::size_t... I>
constexpr bool fits_in_braces(std::index_sequence<I...>) {
  return requires { T{Member<T, I>{}...}; };
}
template <class T, std::size_t... I>
constexpr bool fits_in_parentheses(std::index_sequence<I...>) {
  return requires { T(Member<T, I>{}...); };
}
/// The most members that can be initialized; 0 if none.
template <class T, std::size_t most = 16>
constexpr std::size_t count_members() {
  if constexpr (most == 0 || fits_in_braces<T>(std::make_index_sequence<most>())) {
    return most;
  } else {
    return count_members<T, most - 1>();
  }
}
/// True for structs that `with_members` can take apart: without bases, and without arrays of C,
/// whose elements braces would count.
template <class T>
constexpr bool has_plain_members() {
  if constexpr (!std::is_aggregate_v<T> || std::is_array_v<T>) {
    return false;
  } else {
    constexpr std::size_t count = count_members<T>();
    if constexpr (count == 0) return std::is_empty_v<T>;
    return count <= 12 && fits_in_parentheses<T>(std::make_index_sequence<count>()) &&
           !requires { T{AnyBase<T>{}}; };
  }
}

/// Calls `f` with all members of a struct.
template <class T, class F>
constexpr auto with_members(const T& value, F f) {
  constexpr std::size_t count = count_members<T>();
  if constexpr (count == 0) {
    return f();
  } else if constexpr (count == 1) {
    const auto& [a] = value;
    return f(a);
  } else if constexpr (count == 2) {
    const auto& [a, b] = value;
    return f(a, b);
  } else if constexpr (count == 3) {
    const auto& [a, b, c] = value;
    return f(a, b, c);
  } else if constexpr (count == 4) {
    const auto& [a, b, c, d] = value;
    return f(a, b, c, d);
  } else if constexpr (count == 5) {
    const auto& [a, b, c, d, e] = value;
    return f(a, b, c, d, e);
  } else if constexpr (count == 6) {
    const auto& [a, b, c, d, e, g] = value;
    return f(a, b, c, d, e, g);
  } else if constexpr (count == 7) {
    const auto& [a, b, c, d, e, g, h] = value;
    return f(a, b, c, d, e, g, h);
  } else if constexpr (count == 8) {
    const auto& [a, b, c, d, e, g, h, i] = value;
    return f(a, b, c, d, e, g, h, i);
  } else if constexpr (count == 9) {
    const auto& [a, b, c, d, e, g, h, i, j] = value;
    return f(a, b, c, d, e, g, h, i, j);
  } else if constexpr (count == 10) {
    const auto& [a, b, c, d, e, g, h, i, j, k] = value;
    return f(a, b, c, d, e, g, h, i, j, k);
  } else if constexpr (count == 11) {
    const auto& [a, b, c, d, e, g, h, i, j, k, l] = value;
    return f(a, b, c, d, e, g, h, i, j, k, l);
  } else {
    static_assert(count == 12);
    const auto& [a, b, c, d, e, g, h, i, j, k, l, m] = value;
    return f(a, b, c, d, e, g, h, i, j, k, l, m);
  }
}

template <class T>
concept Describing = requires(const T& value) { value.described(); };
template <class T>
concept Number = std::is_arithmetic_v<T> || std::is_enum_v<T>;
template <class T>
concept MaybeValue = requires(const T& value) {
  { value.has_value() } -> std::same_as<bool>;
  *value;
};
/// Differs between runs of a program that has not changed: lines and random streams.
template <class T>
concept Passing = std::same_as<T, std::source_location> || std::same_as<T, RandomStream>;

/// Appends the words of a value. Returns false if it has a part that words do not describe, such as
/// a pointer or a function. Another type may have a function `described()`, which returns what
/// stands for it.
template <class T>
bool describe(const T& value, std::vector<std::uint64_t>& words) {
  if constexpr (Describing<T>) {
    return describe(value.described(), words);
  } else if constexpr (Passing<T>) {
    return true;
  } else if constexpr (std::is_floating_point_v<T>) {
    words.push_back(std::bit_cast<std::uint64_t>(static_cast<double>(value)));
    return true;
  } else if constexpr (Number<T>) {
    words.push_back(static_cast<std::uint64_t>(value));
    return true;
  } else if constexpr (MaybeValue<T>) {
    words.push_back(value.has_value() ? 1 : 0);
    return !value.has_value() || describe(*value, words);
  } else if constexpr (std::ranges::sized_range<const T>) {
    words.push_back(static_cast<std::uint64_t>(std::ranges::size(value)));
    for (const auto& each : value) {
      if (!describe(each, words)) return false;
    }
    return true;
  } else if constexpr (has_plain_members<T>()) {
    return with_members(value, [&](const auto&... each) { return (describe(each, words) && ...); });
  } else {
    return false;
  }
}

}  // namespace palimpsest::detail
