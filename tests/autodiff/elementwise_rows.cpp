#include "autodiff/operations/binary.h"
#include "tests/autodiff/operation_rows.h"

namespace palimpsest {
namespace {

Tensor normal(Shape shape, std::uint64_t seed) {
  return Tensor::normal(shape, seed, 0, 1, DType::f64);
}

/// Away from zero on the positive side.
Tensor positive(Shape shape, std::uint64_t seed) {
  return Tensor::uniform(shape, seed, 0.25, 3, DType::f64);
}

/// A function of one variable at `input`.
OperationRow unary_row(const char* name, Var (*call)(const Var&), Tensor input, int order = 2) {
  return {name, "", {std::move(input)}, [call](auto xs) { return call(xs[0]); }, order};
}

}  // namespace

std::vector<OperationRow> elementwise_rows() {
  const Tensor x = normal({7, 5}, 1);
  const Tensor y = normal({7, 5}, 2);
  const Tensor p = positive({7, 5}, 3);
  const Tensor row = positive({5}, 4);
  const Tensor column = positive({7, 1}, 5);
  return {
      unary_row(
          "exp", [](const Var& v) { return exp(v); }, x),
      unary_row(
          "log", [](const Var& v) { return log(v); }, p),
      unary_row(
          "tanh", [](const Var& v) { return tanh(v); }, x),
      unary_row(
          "negate", [](const Var& v) { return -v; }, x),
      unary_row(
          "scale", [](const Var& v) { return 2.5 * v; }, x),
      unary_row(
          "shift", [](const Var& v) { return v - 2.5; }, x),
      unary_row(
          "subtract_from", [](const Var& v) { return 2.5 - v; }, x),
      unary_row(
          "divide_by", [](const Var& v) { return v / 2.5; }, x),
      unary_row(
          "step", [](const Var& v) { return step(v); }, x, 0),
      unary_row(
          "relu", [](const Var& v) { return relu(v); }, x),
      {"add", "row", {x, row}, [](auto xs) { return xs[0] + xs[1]; }},
      {"subtract", "column and row", {column, row}, [](auto xs) { return xs[0] - xs[1]; }},
      {"multiply", "equal shapes", {x, y}, [](auto xs) { return xs[0] * xs[1]; }},
      {"multiply", "with itself", {x}, [](auto xs) { return xs[0] * xs[0]; }},
      {"divide", "column", {x, column}, [](auto xs) { return xs[0] / xs[1]; }},
      {"divide", "of a number", {p}, [](auto xs) { return 2.0 / xs[0]; }},
      {"greater", "row", {x, row}, [](auto xs) { return greater(xs[0], xs[1]); }, 0},
  };
}

}  // namespace palimpsest
