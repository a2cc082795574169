#pragma once

#include <palimpsest.h>

#include <cmath>
#include <concepts>
#include <string>
#include <string_view>

namespace reference {

using namespace palimpsest;

/// The elements with four digits, in brackets that show the axes, as in `[[1, 2], [3, 4]]`.
std::string shown(const Tensor& tensor);
inline std::string shown(const Var& value) { return shown(value.value()); }
inline std::string shown(const Shape& shape) { return to_string(shape); }
inline std::string shown(std::string_view text) { return std::string(text); }
inline std::string shown(const char* text) { return text; }
inline std::string shown(bool value) { return value ? "true" : "false"; }
inline std::string shown(DType dtype) { return std::string(name_of(dtype)); }
std::string shown(double value);
template <std::integral I>
std::string shown(I value) {
  return std::to_string(value);
}

/// Writes lines of output, which tools/check_examples.py compares with the comments after the call.
void write_line(std::string_view file, int line, const std::string& text);

/// The text of a value, and the line that prints it.
struct Shown {
  template <class T>
  Shown(const T& value, Where line = Where::current()) : text(shown(value)), where(line) {}
  std::string text;
  Where where;
};

/// Prints values in one line.
template <class... Rest>
void print(const Shown& first, const Rest&... rest) {
  std::string text = first.text;
  ((text += " " + shown(rest)), ...);
  write_line(first.where.file_name(), static_cast<int>(first.where.line()), text);
}

using Example = void (*)();

/// Adds an example to those that the program runs.
struct Registered {
  explicit Registered(Example example);
};

}  // namespace reference

/// An example of the functions or types with the given names. docs/header_reference.py shows it
/// under their declarations.
#define EXAMPLE(...) EXAMPLE_NUMBER(__COUNTER__)
#define EXAMPLE_NUMBER(number) EXAMPLE_NUMBERED(number)
#define EXAMPLE_NUMBERED(number)                                 \
  static void example_##number();                                \
  static const Registered registered_##number(example_##number); \
  static void example_##number()
