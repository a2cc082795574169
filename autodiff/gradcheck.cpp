#include "autodiff/gradcheck.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "autodiff/gradient.h"
#include "autodiff/number_text.h"
#include "autodiff/require_function.h"

namespace palimpsest {
namespace {

/// A function of the inputs with several results.
using Function = std::function<std::vector<Var>(std::span<const Var>)>;

/// A random tensor of y's shape, different for every `seed`.
Tensor direction(const ValueType& type, std::uint64_t seed) {
  return Tensor::normal(type.shape, seed, 0, 1, DType::f64);
}

/// Weights for the results of a function: one fixed random tensor each.
std::vector<Tensor> weights_of(std::span<const Var> ys, std::uint64_t seed) {
  std::vector<Tensor> weights;
  for (const Var& y : ys) {
    if (y.dtype() != DType::f64) {
      throw DTypeError("gradcheck",
                       "the function returns " + to_string(y.type()) +
                           "; central differences need f64, so compute in f64",
                       y.tape().where(y.node()));
    }
    weights.push_back(direction(y.type(), seed + weights.size()));
  }
  return weights;
}

std::vector<Var> differentiated(std::span<const Var> xs) {
  std::vector<Var> floating;
  std::copy_if(xs.begin(), xs.end(), std::back_inserter(floating),
               [](const Var& x) { return is_floating(x.dtype()); });
  return floating;
}

/// The gradients of the weighted sum of f's results, as a function of the same inputs.
Function gradients_of(Function f, std::uint64_t seed, const Where& where) {
  return [f = std::move(f), seed, where](std::span<const Var> xs) {
    const std::vector<Var> ys = f(xs);
    std::vector<Var> seeds;
    for (const Tensor& weights : weights_of(ys, seed)) {
      seeds.push_back(ys[0].tape().constant(weights, {}, where));
    }
    return vjp(ys, differentiated(xs), seeds, where);
  };
}

struct Products {
  double sum = 0;
  double magnitude = 0;  ///< the sum of the products' absolute values

  void add(const Tensor& a, const Tensor& b) {
    const auto left = a.data<double>();
    const auto right = b.data<double>();
    for (std::size_t i = 0; i < left.size(); ++i) {
      sum += left[i] * right[i];
      magnitude += std::abs(left[i] * right[i]);
    }
  }
};

/// Records `f` on a new tape, always with the same seed, so that random operations repeat.
std::vector<Tensor> evaluate(const Function& f, std::span<const Tensor> inputs,
                             const GradcheckOptions& options, const Where& where) {
  Tape tape;
  tape.set_seed(options.seed);
  std::vector<Var> xs;
  for (const Tensor& input : inputs) {
    xs.push_back(is_floating(input.dtype()) ? tape.parameter(input, {}, where)
                                            : tape.constant(input, {}, where));
  }
  std::vector<Tensor> values;
  for (const Var& y : f(xs)) values.push_back(y.value());
  return values;
}

class Checker {
 public:
  Checker(std::span<const Tensor> inputs, const GradcheckOptions& options, const Where& where)
      : inputs_(inputs.begin(), inputs.end()), options_(options), where_(where) {}

  /// Compares the recorded gradients of the weighted sum of f's results with its central
  /// differences.
  void check(const Function& f, int order) {
    const std::uint64_t weight_seed = options_.seed + 1000 * static_cast<std::uint64_t>(order);
    const std::vector<Tensor> gradients =
        evaluate(gradients_of(f, weight_seed, where_), inputs_, options_, where_);
    std::size_t number = 0;
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      if (!is_floating(inputs_[i].dtype())) continue;
      for (int d = 0; d < options_.directions; ++d) {
        const Tensor v = direction(
            inputs_[i].type(), options_.seed + 1000000 + 1000 * i + static_cast<std::uint64_t>(d));
        Products analytic;
        analytic.add(gradients[number], v);
        const Products above = shifted(f, i, v, options_.step, weight_seed);
        const Products below = shifted(f, i, v, -options_.step, weight_seed);
        const double numeric = (above.sum - below.sum) / (2 * options_.step);
        // Rounding limits the accuracy of differences. Small derivatives of large values, and
        // zeros, are therefore compared relative to the values.
        const double scale =
            std::max({analytic.magnitude, std::abs(numeric), 1e-3 * above.magnitude, 1e-3});
        judge(order, i, d, analytic.sum, numeric, scale);
      }
      ++number;
    }
  }

  const GradcheckResult& result() const { return result_; }

 private:
  Products shifted(const Function& f, std::size_t input, const Tensor& v, double step,
                   std::uint64_t weight_seed) const {
    std::vector<Tensor> moved = inputs_;
    moved[input] = inputs_[input].clone();
    const auto data = moved[input].data<double>();
    for (std::size_t k = 0; k < data.size(); ++k) data[k] += step * v.data<double>()[k];
    const std::vector<Tensor> values = evaluate(f, moved, options_, where_);
    Products products;
    for (std::size_t k = 0; k < values.size(); ++k) {
      products.add(values[k], direction(values[k].type(), weight_seed + k));
    }
    return products;
  }

  void judge(int order, std::size_t input, int direction, double analytic, double numeric,
             double scale) {
    const double error = std::abs(analytic - numeric) / scale;
    const double tolerance = options_.tolerance * std::pow(10.0, order - 1);
    if (!(error <= tolerance)) result_.passed = false;  // NaN does not pass
    if (std::isnan(result_.worst) || error <= result_.worst) return;
    char text[200];
    std::snprintf(text, sizeof text,
                  "order %d, input %zu, direction %d: recorded %.12g, by differences %.12g "
                  "(error %.3g, tolerance %.3g)",
                  order, input, direction, analytic, numeric, error, tolerance);
    result_.worst = error;
    result_.message = text;
  }

  std::vector<Tensor> inputs_;
  GradcheckOptions options_;
  Where where_;
  GradcheckResult result_{.passed = true, .worst = 0, .message = {}};
};

}  // namespace

GradcheckResult gradcheck(const Differentiable& f, std::span<const Tensor> inputs,
                          const GradcheckOptions& options, Where where) {
  detail::require_function(f, "gradcheck", "the argument", "records a value", where);
  for (const Tensor& input : inputs) {
    if (is_floating(input.dtype()) && input.dtype() != DType::f64) {
      throw DTypeError("gradcheck",
                       "an input is " + to_string(input.type()) +
                           "; central differences need f64, convert it with to()",
                       where);
    }
  }
  if (options.order < 1 || options.directions < 1 || !(options.step > 0)) {
    throw ArgumentError("gradcheck",
                        "order is " + std::to_string(options.order) + ", directions is " +
                            std::to_string(options.directions) + " and step is " +
                            number_text(options.step) + "; give positive numbers",
                        where);
  }
  Checker checker(inputs, options, where);
  Function function = [&](std::span<const Var> xs) { return std::vector<Var>{f(xs)}; };
  for (int order = 1; order <= options.order && checker.result().passed; ++order) {
    checker.check(function, order);
    function =
        gradients_of(function, options.seed + 1000 * static_cast<std::uint64_t>(order), where);
  }
  return checker.result();
}

}  // namespace palimpsest
