#include "strategy/training/weight_average.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "autodiff/enumerators.h"
#include "strategy/training/element_update.h"
#include "strategy/training/settings.h"
#include "strategy/training/state_entries.h"

namespace palimpsest {
namespace {

constexpr const char* average_prefix = "average/";

ValueType average_type(const std::string& name, const Tensor& parameter) {
  if (!parameter.defined()) {
    throw ArgumentError("[weight average] parameter '" + name +
                        "' is empty; assign a tensor first");
  }
  if (!is_floating(parameter.dtype())) {
    throw DTypeError("[weight average] parameter '" + name + "' is " + to_string(parameter.type()) +
                     "; average floating tensors only");
  }
  return {parameter.shape(), compute_dtype(parameter.dtype())};
}

/// average ← average + weight·(parameter − average).
void move_average(const Tensor& average, const Tensor& parameter, double weight) {
  update_elements<0>(average, parameter.to(average.dtype()), {},
                     [&]<class T>(T* a, const T* p, const auto&, std::int64_t n) {
                       const T share = static_cast<T>(weight);
                       for (std::int64_t i = 0; i < n; ++i) a[i] += share * (p[i] - a[i]);
                     });
}

}  // namespace

WeightAverage WeightAverage::exponential(const ExponentialAverageOptions& options) {
  require_below_one("weight average", "decay", options.decay);
  using enum AverageStart;
  require_enumerator(options.start, {copy, corrected, warm_up}, "[weight average] start");
  return WeightAverage(options);
}

WeightAverage WeightAverage::equal() { return WeightAverage(std::nullopt); }

void WeightAverage::require_same(const NamedTensors& parameters) const {
  for (const auto& [name, parameter] : parameters) {
    const ValueType type = average_type(name, parameter);
    const auto known = averages_.find(name);
    if (known == averages_.end()) {
      throw ArgumentError("[weight average] parameter '" + name +
                          "' has no average; give the parameters of the first update");
    }
    if (known->second.type() == type) continue;
    const std::string message = "[weight average] parameter '" + name + "' is " +
                                to_string(parameter.type()) + ", but its average is " +
                                to_string(known->second.type()) + "; use one average per model";
    if (known->second.shape() != type.shape) throw ShapeError(message);
    throw DTypeError(message);
  }
  for (const auto& [name, average] : averages_) {
    if (parameters.contains(name)) continue;
    throw ArgumentError("[weight average] parameter '" + name +
                        "' is missing; give the parameters of the first update");
  }
}

void WeightAverage::update(const NamedTensors& parameters) {
  const bool is_first = updates_ == 0;
  if (is_first) {
    NamedTensors averages;
    for (const auto& [name, parameter] : parameters) {
      const ValueType type = average_type(name, parameter);
      averages.emplace(name, Tensor::zeros(type.shape, type.dtype));
    }
    averages_ = std::move(averages);
  } else {
    require_same(parameters);
  }
  double weight = 1;
  if (!exponential_) {
    weight = 1 / static_cast<double>(updates_ + 1);
  } else if (!is_first || exponential_->start == AverageStart::corrected) {
    const auto t = static_cast<double>(updates_);
    const bool is_warming = exponential_->start == AverageStart::warm_up;
    const double most = is_warming ? (1 + t) / (10 + t) : 1;
    weight = 1 - std::min(exponential_->decay, most);
  }
  for (const auto& [name, parameter] : parameters) {
    if (weight == 1) {
      copy_elements(parameter.to(averages_.at(name).dtype()), averages_.at(name));
    } else {
      move_average(averages_.at(name), parameter, weight);
    }
  }
  ++updates_;
}

void WeightAverage::require_updated() const {
  if (updates_ > 0) return;
  throw ArgumentError("[weight average] there is no average yet; call update() first");
}

Tensor WeightAverage::average_of(const Tensor& kept) const {
  Tensor average = kept.clone();
  if (exponential_ && exponential_->start == AverageStart::corrected) {
    const double sum = 1 - std::pow(exponential_->decay, static_cast<double>(updates_));
    update_elements<0>(average, kept, {},
                       [&]<class T>(T* a, const T*, const auto&, std::int64_t n) {
                         const T divisor = static_cast<T>(sum);
                         for (std::int64_t i = 0; i < n; ++i) a[i] /= divisor;
                       });
  }
  return average;
}

NamedTensors WeightAverage::averages() const {
  require_updated();
  NamedTensors averages;
  for (const auto& [name, kept] : averages_) averages.emplace(name, average_of(kept));
  return averages;
}

void WeightAverage::copy_to(const NamedTensors& parameters) const {
  require_updated();
  require_same(parameters);
  for (const auto& [name, parameter] : parameters) {
    write_elements(average_of(averages_.at(name)).to(parameter.dtype()), parameter,
                   "WeightAverage::copy_to");
  }
}

NamedTensors WeightAverage::state() const {
  NamedTensors state{{"updates", integer_entry(updates_)}};
  for (const auto& [name, kept] : averages_) state.emplace(average_prefix + name, kept);
  return state;
}

void WeightAverage::check_state(const NamedTensors& state) const {
  const StateEntries entries(state, "weight average");
  const bool is_empty = entries.count("updates") == 0;
  for (const auto& [entry, tensor] : state) {
    if (entry == "updates") continue;
    const bool is_average = entry.starts_with(average_prefix);
    const std::string name = is_average ? entry.substr(std::string(average_prefix).size()) : entry;
    if (!is_average || is_empty || (updates_ > 0 && !averages_.contains(name))) {
      entries.refuse(entry, "is unknown; load the state of an average of the same parameters");
    }
    if (!tensor.defined()) entries.refuse(entry, "is empty; load one that was saved by state()");
    if (tensor.dtype() != DType::f64 && tensor.dtype() != DType::f32) {
      throw DTypeError("[weight average] entry '" + entry + "' of the state is " +
                       to_string(tensor.type()) +
                       " and must be f64 or f32; load one that was "
                       "saved by state()");
    }
  }
  if (updates_ == 0 || is_empty) return;
  for (const auto& [name, kept] : averages_) entries.tensor(average_prefix + name, kept.type());
}

void WeightAverage::load_state(const NamedTensors& state) {
  check_state(state);
  NamedTensors averages;
  for (const auto& [entry, tensor] : state) {
    if (entry == "updates") continue;
    averages.emplace(entry.substr(std::string(average_prefix).size()), tensor.clone());
  }
  updates_ = StateEntries(state, "weight average").count("updates");
  averages_ = std::move(averages);
}

AveragedWeights::AveragedWeights(const WeightAverage& average, NamedTensors parameters)
    : parameters_(std::move(parameters)) {
  for (const auto& [name, parameter] : parameters_) own_.emplace(name, parameter.clone());
  try {
    average.copy_to(parameters_);
  } catch (...) {  // out of memory, perhaps after some parameters
    give_back();
    throw;
  }
}

AveragedWeights::~AveragedWeights() { give_back(); }

void AveragedWeights::give_back() const {
  for (const auto& [name, parameter] : parameters_) {
    write_elements(own_.at(name), parameter, "AveragedWeights");
  }
}

}  // namespace palimpsest
