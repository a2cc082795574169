#include "strategy/training/optimizer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "autodiff/parallel.h"
#include "strategy/training/gradient_sums.h"

namespace palimpsest {
namespace {

DType state_dtype(DType parameter) { return parameter == DType::f64 ? DType::f64 : DType::f32; }

constexpr const char* not_negative = "0 or more";
constexpr const char* a_share = "0 or more and less than 1";

void require(bool holds, const char* optimizer, const char* setting, double value,
             const char* allowed) {
  if (holds) return;
  throw ArgumentError("[" + std::string(optimizer) + "] " + setting + " is " +
                      std::to_string(value) + "; give " + allowed);
}

std::string described(const Gradients::Entry& entry, std::size_t position) {
  return entry.name.empty() ? std::to_string(position) : "'" + entry.name + "'";
}

/// Throws `ArgumentError` where a step would update a tensor twice.
void require_distinct(std::span<const Gradients::Entry> entries) {
  std::map<const std::byte*, std::size_t> seen;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Tensor& value = entries[i].value;
    if (value.elements() == 0) continue;
    const auto [first, is_new] = seen.emplace(value.raw(), i);
    if (is_new) continue;
    throw ArgumentError("[optimizer] parameters " +
                        described(entries[first->second], first->second) + " and " +
                        described(entries[i], i) + " are one tensor, " + to_string(value.type()) +
                        ", so a step would update it twice; record it once and use its Var twice");
  }
}

}  // namespace

void Optimizer::set_learning_rate(double rate) {
  require(rate >= 0, "optimizer", "the learning rate", rate, not_negative);
  learning_rate_ = rate;
}

void Optimizer::check(const Gradients& gradients) const {
  const auto entries = gradients.entries();
  if (entries.size() != types_.size()) {
    throw ArgumentError("[optimizer] " + std::to_string(entries.size()) +
                        " parameters given after steps with " + std::to_string(types_.size()) +
                        "; use one optimizer per model");
  }
  for (std::size_t i = 0; i < entries.size(); ++i) {
    if (entries[i].gradient.type() == types_[i]) continue;
    throw ArgumentError("[optimizer] parameter " + std::to_string(i) + " was " +
                        to_string(types_[i]) + " and is now " +
                        to_string(entries[i].gradient.type()) +
                        "; record parameters in the same order at every step");
  }
}

void Optimizer::step(const Gradients& gradients) {
  if (gradients.report().overflowed) return;
  const auto entries = gradients.entries();
  if (steps_ == 0) {
    types_.clear();
    state_.clear();
    require_distinct(entries);
    for (const auto& entry : entries) {
      const ValueType type = entry.gradient.type();
      types_.push_back(type);
      state_.emplace_back();
      for (std::size_t i = 0; i < states_; ++i) {
        state_.back().push_back(Tensor::zeros(type.shape, state_dtype(type.dtype)));
      }
    }
  }
  check(gradients);
  ++steps_;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    update_tensor(entries[i].value, entries[i].gradient, state_[i]);
  }
}

void Optimizer::update_tensor(Tensor parameter, const Tensor& gradient,
                              std::span<const Tensor> state) const {
  const DType dtype = state_dtype(parameter.dtype());
  const Tensor wide = parameter.to(dtype);
  const Tensor wide_gradient = gradient.to(dtype);
  visit_floating(dtype, [&]<class T>(T) {
    parallel_chunks(wide.elements(), grain_for(8), [&](std::int64_t begin, std::int64_t end) {
      std::array<T*, 2> rows{};
      for (std::size_t i = 0; i < state.size(); ++i)
        rows[i] = state[i].template data<T>().data() + begin;
      update(wide.template data<T>().data() + begin,
             wide_gradient.template data<T>().data() + begin,
             std::span<T* const>(rows.data(), state.size()), end - begin);
    });
  });
  if (dtype != parameter.dtype()) {
    const Tensor narrow = wide.to(parameter.dtype());
    std::copy_n(narrow.raw(), narrow.bytes(), parameter.raw());
  }
}

namespace {

class Sgd final : public Optimizer {
 public:
  explicit Sgd(SgdOptions options)
      : Optimizer(options.learning_rate, options.momentum != 0 ? 1 : 0), options_(options) {
    require(options.momentum >= 0 && options.momentum < 1, "sgd", "momentum", options.momentum,
            a_share);
    require(options.weight_decay >= 0, "sgd", "weight_decay", options.weight_decay, not_negative);
  }

 private:
  template <class T>
  void apply(T* p, const T* g, std::span<T* const> state, std::int64_t n) const {
    const T rate = static_cast<T>(learning_rate());
    const T momentum = static_cast<T>(options_.momentum);
    const T decay = static_cast<T>(options_.weight_decay);
    for (std::int64_t i = 0; i < n; ++i) {
      T direction = g[i] + decay * p[i];
      if (!state.empty()) direction = state[0][i] = momentum * state[0][i] + direction;
      p[i] -= rate * direction;
    }
  }
  void update(float* p, const float* g, std::span<float* const> state,
              std::int64_t n) const override {
    apply(p, g, state, n);
  }
  void update(double* p, const double* g, std::span<double* const> state,
              std::int64_t n) const override {
    apply(p, g, state, n);
  }

  SgdOptions options_;
};

class Adam final : public Optimizer {
 public:
  Adam(AdamOptions options, bool decoupled)
      : Optimizer(options.learning_rate, 2), options_(options), decoupled_(decoupled) {
    require(options.beta1 >= 0 && options.beta1 < 1, "adam", "beta1", options.beta1, a_share);
    require(options.beta2 >= 0 && options.beta2 < 1, "adam", "beta2", options.beta2, a_share);
    require(options.epsilon >= 0, "adam", "epsilon", options.epsilon, not_negative);
    require(options.weight_decay >= 0, "adam", "weight_decay", options.weight_decay, not_negative);
  }

 private:
  template <class T>
  void apply(T* p, const T* g, std::span<T* const> state, std::int64_t n) const {
    const double step = static_cast<double>(steps());
    const T beta1 = static_cast<T>(options_.beta1);
    const T beta2 = static_cast<T>(options_.beta2);
    const T rate = static_cast<T>(learning_rate() / (1 - std::pow(options_.beta1, step)));
    const T scale = static_cast<T>(1 / std::sqrt(1 - std::pow(options_.beta2, step)));
    const T epsilon = static_cast<T>(options_.epsilon);
    const T decay = static_cast<T>(options_.weight_decay);
    const T shrink = static_cast<T>(1 - learning_rate() * options_.weight_decay);
    T* mean = state[0];
    T* square = state[1];
    for (std::int64_t i = 0; i < n; ++i) {
      const T gradient = decoupled_ ? g[i] : g[i] + decay * p[i];
      if (decoupled_) p[i] *= shrink;
      mean[i] = beta1 * mean[i] + (1 - beta1) * gradient;
      square[i] = beta2 * square[i] + (1 - beta2) * gradient * gradient;
      p[i] -= rate * mean[i] / (std::sqrt(square[i]) * scale + epsilon);
    }
  }
  void update(float* p, const float* g, std::span<float* const> state,
              std::int64_t n) const override {
    apply(p, g, state, n);
  }
  void update(double* p, const double* g, std::span<double* const> state,
              std::int64_t n) const override {
    apply(p, g, state, n);
  }

  AdamOptions options_;
  bool decoupled_;
};

}  // namespace

std::unique_ptr<Optimizer> sgd(SgdOptions options) { return std::make_unique<Sgd>(options); }
std::unique_ptr<Optimizer> adam(AdamOptions options) {
  return std::make_unique<Adam>(options, false);
}
std::unique_ptr<Optimizer> adamw(AdamWOptions options) {
  const auto& [learning_rate, beta1, beta2, epsilon, weight_decay] = options;
  return std::make_unique<Adam>(AdamOptions{learning_rate, beta1, beta2, epsilon, weight_decay},
                                true);
}

double clip_by_norm(std::span<const Tensor> gradients, double most) {
  require(most > 0, "clip_by_norm", "the largest norm", most, "a positive number");
  double square = 0;
  for (const Tensor& gradient : gradients) {
    square += sum_of_squares(gradient.to(compute_dtype(gradient.dtype())));
  }
  const double norm = std::sqrt(square);
  if (!(norm > most)) return norm;
  std::set<const std::byte*> scaled;  // parameters with the same adjoint share its storage
  for (const Tensor& gradient : gradients) {
    if (!scaled.insert(gradient.raw()).second) continue;
    const Tensor wide = gradient.to(compute_dtype(gradient.dtype()));
    divide(wide, norm / most);
    const Tensor narrow = wide.to(gradient.dtype());
    if (narrow.raw() != gradient.raw()) {
      std::copy_n(narrow.raw(), narrow.bytes(), gradient.raw());
    }
  }
  return norm;
}

double clip_by_norm(const Gradients& gradients, double most) {
  std::vector<Tensor> tensors;
  for (const auto& entry : gradients) tensors.push_back(entry.gradient);
  return clip_by_norm(tensors, most);
}

}  // namespace palimpsest
