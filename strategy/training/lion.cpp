#include "strategy/training/lion.h"

#include "strategy/training/element_update.h"
#include "strategy/training/optimizer.h"
#include "strategy/training/settings.h"

namespace palimpsest {
namespace {

class Lion final : public Optimizer {
 public:
  explicit Lion(const LionOptions& options)
      : Optimizer({"lion", options.learning_rate, options.weight_decay, options.groups}),
        beta1_(options.beta1),
        beta2_(options.beta2) {
    require_below_one("lion", "beta1", beta1_);
    require_below_one("lion", "beta2", beta2_);
  }

 private:
  std::vector<Slot> slots(const ValueType& parameter) const override {
    return {{"momentum", parameter}};
  }

  void update(const Update& update) const override {
    update_elements<1>(update.parameter, update.gradient, update.state,
                       [&]<class T>(T* p, const T* g, const auto& state, std::int64_t n) {
                         const T beta1 = static_cast<T>(beta1_);
                         const T beta2 = static_cast<T>(beta2_);
                         const T rate = static_cast<T>(update.learning_rate);
                         const T decay = static_cast<T>(update.weight_decay);
                         T* const m = state[0];
                         for (std::int64_t i = 0; i < n; ++i) {
                           const T c = beta1 * m[i] + (1 - beta1) * g[i];
                           const T sign = c > 0 ? T{1} : c < 0 ? T{-1} : c;  // a NaN stays one
                           p[i] -= rate * (sign + decay * p[i]);
                           m[i] = beta2 * m[i] + (1 - beta2) * g[i];
                         }
                       });
  }

  double beta1_;
  double beta2_;
};

}  // namespace

std::unique_ptr<Optimizer> lion(LionOptions options) { return std::make_unique<Lion>(options); }

}  // namespace palimpsest
