// Writes the table of operations. Usage: generate_operations [--check] FILE.
#include <sstream>

#include "autodiff/operation.h"
#include "docs/generated_document.h"

namespace {

// Escapes bars, which would end the cell of the table.
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
          "Operands broadcast as in NumPy. x̄ is the adjoint of x, the derivative of the loss by "
          "it. Integers and bool have none.\n"
          "The last column gives the behaviour in mixed precision ([precision]"
          "(precision.md#mixed-precision)).\n\n"
          "| operation | value and derivative | summary | mixed |\n|---|---|---|---|\n";
  for (const palimpsest::Operation* operation : palimpsest::operations()) {
    text << "| `" << operation->name << "` | " << cell(operation->formula) << " | "
         << cell(operation->summary) << " | " << in_mixed_precision(*operation) << " |\n";
  }
  return text.str();
}

}  // namespace

int main(int argc, char** argv) { return write_or_check(argc, argv, document()); }
