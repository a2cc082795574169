#include "strategy/export/c_text.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>

namespace palimpsest {
namespace {

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool is_keyword(std::string_view text) {
  // C++ programs include the header too.
  static constexpr std::string_view keywords =
      "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t "
      "char32_t char8_t class co_await co_return co_yield compl concept const const_cast "
      "consteval constexpr constinit continue decltype default delete do double dynamic_cast "
      "else enum explicit export extern false float for friend goto if inline int long main "
      "mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected "
      "public register reinterpret_cast requires restrict return short signed sizeof static "
      "static_assert static_cast struct switch template this thread_local throw true try "
      "typedef typeid typename typeof typeof_unqual union unsigned using virtual void volatile "
      "wchar_t while xor xor_eq";
  return mentions(keywords, text);
}

/// The shortest decimal number that is read as the same bits.
template <class T>
std::string shortest(T number) {
  char digits[64];
  const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  std::string text(digits, end);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

template <class T>
std::string floating_literal(T number, const char* suffix) {
  if (number != number) return "NAN";
  if (std::isinf(number)) return number > 0 ? "INFINITY" : "(-INFINITY)";
  const std::string text = shortest(number) + suffix;
  return std::signbit(number) ? "(" + text + ")" : text;
}

}  // namespace

bool is_c_dtype(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f64 || dtype == DType::i32 || dtype == DType::i64 ||
         dtype == DType::boolean;
}

std::string c_type(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return "double";
    case DType::f32:
      return "float";
    case DType::i64:
      return "int64_t";
    case DType::i32:
      return "int32_t";
    case DType::boolean:
      return "uint8_t";
    default:
      throw InternalError("a dtype without a C type");
  }
}

std::string c_literal(double number, DType dtype) {
  if (dtype == DType::f64) return floating_literal(number, "");
  if (dtype == DType::f32) return floating_literal(static_cast<float>(number), "f");
  if (dtype == DType::boolean) return number != 0 ? "1" : "0";
  if (dtype == DType::i32) {
    return c_literal(std::int64_t{convert_element<std::int32_t>(number)}, dtype);
  }
  return c_literal(convert_element<std::int64_t>(number), dtype);
}

std::string c_literal(std::int64_t number, DType dtype) {
  if (dtype == DType::boolean) return number != 0 ? "1" : "0";
  if (dtype == DType::i32) {
    if (number == std::numeric_limits<std::int32_t>::min()) return "INT32_MIN";
    return number < 0 ? "(" + std::to_string(number) + ")" : std::to_string(number);
  }
  if (number == std::numeric_limits<std::int64_t>::min()) return "INT64_MIN";
  const std::string text = "INT64_C(" + std::to_string(number < 0 ? -number : number) + ")";
  return number < 0 ? "(-" + text + ")" : text;
}

std::string c_function(std::string_view name, DType dtype) {
  return std::string(name) + (dtype == DType::f32 ? "f" : "");
}

bool is_c_identifier(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, is_letter_or_digit) && !is_digit(text[0]) &&
         text[0] != '_' && !is_keyword(text);
}

std::string c_identifier(std::string_view text) {
  std::string result;
  for (const char c : text) result += is_letter_or_digit(c) ? c : '_';
  if (is_c_identifier(result)) return result;
  return "x_" + result;
}

bool mentions(std::string_view text, std::string_view identifier) {
  for (std::size_t at = text.find(identifier); at != std::string_view::npos;
       at = text.find(identifier, at + 1)) {
    const std::size_t end = at + identifier.size();
    const bool begins = at == 0 || !is_letter_or_digit(text[at - 1]);
    if (begins && (end == text.size() || !is_letter_or_digit(text[end]))) return true;
  }
  return false;
}

std::string upper_case(std::string_view text) {
  std::string result;
  for (const char c : text) {
    result += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return result;
}

std::string filled(std::string_view pattern, Blanks blanks) {
  std::string text;
  for (std::size_t i = 0; i < pattern.size();) {
    if (pattern[i] != '$') {
      text += pattern[i++];
      continue;
    }
    std::size_t end = ++i;
    while (end < pattern.size() && is_letter_or_digit(pattern[end])) ++end;
    const std::string_view name = pattern.substr(i, end - i);
    const auto blank = std::ranges::find(blanks, name, [](const auto& each) { return each.first; });
    if (blank == blanks.end()) {
      throw InternalError("a pattern has no text for $" + std::string(name));
    }
    text += blank->second.text();
    i = end;
  }
  return text;
}

std::string with_prefix(std::string_view text, std::string_view name) {
  const std::string lower = std::string(name) + "_";
  const std::string upper = upper_case(lower);
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '@') {
      result += text[i];
    } else if (i + 1 < text.size() && text[i + 1] == '@') {
      result += upper;
      ++i;
    } else {
      result += lower;
    }
  }
  return result;
}

}  // namespace palimpsest
