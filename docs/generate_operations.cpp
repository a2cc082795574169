// Writes the table of operations: generate_operations FILE. With --check in front, says instead
// whether FILE is what it would write.
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>

#include "autodiff/operation.h"

namespace {

// A bar would end the table's cell.
std::string cell(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '|') result += '\\';
    result += c;
  }
  return result;
}

std::string_view in_mixed_precision(const palimpsest::Operation& operation) {
  using enum palimpsest::MixedPrecision;
  if (operation.leaf) return "";
  switch (operation.mixed) {
    case wide:
      return "wide";
    case narrow:
      return "narrow";
    case follows:
      return "follows";
    case reads:
      return "reads";
    case first:
      return "first";
    case recorded:
      return "recorded";
  }
  return "";
}

std::string document() {
  std::ostringstream text;
  text << "# Operations\n\n"
          "Written by `./dev docs` from the registrations; `./dev test` checks that it is up to "
          "date.\n"
          "Operands broadcast as in NumPy. The last column says what they do in mixed precision "
          "(see [precision](precision.md#mixed-precision)).\n\n"
          "| operation | value and derivative | summary | mixed |\n|---|---|---|---|\n";
  for (const palimpsest::Operation* operation : palimpsest::operations()) {
    text << "| `" << operation->name << "` | " << cell(operation->formula) << " | "
         << cell(operation->summary) << " | " << in_mixed_precision(*operation) << " |\n";
  }
  return text.str();
}

}  // namespace

int main(int argc, char** argv) {
  const bool check = argc == 3 && std::string_view(argv[1]) == "--check";
  if ((argc != 2 && !check) || argv[argc - 1][0] == '-') {
    std::cerr << "usage: generate_operations [--check] FILE\n";
    return 2;
  }
  const char* const path = argv[argc - 1];
  if (!check) {
    std::ofstream file(path);
    file << document();
    return file.flush() ? 0 : 1;
  }
  std::ifstream file(path);
  if (std::string(std::istreambuf_iterator<char>(file), {}) == document()) return 0;
  std::cerr << path << " is not up to date; run ./dev docs\n";
  return 1;
}
