#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "autodiff/export.h"
#include "autodiff/in_use.h"
#include "strategy/backward.h"
#include "strategy/training/adafactor.h"
#include "strategy/training/adam.h"
#include "strategy/training/clip_by_norm.h"
#include "strategy/training/lion.h"
#include "strategy/training/parameter_groups.h"
#include "strategy/training/rmsprop.h"
#include "strategy/training/safetensors.h"
#include "strategy/training/sgd.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// Updates parameters from their gradients, in place. The tensors given to `Tape::parameter`
/// change, so values computed from them are out of date. A lazy tape computes them again; an eager
/// one must be recorded again.
///
/// It needs no tape: `Gradients` hold the parameters' tensors. After `Runner::bind` these are the
/// bound ones.
///
/// State is kept by the name of a parameter, with its scopes, if every parameter has a name of its
/// own at the first step. Otherwise it is kept by position on the tape. It is f64 for f64
/// parameters and f32 otherwise; updates of 16-bit parameters are computed in f32 and rounded. The
/// bits do not depend on the number of threads.
///
/// Groups give some parameters other settings. A parameter belongs to the first group that matches
/// it; parameters that no group matches have the optimizer's own settings.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// Updates every parameter once; none if the gradients' report says that they overflowed. Throws
  /// `ArgumentError` when number, names or types of the parameters differ from those of the
  /// previous step. The first step also throws it for a group that selects no parameter and for a
  /// tensor that occurs twice. It throws as `load_state` if a loaded state is of other parameters.
  /// Then nothing has changed.
  void step(const Gradients& gradients);
  /// Bytes of the state for these parameters.
  Bytes state_bytes(std::span<const Tensor> parameters) const;
  /// Number of updates so far.
  std::int64_t steps() const { return steps_; }

  /// The rate of the next step.
  double learning_rate() const { return learning_rate_; }
  /// Sets the rate of later steps, as in `set_learning_rate(schedule(step))`. Throws
  /// `ArgumentError` when negative.
  void set_learning_rate(double rate);

  /// Everything that later steps depend on, except the settings given at construction. The entries
  /// are "adam/steps" (i64), "adam/learning_rate" (f64) and those of the parameters, such as
  /// "adam/name/layer3/weight/mean" or, without names, "adam/position/2/mean". Tensors share the
  /// optimizer's storage, so the next step changes them.
  NamedTensors state() const;
  /// Throws what `load_state` would throw. Changes nothing.
  void check_state(const NamedTensors& state) const;
  /// Continues from a state of an optimizer of the same kind, with the same bits. Copies the
  /// tensors. Throws `ArgumentError` for an entry that is missing, unknown or out of range,
  /// `ShapeError` and `DTypeError` for one of another type. Then the optimizer is unchanged.
  /// Before the first step the parameters are unknown; then the next `step` compares them.
  void load_state(const NamedTensors& state);

 protected:
  /// Settings that all optimizers have. `name` begins messages and names of state.
  struct Common {
    std::string name;
    double learning_rate = 0;
    double weight_decay = 0;
    std::vector<ParameterGroup> groups = {};
  };
  /// A kind of state that every parameter has.
  struct Slot {
    std::string name;
    ValueType type;
  };
  /// The update of one parameter. All tensors are of the dtype of its state, f64 or f32, and
  /// `parameter` is changed in place.
  struct Update {
    Tensor parameter;
    Tensor gradient;
    std::span<const Tensor> state;  ///< by slot; all zeros at first; changed in place
    double learning_rate;           ///< of the parameter's group
    double weight_decay;            ///< likewise
    std::int64_t step;              ///< counts from 1
  };

  /// Throws `ArgumentError` for a negative rate, factor or decay, and a group without a predicate.
  explicit Optimizer(Common common);

  /// The kinds of state of a parameter. The dtype of `parameter` is that of its state.
  virtual std::vector<Slot> slots(const ValueType& parameter) const = 0;
  /// The type of the parameter that has this state, by name of the slot. By default that of the
  /// first. To be overridden if slots have other shapes than their parameter.
  virtual ValueType parameter_of(const NamedTensors& state) const;
  virtual void update(const Update& update) const = 0;

 private:
  /// A parameter, as it was at the first step, and its state.
  struct Kept {
    std::string key;  // its name or position
    ValueType type;
    double learning_rate_factor;
    double weight_decay;
    std::vector<Tensor> state;
  };
  /// A state that was read, and which kinds of state it has by parameter.
  struct Loaded {
    std::int64_t steps = 0;
    double learning_rate = 0;
    bool by_name = false;
    NamedTensors entries;
    std::map<std::string, std::set<std::string>> slots;  // by key of the parameter
  };

  void start(std::span<const Gradients::Entry> entries);
  Kept first_kept(const ParameterInfo& parameter, std::string key,
                  std::vector<std::size_t>& group_sizes) const;
  void require_groups_used(std::span<const std::size_t> group_sizes,
                           std::span<const Gradients::Entry> entries) const;
  std::vector<std::size_t> places_of(std::span<const Gradients::Entry> entries) const;
  void update_tensor(const Gradients::Entry& entry, const Kept& kept) const;

  std::string entry_name(const std::string& key, const std::string& slot, bool by_name) const;
  Loaded read(const NamedTensors& state) const;
  void require_state_of(const Loaded& loaded, std::span<const Kept> parameters, bool by_name) const;
  void require_slots_of(const Loaded& loaded, const std::string& key, const ValueType& type) const;
  std::vector<Tensor> loaded_slots(const Loaded& loaded, const Kept& kept) const;

  InUse in_use_{"optimizer"};
  Common common_;
  double learning_rate_ = 0;
  std::int64_t steps_ = 0;
  bool started_ = false;  // the parameters are known
  bool by_name_ = false;
  std::vector<Kept> kept_;                                 // in the order of the first step
  std::map<std::string, std::size_t, std::less<>> index_;  // by key
  std::optional<Loaded> loaded_;                           // the first step begins with it
};

}  // namespace palimpsest
