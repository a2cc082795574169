#include "strategy/training/loss_scaler.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <string>

#include "autodiff/number_text.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/parallel.h"
#include "autodiff/storage_version.h"
#include "strategy/training/state_entries.h"

namespace palimpsest {
namespace {

[[noreturn]] void refuse_scaler(const std::string& problem) {
  throw ArgumentError("[loss scaler] " + problem);
}

void require_power_of_two(double factor, const char* name) {
  int exponent = 0;
  if (std::isfinite(factor) && factor > 0 && std::frexp(factor, &exponent) == 0.5) return;
  refuse_scaler("the " + std::string(name) + " is " + number_text(factor) +
                "; give a power of two, such as 65536, so that scaling does not round");
}

/// Multiplies in place; returns false where an element is not finite.
bool multiply_finite(const Tensor& tensor, double factor) {
  std::atomic<bool> finite = true;
  visit(tensor.dtype(), [&]<class T>(T) {
    using Number = std::conditional_t<std::is_same_v<T, double>, double, float>;
    T* const data = tensor.data<T>().data();
    parallel_chunks(tensor.elements(), grain_for(2), [&](std::int64_t begin, std::int64_t end) {
      bool all = true;
      for (std::int64_t i = begin; i < end; ++i) {
        const auto number = static_cast<Number>(data[i]);
        all &= std::isfinite(number);
        data[i] = static_cast<T>(number * static_cast<Number>(factor));
      }
      if (!all) finite.store(false, std::memory_order_relaxed);
    });
  });
  return finite;
}

}  // namespace

LossScaler::LossScaler(const LossScalerOptions& options)
    : options_(options), scale_(options.scale) {
  require_power_of_two(options.scale, "scale");
  require_power_of_two(options.growth, "growth");
  require_power_of_two(options.backoff, "backoff");
  require_power_of_two(options.smallest, "smallest scale");
  require_power_of_two(options.largest, "largest scale");
  if (options.growth < 1) {
    refuse_scaler("the growth is " + number_text(options.growth) +
                  "; give 2, or 1 to keep the scale");
  }
  if (options.backoff >= 1) {
    refuse_scaler("the backoff is " + number_text(options.backoff) +
                  "; give a number below 1, such as 0.5");
  }
  if (options.interval < 1) {
    refuse_scaler("the interval is " + std::to_string(options.interval) +
                  "; give the number of steps without overflow before the scale grows");
  }
  if (options.scale < options.smallest || options.scale > options.largest) {
    refuse_scaler("the scale " + number_text(options.scale) +
                  " is out of bounds; give smallest ≤ scale ≤ largest, which are " +
                  number_text(options.smallest) + " and " + number_text(options.largest));
  }
}

Var LossScaler::scale(const Var& loss, Where where) {
  require_floating(loss, "loss scaler", where);
  used_ = scale_;
  // f16 cannot represent most scales.
  const Var wide = cast(loss, compute_dtype(loss.dtype()), where);
  return multiply(wide, loss.tape().constant(Tensor::scalar(scale_, wide.dtype()), "scale", where),
                  where);
}

bool LossScaler::unscale(const Gradients& gradients) {
  gradients.keep_apart();
  return unscale(gradients.entries(), gradients.loss().item());
}

Gradients LossScaler::unscaled(Tensor loss, std::vector<Gradients::Entry> entries, Report report,
                               std::vector<Tensor> outputs) {
  report.loss_scale = scale_;
  report.overflowed = !unscale(entries, loss.item());
  visit(loss.dtype(), [&]<class T>(T) { loss.data<T>()[0] = convert_element<T>(loss_); });
  return Gradients(std::move(loss), std::move(entries), std::move(report), std::move(outputs));
}

bool LossScaler::unscale(std::span<const Gradients::Entry> entries, double loss) {
  if (!(used_ > 0)) refuse_scaler("no loss was scaled; call backward(scaler.scale(loss))");
  bool finite = true;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Tensor& gradient = entries[i].gradient;
    // Parameters with the same adjoint share its storage; scale it once.
    const bool is_done = std::ranges::any_of(entries.first(i), [&](const auto& before) {
      return before.gradient.raw() == gradient.raw();
    });
    if (!is_floating(gradient.dtype()) || is_done) continue;
    note_write(gradient, "LossScaler::unscale");
    finite &= multiply_finite(gradient, 1 / used_);
  }
  loss_ = loss / used_;
  ++steps_;
  if (!finite) {
    ++skipped_;
    in_a_row_ = 0;
    scale_ = std::max(options_.smallest, scale_ * options_.backoff);
  } else if (++in_a_row_ >= options_.interval) {
    in_a_row_ = 0;
    const double grown = std::min(options_.largest, scale_ * options_.growth);
    if (grown > scale_) ++growths_;
    scale_ = grown;
  }
  return finite;
}

NamedTensors LossScaler::state() const {
  return {{"scale", number_entry(scale_)},
          {"loss", number_entry(loss_)},
          {"without_overflow", integer_entry(in_a_row_)},
          {"steps", integer_entry(steps_)},
          {"skipped", integer_entry(skipped_)},
          {"growths", integer_entry(growths_)}};
}

void LossScaler::check_state(const NamedTensors& state) const {
  LossScaler(*this).load_state(state);
}

void LossScaler::load_state(const NamedTensors& state) {
  const StateEntries entries(state, "loss scaler");
  LossScaler loaded(options_);
  loaded.scale_ = entries.number("scale");
  int exponent = 0;
  if (!(loaded.scale_ >= options_.smallest && loaded.scale_ <= options_.largest) ||
      std::frexp(loaded.scale_, &exponent) != 0.5) {
    entries.refuse("scale", "is " + number_text(loaded.scale_) +
                                "; load it into a scaler with the options it was saved with");
  }
  loaded.loss_ = entries.number("loss");
  const std::int64_t in_a_row = entries.count("without_overflow");
  if (in_a_row >= options_.interval) {
    entries.refuse("without_overflow",
                   "is " + std::to_string(in_a_row) +
                       "; load it into a scaler with the options it was saved with");
  }
  loaded.in_a_row_ = static_cast<int>(in_a_row);
  loaded.steps_ = entries.count("steps");
  loaded.skipped_ = entries.count("skipped");
  loaded.growths_ = entries.count("growths");
  entries.require_only({"scale", "loss", "without_overflow", "steps", "skipped", "growths"});
  *this = loaded;
}

}  // namespace palimpsest
