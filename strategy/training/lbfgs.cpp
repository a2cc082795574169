#include "strategy/training/lbfgs.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <optional>
#include <set>
#include <utility>

#include "autodiff/number_text.h"
#include "autodiff/require_function.h"
#include "autodiff/storage_version.h"
#include "strategy/training/flat_vectors.h"
#include "strategy/training/line_search.h"
#include "strategy/training/settings.h"

namespace palimpsest {
namespace {

void require_valid(const LbfgsOptions& options) {
  const auto require_at_least = [](const char* setting, int value, int least) {
    require_setting(value >= least, "lbfgs", setting, value,
                    least == 0 ? "0 or more" : "a positive number");
  };
  require_at_least("memory", options.memory, 1);
  require_at_least("iterations", options.iterations, 0);
  require_at_least("evaluations", options.evaluations, 1);
  require_at_least("search_evaluations", options.search_evaluations, 1);
  require_not_negative("lbfgs", "gradient_tolerance", options.gradient_tolerance);
  require_not_negative("lbfgs", "decrease_tolerance", options.decrease_tolerance);
  require_setting(options.first_step > 0, "lbfgs", "first_step", options.first_step, positive);
  require_setting(options.decrease > 0 && options.decrease < options.curvature, "lbfgs", "decrease",
                  options.decrease, "a positive number below curvature, such as 1e-4");
  require_setting(options.curvature < 1, "lbfgs", "curvature", options.curvature,
                  "a number below 1, such as 0.9");
}

std::int64_t require_tensors(std::span<const Tensor> tensors) {
  std::int64_t elements = 0;
  std::set<const std::byte*> seen;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const std::string which = "[lbfgs] tensor " + std::to_string(i);
    if (!tensors[i].defined()) throw ArgumentError(which + " is empty; assign a tensor first");
    if (!is_floating(tensors[i].dtype())) {
      throw DTypeError(which + " is " + to_string(tensors[i].type()) + "; give floating tensors");
    }
    if (tensors[i].elements() > 0 && !seen.insert(tensors[i].raw()).second) {
      throw ArgumentError(which + " occurs twice; give each tensor once");
    }
    elements += tensors[i].elements();
  }
  return elements;
}

/// A step and the change of the gradient along it.
struct CurvaturePair {
  FlatVector step;
  FlatVector change;
  double product;  // of both
};

/// −H·gradient, where H is the inverse Hessian that the pairs build from a multiple of the identity
/// (algorithm 7.4).
void set_direction(std::span<double> direction, std::span<const double> gradient,
                   const std::deque<CurvaturePair>& pairs) {
  std::ranges::copy(gradient, direction.begin());
  multiply_by(direction, -1);
  if (pairs.empty()) return;
  std::vector<double> along(pairs.size());
  for (std::size_t i = pairs.size(); i-- > 0;) {
    along[i] = dot(pairs[i].step, direction) / pairs[i].product;
    add_scaled(direction, -along[i], pairs[i].change);
  }
  const CurvaturePair& last = pairs.back();
  multiply_by(direction, last.product / dot(last.change, last.change));
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const double back = dot(pairs[i].change, direction) / pairs[i].product;
    add_scaled(direction, along[i] - back, pairs[i].step);
  }
}

class LbfgsRun {
 public:
  LbfgsRun(std::span<const Tensor> tensors, const Objective& function, const LbfgsOptions& options)
      : tensors_(tensors), function_(function), options_(options) {
    require_valid(options);
    const auto n = static_cast<std::size_t>(require_tensors(tensors));
    for (FlatVector* vector : {&point_, &gradient_, &trial_, &trial_gradient_, &direction_}) {
      vector->resize(n);
    }
    gather(tensors, point_);
  }

  LbfgsResult run() {
    trial_ = point_;
    try {
      begin();
      while (!is_finished()) iterate();
    } catch (...) {
      move_to(point_);
      throw;
    }
    move_to(point_);
    return result_;
  }

 private:
  void begin() {
    result_.value = evaluate();
    result_.gradient_norm = norm_of(trial_gradient_);
    if (!std::isfinite(result_.value) || !std::isfinite(result_.gradient_norm)) {
      throw ArgumentError("[lbfgs] at the start the value is " + number_text(result_.value) +
                          " and the norm of the gradient " + number_text(result_.gradient_norm) +
                          "; start from another point");
    }
    std::swap(gradient_, trial_gradient_);
    watch();
  }

  bool is_finished() {
    if (stop_) {
      result_.stop = *stop_;
    } else if (result_.gradient_norm <= options_.gradient_tolerance) {
      result_.stop = LbfgsStop::gradient;
    } else if (result_.iterations >= options_.iterations) {
      result_.stop = LbfgsStop::iterations;
    } else if (result_.evaluations >= options_.evaluations) {
      result_.stop = LbfgsStop::evaluations;
    } else {
      return false;
    }
    return true;
  }

  void iterate() {
    set_direction(direction_, gradient_, pairs_);
    const double slope = dot(gradient_, direction_);
    const double first =
        pairs_.empty() ? std::min(1.0, options_.first_step / result_.gradient_norm) : 1.0;
    const auto line = [&](double step) {
      trial_ = point_;
      add_scaled(trial_, step, direction_);
      const double value = evaluate();
      return LinePoint{step, value, dot(trial_gradient_, direction_)};
    };
    // Rounding errors can make the direction one of ascent.
    const std::optional<LinePoint> found =
        slope < 0 ? strong_wolfe_step(line, {0, result_.value, slope}, first,
                                      {options_.decrease, options_.curvature},
                                      options_.search_evaluations)
                  : std::nullopt;
    if (found) {
      accept(*found);
    } else if (pairs_.empty()) {
      stop_ = LbfgsStop::line_search;
    } else {
      pairs_.clear();  // tries the gradient itself
    }
  }

  void accept(const LinePoint& point) {
    CurvaturePair pair = pairs_.size() == static_cast<std::size_t>(options_.memory)
                             ? std::move(pairs_.front())
                             : CurvaturePair{};
    if (pairs_.size() == static_cast<std::size_t>(options_.memory)) pairs_.pop_front();
    pair.step = direction_;
    multiply_by(pair.step, point.step);
    pair.change = trial_gradient_;
    add_scaled(pair.change, -1, gradient_);
    pair.product = dot(pair.step, pair.change);
    // The conditions make the product positive, but rounding errors may not.
    if (pair.product > 0) pairs_.push_back(std::move(pair));

    const double before = result_.value;
    std::swap(point_, trial_);
    std::swap(gradient_, trial_gradient_);
    result_.value = point.value;
    result_.gradient_norm = norm_of(gradient_);
    ++result_.iterations;
    watch();
    const double size = std::max(std::abs(before), std::abs(result_.value));
    if (options_.decrease_tolerance > 0 &&
        before - result_.value <= options_.decrease_tolerance * size) {
      stop_ = LbfgsStop::decrease;
    }
  }

  void move_to(const FlatVector& point) {
    for (const Tensor& tensor : tensors_) note_write(tensor, "minimize_lbfgs");
    scatter(point, tensors_);
  }

  /// The value at `trial_`; sets `trial_gradient_`.
  double evaluate() {
    move_to(trial_);
    ++result_.evaluations;
    const ValueAndGradients found = function_(tensors_);
    if (found.gradients.size() != tensors_.size()) {
      throw ArgumentError("[lbfgs] the function returned " +
                          std::to_string(found.gradients.size()) + " gradients for " +
                          std::to_string(tensors_.size()) + " tensors; return one for each");
    }
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      const Tensor& gradient = found.gradients[i];
      if (gradient.defined() && gradient.shape() == tensors_[i].shape()) continue;
      throw ShapeError("[lbfgs] gradient " + std::to_string(i) + " is " +
                       (gradient.defined() ? to_string(gradient.type()) : "empty") +
                       "; return one of the shape of its tensor, " +
                       to_string(tensors_[i].shape()));
    }
    gather(found.gradients, trial_gradient_);
    return found.value;
  }

  void watch() const {
    if (!options_.watch) return;
    options_.watch({result_.iterations, result_.value, result_.gradient_norm, result_.evaluations});
  }

  std::span<const Tensor> tensors_;
  const Objective& function_;
  const LbfgsOptions& options_;
  FlatVector point_;
  FlatVector gradient_;
  FlatVector trial_;
  FlatVector trial_gradient_;
  FlatVector direction_;
  std::deque<CurvaturePair> pairs_;
  std::optional<LbfgsStop> stop_;
  LbfgsResult result_;
};

std::vector<Tensor> values_of(const Gradients& gradients) {
  std::vector<Tensor> values;
  for (const auto& entry : gradients) values.push_back(entry.value);
  return values;
}

}  // namespace

std::string to_string(LbfgsStop stop) {
  switch (stop) {
    case LbfgsStop::gradient:
      return "the gradient is small enough";
    case LbfgsStop::decrease:
      return "the value hardly decreases any more";
    case LbfgsStop::iterations:
      return "the limit of iterations is reached";
    case LbfgsStop::evaluations:
      return "the limit of evaluations is reached";
    case LbfgsStop::line_search:
      return "the line search found no better point";
  }
  throw InternalError("a reason to stop has no name");
}

LbfgsResult minimize_lbfgs(const std::vector<Tensor>& tensors, const Objective& function,
                           const LbfgsOptions& options, Where where) {
  detail::require_function(function, "lbfgs", "the argument", "returns the value and its gradients",
                           where);
  return LbfgsRun(tensors, function, options).run();
}

LbfgsResult minimize_lbfgs(const std::function<Gradients()>& gradients, const LbfgsOptions& options,
                           Where where) {
  detail::require_function(gradients, "lbfgs", "the argument", "returns gradients", where);
  std::optional<Gradients> first = gradients();
  const std::vector<Tensor> tensors = values_of(*first);
  const auto function = [&](std::span<const Tensor>) {
    const Gradients found = first ? *std::exchange(first, std::nullopt) : gradients();
    const std::vector<Tensor> values = values_of(found);
    if (!std::ranges::equal(values, tensors, {}, &Tensor::raw, &Tensor::raw)) {
      throw ArgumentError(
          "[lbfgs] the gradients are of other tensors than at the start; record the same "
          "parameters, with the same tensors, at every call");
    }
    ValueAndGradients at{found.loss().item(), {}};
    for (const auto& entry : found) at.gradients.push_back(entry.gradient);
    return at;
  };
  return minimize_lbfgs(tensors, function, options, where);
}

}  // namespace palimpsest
