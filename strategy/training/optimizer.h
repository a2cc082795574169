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
/// A parameter is found by its name, with its scopes, if the step gives it one that no other has
/// and that is known. Otherwise it is found by its position among the gradients. So a model may
/// leave out other layers in each step of an `Execution`, which then does not name their
/// parameters. In all steps a tensor has the same name, or none.
///
/// State is f64 for f64 parameters and f32 otherwise; updates of 16-bit parameters are computed in
/// f32 and rounded. The bits do not depend on the number of threads.
///
/// Groups give some parameters other settings. A parameter belongs to the first group that matches
/// it; parameters that no group matches have the optimizer's own settings. A step that names a
/// parameter for the first time decides again. A group must select a parameter once all parameters
/// have names. If none has a name, it must do so at the first step.
class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  /// Updates every parameter once; none if the gradients' report says that they overflowed. Throws
  /// `ArgumentError` when number, names or types of the parameters differ from those of the
  /// previous step, and for a group that selects no parameter. The first step also throws it for a
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
  /// are "adam/steps" (i64), "adam/learning_rate" (f64) and those of the parameters. A parameter
  /// has entries such as "adam/name/layer3/weight/mean" or, without a name, "adam/position/2/mean".
  /// With a name it also has its position, as in "adam/name/layer3/weight/position" (i64). Tensors
  /// share the optimizer's storage, so the next step changes them.
  NamedTensors state() const;
  /// Throws what `load_state` would throw. Changes nothing.
  void check_state(const NamedTensors& state) const;
  /// Continues from a state of an optimizer of the same kind, with the same bits. Copies the
  /// tensors. Throws `ArgumentError` for an entry that is missing, unknown or out of range,
  /// `ShapeError` and `DTypeError` for one of another type. Then the optimizer is unchanged.
  /// After a step its parameters are compared with those of the state, and it keeps their names.
  /// Otherwise the next `step` compares them.
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
    std::string name;  ///< not "position"
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
  /// A parameter and its state.
  struct Kept {
    std::string name = {};
    ValueType type = {};
    double learning_rate_factor = 1;
    double weight_decay = 0;
    std::vector<Tensor> state = {};
  };
  /// Places of parameters by their names, if they have names of their own.
  using Index = std::map<std::string, std::size_t, std::less<>>;
  /// The parameters, in the order of the first step.
  struct Parameters {
    std::vector<Kept> kept;
    Index index;

    bool has_own_name(std::size_t place) const;
    /// "name/layer3/weight" or "position/2", which begins the entries of its state.
    std::string key(std::size_t place) const;
  };
  /// A state that was read.
  struct Loaded {
    std::int64_t steps = 0;
    double learning_rate = 0;
    NamedTensors entries;
    std::map<std::string, std::set<std::string>> slots;  // kinds of state, by key of the parameter
    std::map<std::size_t, std::string> names;            // by position, where that is known
  };

  void start(std::span<const Gradients::Entry> entries);
  void fill_state(Parameters& parameters, const Loaded& loaded) const;
  std::vector<std::size_t> choose_groups(std::span<Kept> parameters) const;
  void require_groups_used(std::span<const std::size_t> group_sizes,
                           std::span<const Kept> parameters) const;
  std::vector<std::size_t> places_of(std::span<const Gradients::Entry> entries) const;
  void take_names(std::span<const Gradients::Entry> entries, std::span<const std::size_t> places);
  void update_tensor(const Gradients::Entry& entry, const Kept& kept) const;

  std::string entry_name(const std::string& key, const std::string& slot) const;
  Loaded read(const NamedTensors& state) const;
  void read_positions(Loaded& loaded) const;
  std::string key_in(const Loaded& loaded, const Parameters& parameters, std::size_t place) const;
  std::string first_entry(const Loaded& loaded, const std::string& key) const;
  std::vector<std::string> keys_in(const Loaded& loaded, const Parameters& parameters) const;
  void require_fits(const Loaded& loaded) const;
  void require_slots_of(const Loaded& loaded, const std::string& key, const ValueType& type) const;

  InUse in_use_{"optimizer"};
  Common common_;
  double learning_rate_ = 0;
  std::int64_t steps_ = 0;
  std::optional<Parameters> parameters_;  // since the first step
  std::optional<Loaded> loaded_;          // the first step begins with it
};

}  // namespace palimpsest
