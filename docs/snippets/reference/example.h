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

/// Writes a line of output, which tools/check_examples.py compares with the comment after the call.
void write_line(std::string_view file, int line, const std::string& text);

template <class First, class... Rest>
void print_from(std::string_view file, int line, const First& first, const Rest&... rest) {
  std::string text = shown(first);
  ((text += " " + shown(rest)), ...);
  write_line(file, line, text);
}

using Example = void (*)();

/// Adds an example to those that the program runs.
struct Registered {
  explicit Registered(Example example);
};

}  // namespace reference

/// Prints values in one line.
#define print(...) print_from(__FILE__, __LINE__, __VA_ARGS__)

/// An example of the functions or types with the given names. docs/header_reference.py shows it
/// under their declarations.
#define EXAMPLE(...) EXAMPLE_NUMBER(__COUNTER__)
#define EXAMPLE_NUMBER(number) EXAMPLE_NUMBERED(number)
#define EXAMPLE_NUMBERED(number)                                 \
  static void example_##number();                                \
  static const Registered registered_##number(example_##number); \
  static void example_##number()
