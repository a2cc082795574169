#include "strategy/training/rmsprop.h"

#include <algorithm>
#include <cmath>

#include "strategy/training/element_update.h"
#include "strategy/training/optimizer.h"
#include "strategy/training/settings.h"

namespace palimpsest {
namespace {

class Rmsprop final : public Optimizer {
 public:
  explicit Rmsprop(const RmspropOptions& options)
      : Optimizer({"rmsprop", options.learning_rate, options.weight_decay, options.groups}),
        alpha_(options.alpha),
        epsilon_(options.epsilon),
        momentum_(options.momentum),
        centered_(options.centered) {
    require_below_one("rmsprop", "alpha", alpha_);
    require_not_negative("rmsprop", "epsilon", epsilon_);
    require_below_one("rmsprop", "momentum", momentum_);
  }

 private:
  std::vector<Slot> slots(const ValueType& parameter) const override {
    std::vector<Slot> slots{{"square", parameter}};
    if (centered_) slots.push_back({"mean", parameter});
    if (momentum_ > 0) slots.push_back({"momentum", parameter});
    return slots;
  }

  void update(const Update& update) const override {
    if (centered_) {
      momentum_ > 0 ? update_with<true, true>(update) : update_with<true, false>(update);
    } else {
      momentum_ > 0 ? update_with<false, true>(update) : update_with<false, false>(update);
    }
  }

  template <bool centered, bool with_momentum>
  void update_with(const Update& update) const {
    constexpr std::size_t states = 1 + (centered ? 1 : 0) + (with_momentum ? 1 : 0);
    update_elements<states>(update.parameter, update.gradient, update.state,
                            [&]<class T>(T* p, const T* g, const auto& state, std::int64_t n) {
                              const T alpha = static_cast<T>(alpha_);
                              const T epsilon = static_cast<T>(epsilon_);
                              const T rate = static_cast<T>(update.learning_rate);
                              const T momentum = static_cast<T>(momentum_);
                              const T decay = static_cast<T>(update.weight_decay);
                              T* const square = state[0];
                              T* const mean = state[centered ? 1 : 0];
                              T* const velocity = state[states - 1];
                              for (std::int64_t i = 0; i < n; ++i) {
                                const T gradient = g[i] + decay * p[i];
                                square[i] = alpha * square[i] + (1 - alpha) * gradient * gradient;
                                T variance = square[i];
                                if constexpr (centered) {
                                  mean[i] += (1 - alpha) * (gradient - mean[i]);
                                  variance -= mean[i] * mean[i];
                                  variance = variance < 0 ? T{0} : variance;  // a NaN stays one
                                }
                                T direction = gradient / (std::sqrt(variance) + epsilon);
                                if constexpr (with_momentum) {
                                  direction = velocity[i] = momentum * velocity[i] + direction;
                                }
                                p[i] -= rate * direction;
                              }
                            });
  }

  double alpha_;
  double epsilon_;
  double momentum_;
  bool centered_;
};

}  // namespace

std::unique_ptr<Optimizer> rmsprop(RmspropOptions options) {
  return std::make_unique<Rmsprop>(options);
}

}  // namespace palimpsest
