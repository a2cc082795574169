#include "tests/programs/program_directions.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>
#include <vector>

#include "tests/programs/program_results.h"

namespace palimpsest {
namespace {

/// Whether numbers agree but for rounding of the coarsest dtype of the program. Second derivatives
/// cancel, so the scale is at least 1.
bool agree(const Tensor& found, const Tensor& expected, double tolerance) {
  double largest = 1;
  double most = 0;
  for (std::int64_t i = 0; i < expected.elements(); ++i) {
    const double x = found.at(i);
    const double y = expected.at(i);
    if (!std::isfinite(x) || !std::isfinite(y)) continue;  // an overflow of one of two formulas
    largest = std::max(largest, std::abs(y));
    most = std::max(most, std::abs(x - y));
  }
  return most <= tolerance * largest;
}

/// For `agree`; infinite if the program computes in a dtype of 16 bits.
double tolerance_on(const Tape& tape) {
  double tolerance = 1e-9;
  for (ValueId value = 0; value < tape.value_count(); ++value) {
    const DType dtype = tape.dtype(value);
    if (is_half(dtype)) return std::numeric_limits<double>::infinity();
    if (dtype == DType::f32) tolerance = 1e-3;
  }
  return tolerance;
}

/// The derivatives of a program by one of its values, along a direction.
struct Derivatives {
  std::vector<Tensor> products;  ///< the Hessian of the loss, and the Jacobian of the last value
  std::vector<Tensor> again;     ///< the first product in another way, and its gradient
};

Derivatives derivatives_of(const ProgramText& text, std::size_t of, bool is_copy,
                           double* tolerance) {
  Tape tape(text.seed % 2 == 0 ? nullptr : eager());
  const ComposedProgram program = compose(tape, text);
  *tolerance = tolerance_on(tape);
  const Var x = of < program.parameters.size() ? program.parameters[of] : program.last;
  const Var direction = is_copy ? identity(x) : x;
  const Var product = hvp(program.loss, x, direction);
  std::vector<Var> made{product};
  if (is_floating(program.last.dtype())) made.push_back(jvp(program.last, x, direction));
  const std::size_t products = made.size();
  const Var slope =
      sum(cast(gradient(program.loss, x), DType::f64) * cast(stop_gradient(direction), DType::f64));
  made.push_back(gradient(slope, x));
  made.push_back(gradient(sum(tanh(product)), x));
  evaluate(made);
  const std::vector<Tensor> tensors = tensors_of(made);
  const auto middle = tensors.begin() + static_cast<std::ptrdiff_t>(products);
  return {{tensors.begin(), middle}, {middle, tensors.end()}};
}

std::string described(const std::string& problem, const Tensor& found, const Tensor& expected) {
  std::ostringstream text;
  text << problem << "\n" << found << "\nnot\n" << expected;
  return text.str();
}

std::string problem_by(const ProgramText& text, std::size_t of) {
  double tolerance = 0;
  Derivatives expected;
  try {
    expected = derivatives_of(text, of, true, &tolerance);
  } catch (const ArgumentError&) {
    return {};  // an operation without a second derivative
  } catch (const BudgetError&) {
    return {};  // a loop's own budget does not suffice for its second derivative
  }
  const Derivatives found = derivatives_of(text, of, false, &tolerance);
  for (std::size_t i = 0; i < expected.products.size(); ++i) {
    if (same_numbers(found.products[i], expected.products[i])) continue;
    return described(i == 0 ? "a product with the Hessian is" : "a product with the Jacobian is",
                     found.products[i], expected.products[i]);
  }
  if (!agree(expected.products[0], expected.again[0], tolerance)) {
    return described("a product with the Hessian is", expected.products[0], expected.again[0]);
  }
  if (!agree(found.again[1], expected.again[1], tolerance)) {
    return described("a third derivative is", found.again[1], expected.again[1]);
  }
  return {};
}

}  // namespace

std::optional<std::string> problem_of_directions(const ProgramText& text) {
  std::size_t parameters = 0;
  bool has_last = false;
  {
    Tape tape;
    const ComposedProgram program = compose(tape, text);
    parameters = program.parameters.size();
    has_last = is_floating(program.last.dtype());
  }
  constexpr std::size_t most = 2;  // each takes as long as several cells
  const std::size_t choices = parameters + (has_last ? 1 : 0);
  for (std::size_t i = 0; i < std::min(most, choices); ++i) {
    const std::size_t of = (text.seed / 2 + choices - 1 - i) % choices;
    try {
      const std::string problem = problem_by(text, of);
      if (!problem.empty()) return "by value " + std::to_string(of) + ": " + problem;
    } catch (const std::exception& error) {
      return "by value " + std::to_string(of) + ": " + error.what();
    }
  }
  return {};
}

}  // namespace palimpsest
