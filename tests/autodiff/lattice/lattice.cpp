#include "tests/autodiff/lattice/lattice.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <sstream>

#include "tests/autodiff/lattice/difference_quotients.h"
#include "tests/autodiff/lattice/lattice_rows.h"
#include "tests/autodiff/lattice/neighbours.h"
#include "tests/autodiff/lattice/recorded_row.h"

namespace palimpsest::lattice {
namespace {

using Elements = std::vector<std::int64_t>;

/// Steps of the quotients, from the most accurate to those that see branches close to the point.
constexpr int steps[] = {-16, -28, -40};

/// f32 cannot hold terms that are much larger.
constexpr double most_of_f32 = double{std::numeric_limits<float>::max()} / 16;

double step_of(double x, int exponent) {
  return std::isfinite(x) ? std::ldexp(std::max(1.0, std::abs(x)), exponent) : 0;
}

/// The checks of one row, order and dtype at one set of points.
class Check {
 public:
  Check(const OperationRow& row, const Points& points, DType dtype, int order, const Limits& limits,
        Findings& findings)
      : row_(row),
        points_(points),
        dtype_(dtype),
        order_(order),
        few_(order == 1 ? limits.elements : limits.second),
        findings_(findings),
        name_(row.operation + ": " + row.label),
        wide_(converted(points.inputs, DType::f64)) {}

  void run() {
    RecordedRow recorded(row_, points_.inputs, order_);
    if (!recorded.is_differentiable()) return;
    is_elementwise_ = recorded.is_elementwise();
    if (points_.only_elementwise && (!is_elementwise_ || row_.operation.ends_with("_adjoint"))) {
      return;
    }
    here_ = RecordedRow(row_, wide_, order_).values();
    if (order_ == 2 && !has_value()) return;  // outside of the domain
    weights_ = weights(here_.size(), 5);
    for (std::size_t k = 0; k < here_.size(); ++k) {
      if (std::isfinite(here_[k])) continue;
      weights_[k] = 0;
      has_others_ = true;
    }
    derivatives_ = recorded.derivatives(weights_);
    for (const Numbers& some : derivatives_) {
      for (const double each : some) {
        if (std::isfinite(each)) largest_ = std::max(largest_, std::abs(each));
      }
    }
    place_ = 0;
    for (input_ = 0; input_ < wide_.size(); ++input_) {
      if (!is_floating(wide_[input_].dtype())) continue;
      is_elementwise_ ? check_all() : check_some();
      ++place_;
    }
  }

 private:
  bool has_value() const {
    return !std::ranges::all_of(RecordedRow(row_, wide_, 1).values(),
                                [](double each) { return std::isnan(each); });
  }
  const Numbers& derivatives() const { return derivatives_[place_]; }
  double x(std::int64_t i) const { return wide_[input_].at(i); }

  /// Elements of an elementwise row do not affect each other, so all are moved at once.
  void check_all() {
    Elements all(derivatives().size());
    std::iota(all.begin(), all.end(), 0);
    const Elements finite = selected(all, [&](double each) { return std::isfinite(each); });
    const Elements infinite = selected(all, [&](double each) { return std::isinf(each); });
    std::vector<std::vector<Hull>> hulls;
    for (const int exponent : steps) hulls.push_back(hulls_near(finite, exponent));
    const std::vector<Hull> far = hulls_far(infinite);
    for (const std::int64_t i : finite) {
      const auto k = static_cast<std::size_t>(i);
      if (weights_[k] == 0) continue;
      judge({i}, {hulls[0][k], hulls[1][k], hulls[2][k]});
    }
    for (const std::int64_t i : infinite) {
      const auto k = static_cast<std::size_t>(i);
      if (weights_[k] != 0) judge({i}, {far[k]});
    }
  }

  /// Moves some elements one by one, or together with those that are equal.
  void check_some() {
    const auto count = static_cast<std::int64_t>(derivatives().size());
    const std::int64_t few = std::min<std::int64_t>(count, few_);
    for (std::int64_t one = 0; one < few; ++one) {
      const std::int64_t i = (one * count / few + points_.round) % count;
      if (std::isnan(x(i))) continue;
      if (std::isinf(x(i))) {
        judge({i}, {sum_of(hulls_far({i}))});
        continue;
      }
      const Elements moved = shares_ties(name_) ? equal_to(x(i)) : Elements{i};
      std::vector<Hull> hulls;
      for (const int exponent : steps) {
        hulls.push_back(sum_of(hulls_near(moved, exponent)));
        if (accepts(hulls.back(), derivative_by(moved))) break;
      }
      judge(moved, hulls);
    }
  }

  template <class Condition>
  Elements selected(const Elements& all, Condition condition) const {
    Elements some;
    std::ranges::copy_if(all, std::back_inserter(some),
                         [&](std::int64_t i) { return condition(x(i)); });
    return some;
  }

  /// The elements that are equal, also but for the last digits.
  Elements equal_to(double to) const {
    Elements all(derivatives().size());
    std::iota(all.begin(), all.end(), 0);
    return selected(all,
                    [&](double each) { return std::abs(each - to) <= step_of(to, steps[0]) / 16; });
  }

  double derivative_by(const Elements& elements) const {
    double total = 0;
    for (const std::int64_t i : elements) total += derivatives()[static_cast<std::size_t>(i)];
    return total;
  }

  /// The values after f was applied to elements of the input.
  template <class Function>
  Numbers values_after(const Elements& elements, Function f) const {
    std::vector<Tensor> inputs(wide_);
    inputs[input_] = wide_[input_].clone();
    double* const moved = inputs[input_].data<double>().data();
    for (const std::int64_t i : elements) moved[i] = f(moved[i]);
    return RecordedRow(row_, inputs, order_).values();
  }

  /// A hull for each output. None is known where the shape depends on the values.
  std::vector<Hull> hulls_near(const Elements& elements, int exponent) const {
    std::vector<Hull> hulls(here_.size());
    if (elements.empty()) return hulls;
    Numbers values[5];
    for (int at = 0; at < 5; ++at) {
      values[at] = at == 2 ? here_ : values_after(elements, [&](double each) {
        return each + (at - 2) * 0.5 * step_of(each, exponent);
      });
      if (values[at].size() != here_.size())
        return std::vector<Hull>(here_.size(), {.known = false});
    }
    for (std::size_t k = 0; k < here_.size(); ++k) {
      const double own = x(is_elementwise_ ? static_cast<std::int64_t>(k) : elements[0]);
      hulls[k] = hull_of({values[0][k], values[1][k], here_[k], values[3][k], values[4][k]},
                         step_of(own, exponent), weights_[k]);
    }
    return hulls;
  }

  /// At an infinity, the derivative of a finite value lies between 0 and the slope far out.
  std::vector<Hull> hulls_far(const Elements& elements) const {
    std::vector<Hull> hulls(here_.size());
    if (elements.empty()) return hulls;
    constexpr double distance = 1 << 30;
    const auto at = [&](double far) {
      return values_after(elements, [&](double each) { return std::copysign(far, each); });
    };
    const Numbers near = at(distance);
    const Numbers twice = at(2 * distance);
    if (near.size() != here_.size() || twice.size() != here_.size()) {
      return std::vector<Hull>(here_.size(), {.known = false});
    }
    for (std::size_t k = 0; k < here_.size(); ++k) {
      if (weights_[k] == 0) continue;
      const double own = x(is_elementwise_ ? static_cast<std::int64_t>(k) : elements[0]);
      const double slope = (twice[k] - near[k]) / std::copysign(distance, own) * weights_[k];
      hulls[k] = {std::min(slope, 0.0), std::max(slope, 0.0), std::abs(slope),
                  std::isfinite(slope)};
    }
    return hulls;
  }

  static Hull sum_of(const std::vector<Hull>& hulls) {
    Hull total;
    for (const Hull& each : hulls) total.add(each);
    return total;
  }

  bool accepts(Hull hull, double derivative) const {
    if (dtype_ == DType::f64) return hull.contains(derivative, 1e-6);
    if (hull.high > most_of_f32) hull.high = std::numeric_limits<double>::infinity();
    if (hull.low < -most_of_f32) hull.low = -std::numeric_limits<double>::infinity();
    if (!is_elementwise_) hull.size += largest_;  // its terms have rounding errors of this size
    return hull.contains(derivative, 1e-3);
  }

  /// Compares the derivative by the sum of `elements` with the hulls of several steps.
  void judge(const Elements& elements, const std::vector<Hull>& hulls) {
    const double derivative = derivative_by(elements);
    const bool is_known = std::ranges::any_of(hulls, [&](const Hull& each) {
      const bool is_bounded = std::isfinite(each.low) || std::isfinite(each.high);
      return each.known && is_bounded && (dtype_ == DType::f64 || each.size < most_of_f32);
    });
    // Other elements without a value may reach this one.
    const bool is_reached = has_others_ && !is_elementwise_ && !std::isfinite(derivative);
    if (!is_known || is_reached || leaves_range(elements, derivative)) {
      ++findings_.unknown;
      return;
    }
    ++findings_.derivatives;
    findings_.checked.insert(row_.operation);
    findings_.rows.insert(name_);
    if (std::ranges::any_of(
            hulls, [&](const Hull& hull) { return hull.known && accepts(hull, derivative); })) {
      return;
    }
    const Found found = found_at(elements[0], derivative);
    if (const Convention* convention = convention_of(name_, found); convention != nullptr) {
      ++findings_.conventions;
      findings_.used.insert(convention->statement);
      return;
    }
    if (is_near_another(elements, derivative) || is_badly_conditioned(derivative, hulls[0])) {
      ++findings_.unstable;
      return;
    }
    complain(found, elements[0], hulls[0]);
  }

  Found found_at(std::int64_t i, double derivative) const {
    Found found{points_.pattern, dtype_, order_, input_, x(i), {}, derivative};
    if (is_elementwise_) {
      found.derivative /= weights_[static_cast<std::size_t>(i)];
      for (const Tensor& input : wide_) found.at.push_back(input.at(i));
    }
    return found;
  }

  /// Whether inputs that differ by a few units in the last place have this derivative.
  bool is_near_another(const Elements& elements, double derivative) {
    if (!std::isfinite(derivative)) return false;
    if (!neighbours_) neighbours_.emplace(row_, wide_, dtype_, order_, weights_, is_elementwise_);
    return neighbours_->surround(place_, elements, derivative);
  }

  /// Whether f32 cannot hold the terms of the derivative.
  bool leaves_range(const Elements& elements, double derivative) {
    if (dtype_ == DType::f64 || std::isfinite(derivative)) return false;
    if (exact_.empty()) exact_ = RecordedRow(row_, wide_, order_).derivatives(weights_);
    double most = 0;
    const auto see = [&](double each) {
      most = std::max(most, std::isnan(each) ? 0 : std::abs(each));
    };
    if (is_elementwise_) {
      see(exact_[place_][static_cast<std::size_t>(elements[0])]);
      return most > most_of_f32;
    }
    for (const Numbers& some : exact_) std::ranges::for_each(some, see);
    return most > 1e30;  // since sums and products leave the range before
  }

  /// Whether the rounding errors of the row's factors explain the distance from the hull.
  bool is_badly_conditioned(double derivative, const Hull& hull) const {
    const double condition = condition_of(condition_of(name_), wide_[0]);
    const double epsilon = dtype_ == DType::f64 ? std::numeric_limits<double>::epsilon()
                                                : double{std::numeric_limits<float>::epsilon()};
    const double error = 16 * epsilon * std::pow(condition, order_);
    return error >= 1 || hull.contains(derivative, error * (1 + largest_));
  }

  void complain(const Found& found, std::int64_t i, const Hull& hull) {
    std::ostringstream text;
    text.precision(9);
    text << name_ << ", " << points_.pattern << ", " << name_of(dtype_) << ", order " << order_
         << ", by element " << i << " of input " << input_ << ", which is " << found.x;
    for (const double each : found.at) text << " | " << each;
    text << ": " << found.derivative << " is not in [" << hull.low << ", " << hull.high << "]";
    findings_.complaints.push_back(text.str());
  }

  const OperationRow& row_;
  const Points& points_;
  DType dtype_;
  int order_;
  int few_;
  Findings& findings_;
  std::string name_;
  std::vector<Tensor> wide_;
  std::size_t input_ = 0;
  std::size_t place_ = 0;  ///< of the input among the floating ones
  Numbers here_;
  Numbers weights_;
  std::vector<Numbers> derivatives_;
  std::vector<Numbers> exact_;  ///< the same in f64
  std::optional<Neighbours> neighbours_;
  double largest_ = 0;
  bool has_others_ = false;
  bool is_elementwise_ = false;
};

}  // namespace

void check(const OperationRow& row, const Points& points, DType dtype, const Limits& limits,
           Findings& findings) {
  std::int64_t elements = 0;
  for (const Tensor& input : points.inputs) elements += input.elements();
  if (elements > limits.most_elements) return;
  try {
    if (row.order == 0) {
      RecordedRow(row, points.inputs, 1).values();
      findings.checked.insert(row.operation);
      findings.rows.insert(row.operation + ": " + row.label);
    }
    for (int order = 1; order <= row.order; ++order) {
      Check(row, points, dtype, order, limits, findings).run();
    }
  } catch (const ArgumentError&) {
    ++findings.refused;
    findings.refusing.insert(row.operation);
  }
}

}  // namespace palimpsest::lattice
