// Runs the examples of the reference. Prints each line of their output after its file and line.
#include <cstdio>
#include <iostream>
#include <sstream>
#include <vector>

#include "docs/snippets/reference/example.h"

namespace reference {
namespace {

std::vector<Example>& examples() {
  static std::vector<Example> all;
  return all;
}

/// Appends the elements from `at` on, from axis `axis` on.
void append(std::string& text, const Tensor& tensor, int axis, std::int64_t& at) {
  if (axis == tensor.shape().rank()) {
    text += shown(tensor.at(at++));
    return;
  }
  text += '[';
  for (std::int64_t i = 0; i < tensor.shape()[axis]; ++i) {
    if (i > 0) text += ", ";
    append(text, tensor, axis + 1, at);
  }
  text += ']';
}

}  // namespace

std::string shown(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value == 0 ? 0 : value);
  return text;
}

std::string shown(const Tensor& tensor) {
  std::string text;
  std::int64_t at = 0;
  append(text, tensor, 0, at);
  return text;
}

void write_line(std::string_view file, int line, const std::string& text) {
  std::istringstream lines(text);
  for (std::string part; std::getline(lines, part);) {
    std::cout << file.substr(file.rfind('/') + 1) << ':' << line << '\t' << part << '\n';
  }
}

Registered::Registered(Example example) { examples().push_back(example); }

}  // namespace reference

int main() {
  for (const reference::Example example : reference::examples()) example();
}
