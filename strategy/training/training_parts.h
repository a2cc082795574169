#pragma once

#include <concepts>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "autodiff/export.h"
#include "strategy/training/safetensors.h"
#include "strategy/training/training_state.h"

namespace palimpsest PALIMPSEST_EXPORT {

class Tape;

/// An object that a training run can continue from: an `Optimizer`, `LossScaler`,
/// `PlateauSchedule`, `WeightAverage`, `Execution`, `nn::Parameters`, or one of the user's.
/// `check_state` throws a `UsageError` where `load_state` would. After that `load_state` throws
/// nothing but `EnvironmentError`.
template <class T>
concept Resumable = requires(const T& constant, T& object, const NamedTensors& state) {
  { constant.state() } -> std::convertible_to<NamedTensors>;
  constant.check_state(state);
  object.load_state(state);
};

/// A named part of a training run. It refers to the object, which must outlive it.
class TrainingPart {
 public:
  template <Resumable T>
  TrainingPart(std::string name, T& object)
      : name_(std::move(name)),
        state_([&object] { return object.state(); }),
        check_([&object](const NamedTensors& state) { object.check_state(state); }),
        load_([&object](const NamedTensors& state) { object.load_state(state); }) {}
  /// Tensors such as the parameters of a model. Loading copies the saved elements into them. Names
  /// that share a tensor must have equal elements; otherwise `ArgumentError` is thrown.
  TrainingPart(std::string name, NamedTensors tensors);
  /// The random streams of a tape: its seed and generation. The tape must be empty when they are
  /// loaded. If they were saved between two steps, later steps draw what they would have drawn.
  TrainingPart(std::string name, Tape& tape);

  /// The name of the part in the file.
  const std::string& name() const { return name_; }
  /// What the functions of these names of the object do.
  NamedTensors state() const { return state_(); }
  void check_state(const NamedTensors& state) const { check_(state); }
  void load_state(const NamedTensors& state) const { load_(state); }

 private:
  std::string name_;
  std::function<NamedTensors()> state_;
  std::function<void(const NamedTensors&)> check_;
  std::function<void(const NamedTensors&)> load_;
};

/// Saves what a training run needs to continue with the same bits. Call it between two steps:
///
///     const std::vector<TrainingPart> parts = {
///         {"parameters", parameters}, {"optimizer", *optimizer}, {"random", tape}};
///     save_training("run.safetensors", parts, {{"epoch", 3}, {"batch", 120}});
///
/// Throws as `write_training_state`, and `ArgumentError` for two parts of one name.
void save_training(const std::string& path, const std::vector<TrainingPart>& parts,
                   const DataPosition& position = {});

/// Loads the parts of a saved run, which must have the same names, and returns its position in the
/// data. All parts are checked before any is changed.
///
/// Throws `FileError` as `read_training_state` does, for a file with more or fewer parts, and for a
/// state that does not fit its part. Throws `TapeError` for a tape that is not empty. It also does
/// so for an `Execution`, `DistributedExecution` or `Optimizer` that is in use, as in a function
/// that its step calls. Throws `ArgumentError` for two parts of one name. Then nothing has changed.
/// If memory runs out, some parts may have been loaded.
DataPosition load_training(const std::string& path, const std::vector<TrainingPart>& parts);

}  // namespace palimpsest
