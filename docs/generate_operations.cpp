// Writes the table of operations. Usage: generate_operations [--check] FILE.
#include <iostream>
#include <span>
#include <sstream>
#include <string>

#include "autodiff/operation.h"
#include "docs/cost_table.h"
#include "docs/generated_document.h"
#include "docs/missing_functions.h"

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

/// A row for each reason. Names are shown as code, separated by commas.
void write_missing(std::ostringstream& text, std::span<const palimpsest::MissingFunctions> rows) {
  text << "\n| there | here |\n|---|---|\n";
  for (const auto& [names, reason] : rows) {
    text << "| `";
    for (const char c : names) text << (c == ' ' ? "`, `" : std::string(1, c));
    text << "` | " << cell(reason) << " |\n";
  }
}

std::string document(const std::string& costs) {
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
  text
      << "\n## Cost\n\n"
         "Floating-point operations of functions that are not elementwise or record several nodes, "
         "by the sizes of their operands.\n"
         "Small terms are left out. The backward part is that of all operands. It reads values, "
         "which a plan keeps or recomputes;\n"
         "bytes are those of f32. A transcendental function counts as 10 to 30 operations. "
         "[The\nreference](reference/elementwise.md) states the costs of the other elementwise "
         "functions. `generate_operations` records\n"
         "each function with several sizes and adds the costs of the nodes, which planners use "
         "too.\n\n"
         "| function | operands | operations | in the backward part | which reads "
         "|\n|---|---|---|---|---|\n"
      << costs
      << "\n## Functions of other libraries\n\n"
         "These lists compare the functions above, and those composed of them, with PyTorch's "
         "differentiable functions on CPUs\n"
         "(the operators that its tests know, version 2.15) and with jax.numpy (version 0.10). A "
         "function that is not in a list\n"
         "exists here by its name. The right column says what to write instead, or why there is "
         "none.\n\n"
         "### PyTorch\n";
  write_missing(text, palimpsest::missing_of_pytorch);
  text << "\n### jax.numpy\n";
  write_missing(text, palimpsest::missing_of_jax);
  return text.str();
}

}  // namespace

int main(int argc, char** argv) {
  const palimpsest::CostTable costs = palimpsest::cost_table();
  for (const std::string& problem : costs.problems) std::cerr << problem << '\n';
  const int written = write_or_check(argc, argv, document(costs.rows));
  return costs.problems.empty() ? written : 1;
}
