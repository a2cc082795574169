#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "autodiff/dtype.h"

/// Pieces of C source text.
///
/// The texts of functions contain `@` where the prefix of an exported file's names belongs, and
/// `@@` for that of its macros. `with_prefix` replaces both.
namespace palimpsest {

/// True for dtypes that exported C computes with: f32, f64, i32, i64 and bool.
bool is_c_dtype(DType dtype);
/// The C type of an element: `float`, `double`, `int32_t`, `int64_t`, or `uint8_t` for bool.
std::string c_type(DType dtype);
/// A number as a constant expression of this dtype, converted as by `convert_element`. Reading it
/// gives the same bits.
std::string c_literal(double number, DType dtype);
/// An integer as a constant expression of this integer dtype.
std::string c_literal(std::int64_t number, DType dtype);
/// The C library's function of this name for numbers of this dtype, such as `expf` for f32.
std::string c_function(std::string_view name, DType dtype);

/// True for a C identifier that is neither a keyword nor begins with an underscore.
bool is_c_identifier(std::string_view text);
/// A valid identifier similar to `text`: other characters become `_`.
std::string c_identifier(std::string_view text);
/// True if `text` contains this identifier, not only as a part of another one.
bool mentions(std::string_view text, std::string_view identifier);
/// The text in upper case, for macros.
std::string upper_case(std::string_view text);

/// A text for a blank of a pattern.
class Blank {
 public:
  // NOLINTBEGIN(google-explicit-constructor): patterns are filled with numbers and texts alike
  template <std::integral I>
  Blank(I number) : text_(std::to_string(number)) {}
  Blank(std::string text) : text_(std::move(text)) {}
  Blank(const char* text) : text_(text) {}
  // NOLINTEND(google-explicit-constructor)
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};
using Blanks = std::initializer_list<std::pair<std::string_view, Blank>>;

/// `pattern` with `$name` replaced by the blank of that name. Throws `InternalError` for a name
/// without a blank.
std::string filled(std::string_view pattern, Blanks blanks);

/// `text` with `@@` replaced by `NAME_` and other `@` by `name_`.
std::string with_prefix(std::string_view text, std::string_view name);

}  // namespace palimpsest
