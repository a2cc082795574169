#include "strategy/training/adam.h"

#include <cmath>
#include <utility>

#include "strategy/training/element_update.h"
#include "strategy/training/optimizer.h"
#include "strategy/training/settings.h"

namespace palimpsest {
namespace {

class Adam final : public Optimizer {
 public:
  Adam(const AdamOptions& options, bool decoupled)
      : Optimizer({decoupled ? "adamw" : "adam", options.learning_rate, options.weight_decay,
                   options.groups}),
        beta1_(options.beta1),
        beta2_(options.beta2),
        epsilon_(options.epsilon),
        decoupled_(decoupled) {
    const char* const name = decoupled ? "adamw" : "adam";
    require_below_one(name, "beta1", beta1_);
    require_below_one(name, "beta2", beta2_);
    require_not_negative(name, "epsilon", epsilon_);
  }

 private:
  std::vector<Slot> slots(const ValueType& parameter) const override {
    return {{"mean", parameter}, {"square", parameter}};
  }

  void update(const Update& update) const override {
    const auto step = static_cast<double>(update.step);
    const double correction1 = 1 - std::pow(beta1_, step);
    const double correction2 = 1 - std::pow(beta2_, step);
    update_elements<2>(update.parameter, update.gradient, update.state,
                       [&]<class T>(T* p, const T* g, const auto& state, std::int64_t n) {
                         const T beta1 = static_cast<T>(beta1_);
                         const T beta2 = static_cast<T>(beta2_);
                         const T rate = static_cast<T>(update.learning_rate / correction1);
                         const T scale = static_cast<T>(1 / std::sqrt(correction2));
                         const T epsilon = static_cast<T>(epsilon_);
                         const T decay = static_cast<T>(update.weight_decay);
                         const T shrink =
                             static_cast<T>(1 - update.learning_rate * update.weight_decay);
                         T* const mean = state[0];
                         T* const square = state[1];
                         for (std::int64_t i = 0; i < n; ++i) {
                           const T gradient = decoupled_ ? g[i] : g[i] + decay * p[i];
                           if (decoupled_) p[i] *= shrink;
                           mean[i] = beta1 * mean[i] + (1 - beta1) * gradient;
                           square[i] = beta2 * square[i] + (1 - beta2) * gradient * gradient;
                           p[i] -= rate * mean[i] / (std::sqrt(square[i]) * scale + epsilon);
                         }
                       });
  }

  double beta1_;
  double beta2_;
  double epsilon_;
  bool decoupled_;
};

}  // namespace

std::unique_ptr<Optimizer> adam(AdamOptions options) {
  return std::make_unique<Adam>(options, false);
}

std::unique_ptr<Optimizer> adamw(AdamWOptions options) {
  auto& [learning_rate, beta1, beta2, epsilon, weight_decay, groups] = options;
  return std::make_unique<Adam>(
      AdamOptions{learning_rate, beta1, beta2, epsilon, weight_decay, std::move(groups)}, true);
}

}  // namespace palimpsest
