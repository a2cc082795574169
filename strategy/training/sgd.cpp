#include "strategy/training/sgd.h"

#include <utility>

#include "strategy/training/element_update.h"
#include "strategy/training/optimizer.h"
#include "strategy/training/settings.h"

namespace palimpsest {
namespace {

class Sgd final : public Optimizer {
 public:
  explicit Sgd(const SgdOptions& options)
      : Optimizer({"sgd", options.learning_rate, options.weight_decay, options.groups}),
        momentum_(options.momentum),
        nesterov_(options.nesterov) {
    require_below_one("sgd", "momentum", momentum_);
    require_setting(momentum_ > 0 || !nesterov_, "sgd", "momentum", momentum_,
                    "a positive momentum with nesterov, such as 0.9");
  }

 private:
  std::vector<Slot> slots(const ValueType& parameter) const override {
    if (momentum_ == 0) return {};
    return {{"momentum", parameter}};
  }

  void update(const Update& update) const override {
    if (momentum_ == 0) {
      update_elements<0>(update.parameter, update.gradient, update.state,
                         [&]<class T>(T* p, const T* g, const auto&, std::int64_t n) {
                           const T rate = static_cast<T>(update.learning_rate);
                           const T decay = static_cast<T>(update.weight_decay);
                           for (std::int64_t i = 0; i < n; ++i)
                             p[i] -= rate * (g[i] + decay * p[i]);
                         });
      return;
    }
    update_elements<1>(update.parameter, update.gradient, update.state,
                       [&]<class T>(T* p, const T* g, const auto& state, std::int64_t n) {
                         const T rate = static_cast<T>(update.learning_rate);
                         const T decay = static_cast<T>(update.weight_decay);
                         const T momentum = static_cast<T>(momentum_);
                         const bool nesterov = nesterov_;
                         T* const v = state[0];
                         for (std::int64_t i = 0; i < n; ++i) {
                           const T direction = g[i] + decay * p[i];
                           v[i] = momentum * v[i] + direction;
                           p[i] -= rate * (nesterov ? direction + momentum * v[i] : v[i]);
                         }
                       });
  }

  double momentum_;
  bool nesterov_;
};

}  // namespace

std::unique_ptr<Optimizer> sgd(SgdOptions options) { return std::make_unique<Sgd>(options); }

}  // namespace palimpsest
