#include "autodiff/operations/random.h"

#include <limits>

#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/index.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/shape.h"
#include "tests/autodiff/operation_rows.h"

namespace palimpsest {
namespace {

/// x times numbers of x's dtype that `draw(tape)` makes.
template <class F>
Differentiable times(F draw) {
  return [draw](auto xs) { return xs[0] * cast(draw(xs[0].tape()), xs[0].dtype()); };
}

Var constant_of(Tape& tape, const std::vector<double>& numbers, const Shape& shape) {
  return tape.constant(Tensor::from(numbers, shape).to(DType::f32));
}

}  // namespace

std::vector<OperationRow> random_rows() {
  const auto numbers = [](Shape shape) { return Tensor::normal(shape, 51, 0, 1, DType::f64); };
  const Tensor five = numbers({5});
  // Concentrations for every method by which the distribution function is computed.
  const Tensor concentrations =
      Tensor::from(std::vector<double>{0.3, 0.9, 1, 2.5, 7, 40, 1.75}, {7});
  const Tensor others = Tensor::from(std::vector<double>{1.25, 0.5, 3}, {3});
  return {
      {"uniform",
       "exponential",
       {five},
       times([](Tape& tape) { return exponential(tape, {5}, 2); }),
       1},
      {"uniform", "laplace", {five}, times([](Tape& tape) { return laplace(tape, {5}, 1, 2); }), 1},
      {"uniform", "gumbel", {five}, times([](Tape& tape) { return gumbel(tape, {5}, 0, 0.5); }), 1},
      {"uniform", "cauchy", {five}, times([](Tape& tape) { return cauchy(tape, {5}); }), 1},
      {"uniform",
       "randint",
       {five},
       times([](Tape& tape) { return randint(tape, -3, 4, {5}); }),
       1},
      {"uniform",
       "Bernoulli with probabilities",
       {five},
       times([](Tape& tape) { return bernoulli(constant_of(tape, {0, 0.25, 0.5, 0.75, 1}, {5})); }),
       1},
      {"uniform",
       "categorical",
       {numbers({2})},
       times([](Tape& tape) { return categorical(constant_of(tape, {0, 1, 2, 2, 1, 0}, {2, 3})); }),
       1},
      {"truncated_normal",
       "times a value",
       {five},
       times([](Tape& tape) { return truncated_normal(tape, {5}, 1, 2, 0.5, 4); }),
       1},
      {"truncated_normal",
       "mean and deviation",
       {numbers({2, 3}), Tensor::from(std::vector<double>{0.5, 1.5, 2}, {3})},
       [](auto xs) { return truncated_normal(xs[0], xs[1], -0.5, 3); }},
      {"truncated_normal",
       "one bounded side",
       {numbers({4}), Tensor::from(std::vector<double>{2.0}, {})},
       [](auto xs) {
         return truncated_normal(xs[0], xs[1], 1, std::numeric_limits<double>::infinity());
       }},
      {"truncated_normal",
       "one mean for no numbers",
       {numbers({1}), numbers({0})},
       [](auto xs) { return truncated_normal(xs[0], xs[1], 0, 1); }},
      {"log_gamma_variate",
       "concentrations",
       {concentrations},
       [](auto xs) { return log_gamma_variate(xs[0]); }},
      {"log_gamma_variate", "gamma", {concentrations}, [](auto xs) { return gamma(xs[0]); }},
      {"log_gamma_variate",
       "one element",
       {Tensor::from(std::vector<double>{3.0}, {})},
       [](auto xs) { return gamma(xs[0]); }},
      {"log_gamma_variate", "no element", {numbers({0})}, [](auto xs) { return gamma(xs[0]); }},
      {"log_gamma_variate",
       "times a value",
       {five},
       times([](Tape& tape) { return gamma(tape, {5}, 0.5, 2); }),
       1},
      {"log_gamma_variate",
       "beta",
       {Tensor::from(std::vector<double>{0.75, 2}, {2, 1}), others},
       [](auto xs) { return beta(xs[0], xs[1]); }},
      {"log_gamma_variate", "dirichlet", {others}, [](auto xs) { return dirichlet(xs[0]); }},
      {"gamma_derivative",
       "of the distribution of a log_gamma_variate",
       {others},
       [](auto xs) { return gradient(sum(log_gamma_variate(xs[0])), xs[0]); }},
      {"gamma_derivative",
       "of the density of a log_gamma_variate",
       {others},
       [](auto xs) {
         const Var slope = gradient(sum(log_gamma_variate(xs[0])), xs[0]);
         return gradient(sum(slope * slope), xs[0]);
       },
       1,
       false},
      {"poisson",
       "times a value",
       {five},
       times([](Tape& tape) { return poisson(constant_of(tape, {0, 0.5, 3, 20, 400}, {5})); }),
       1},
      {"poisson",
       "large rates",
       {numbers({2})},
       times([](Tape& tape) { return poisson(constant_of(tape, {9e4, 2e5}, {2})); }),
       1,
       false},
      {"multinomial",
       "with replacement",
       {numbers({2, 4})},
       [](auto xs) {
         const Var weights = constant_of(xs[0].tape(), {0, 1, 2, 0.5, 3, 0, 0, 1}, {2, 4});
         return gather(concat({xs[0], xs[0]}, 1), 1,
                       concat({multinomial(weights, 5, true), multinomial(weights, 3, true)}, 1));
       }},
      {"multinomial",
       "without replacement",
       {numbers({3})},
       [](auto xs) {
         const Var weights = constant_of(xs[0].tape(), {1, 0, 2, 0.5}, {4});
         return gather(concat({xs[0], xs[0]}, 0), 0,
                       concat({multinomial(weights, 3), multinomial(weights, 3)}, 0));
       }},
      {"randperm", "permutation", {numbers({6, 2})}, [](auto xs) { return permutation(xs[0]); }},
      {"randperm",
       "permutation of columns",
       {numbers({2, 3})},
       [](auto xs) { return permutation(xs[0], -1); }},
      {"randperm", "of nothing", {numbers({0})}, [](auto xs) { return permutation(xs[0]); }},
      {"randperm",
       "i32, several parts",
       {numbers({600})},
       times([](Tape& tape) { return randperm(tape, 600, DType::i32); }),
       1},
      {"uniform",
       "times a value",
       {numbers({3, 5})},
       [](auto xs) { return xs[0] * uniform(xs[0].tape(), {3, 5}, -1, 2); },
       1},
      {"normal",
       "times a value",
       {numbers({7})},
       [](auto xs) { return xs[0] * normal(xs[0].tape(), {7}, 1, 2); },
       1},
      {"bernoulli",
       "times a value",
       {numbers({7})},
       [](auto xs) { return xs[0] * bernoulli(xs[0].tape(), {7}, 0.5); },
       1},
      {"dropout",
       "of a square",
       {numbers({4, 6})},
       [](auto xs) { return dropout(xs[0] * xs[0], 0.4); }},
      {"dropout", "many", {numbers({3000})}, [](auto xs) { return dropout(xs[0], 0.9); }, 1},
      {"dropout", "scalar", {numbers({})}, [](auto xs) { return dropout(xs[0], 0.1); }},
  };
}

}  // namespace palimpsest
