#pragma once

#include <functional>
#include <iosfwd>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "autodiff/export.h"
#include "autodiff/located.h"
#include "autodiff/var.h"
#include "nn/initializers.h"
#include "strategy/training/safetensors.h"

namespace palimpsest PALIMPSEST_EXPORT {
namespace nn {

/// A named tensor of a model. Copies refer to the same parameter, so a layer that is given the
/// parameter of another layer shares it (weight tying). Use it while no other thread changes it.
class Parameter {
 public:
  /// An empty handle; `defined()` is false.
  Parameter() = default;

  bool defined() const { return entry_ != nullptr; }
  /// The name with its scopes, as in "encoder/linear/weight".
  const std::string& name() const;
  /// Its current elements. A copy shares them.
  const Tensor& tensor() const;
  /// False for frozen parameters and for states, such as running statistics.
  bool is_trainable() const;
  /// True for states.
  bool is_state() const;

  /// The parameter on a tape: the leaf that shares its tensor. If the tape has none, records one: a
  /// parameter, or a constant unless trainable. Inside `checkpoint` a trainable parameter must have
  /// been recorded before (see `Parameters::record`); otherwise `checkpoint` throws. Throws
  /// `ArgumentError` for an empty handle. A leaf without a name gets the parameter's. Names that
  /// share a tensor have one leaf, with the name that was added first.
  Var on(Tape& tape, Where where = Where::current()) const;
  /// Likewise, on the tape of x.
  Var on(const Located& x) const { return on(x.var.tape(), x.where); }
  /// While it exists, nodes are recorded in the scope of the parameter, which is that of its
  /// module: "encoder/linear" for "encoder/linear/weight". See `Parameters::scope`.
  Tape::ModuleScope scope(Tape& tape) const;

  bool operator==(const Parameter&) const = default;

 private:
  friend class Parameters;
  struct Entry;
  explicit Parameter(std::shared_ptr<Entry> entry) : entry_(std::move(entry)) {}

  std::shared_ptr<Entry> entry_;
};

/// How parameters are found in a file of another program.
struct LoadOptions {
  /// The name in the file of a parameter; by default the parameter's name. The empty name leaves a
  /// parameter as it is.
  std::function<std::string(const std::string& name)> name_of = nullptr;
  /// The tensor to take, where the file's layout differs; for example its transpose.
  std::function<Tensor(const std::string& name, const Tensor& tensor)> layout = nullptr;
  bool allow_missing = false;     ///< parameters that the file lacks stay as they are
  bool allow_unexpected = false;  ///< tensors of the file that no parameter takes are ignored
};

/// The names that `Parameters::load` could not match.
struct LoadResult {
  std::vector<std::string> missing;     ///< parameters that the file lacks
  std::vector<std::string> unexpected;  ///< tensors of the file that no parameter takes
};

/// The parameters of a model, by name. Layers add theirs when they are constructed. `parameters /
/// "encoder"` is the same container seen from a scope: what is added there is named "encoder/…",
/// and functions that list or change parameters are limited to it. Copies refer to the same
/// container.
///
/// Its initializer makes a new parameter from the container's seed and the full name. So its bits
/// depend neither on other parameters nor on the machine.
class Parameters {
 public:
  /// New parameters have this dtype, which must be floating.
  explicit Parameters(std::uint64_t seed = 0, DType dtype = DType::f32);

  /// This container, seen from a scope. Throws `ArgumentError` for a name that is empty or contains
  /// '/'.
  Parameters operator/(std::string_view scope) const;

  /// Adds a parameter. Throws `ArgumentError` for a name that is empty, contains '/' or is in use.
  Parameter add(std::string_view name, const Shape& shape, const init::Initializer& initializer,
                const init::Fans& fans);
  /// Likewise, with the given tensor, which is shared. Throws `DTypeError` unless it is floating.
  Parameter add(std::string_view name, const Tensor& tensor);
  /// Adds a tensor that is saved with the parameters but has no gradient. Any dtype.
  Parameter add_state(std::string_view name, const Tensor& tensor);

  /// Parameters and states of this scope, ordered by name. The order in which layers were made does
  /// not matter, since C++ does not define it for arguments of a call.
  std::vector<Parameter> all() const;
  /// The trainable ones.
  std::vector<Parameter> trainable() const;
  /// The tensors of the trainable ones, as an `Execution` takes them. One that several names share
  /// is listed once. Names share a tensor if theirs have the same elements in memory, also in other
  /// shapes.
  std::vector<Tensor> tensors() const;
  /// The parameter of this name, with its scopes below this one. Throws `ArgumentError` when there
  /// is none, listing those that exist.
  Parameter operator[](std::string_view name) const;
  /// Number of elements of all trainable parameters. Tensors that several names share count once,
  /// here and below.
  std::int64_t elements() const;
  /// Bytes of all parameters and states.
  Bytes bytes() const;

  /// Records all parameters and states of this scope that the tape does not have yet. Layers record
  /// what they need themselves, but inside `checkpoint` they cannot.
  void record(Tape& tape, Where where = Where::current()) const;
  /// While it exists, nodes are recorded in this scope, so that reports name the module. Every
  /// layer opens the scope of its parameters when it is called; a struct of layers may do so too.
  /// See `Tape::ModuleScope`.
  Tape::ModuleScope scope(Tape& tape) const;

  /// Frozen parameters are recorded as constants, which have no gradients. States stay as they are.
  /// Names that share a tensor are frozen and unfrozen together, whichever of them this scope has;
  /// so is a name that is added later. A program that is already recorded does not change. Give an
  /// `Execution` the new `tensors()`. Both throw `ArgumentError` for a named scope without
  /// parameters, which may be a misspelt one.
  void freeze();
  void unfreeze();

  /// Whether layers behave as in training, for example drop out elements. This holds for the whole
  /// container. A new container is in training.
  bool is_training() const;
  void set_training(bool training);

  /// Converts parameters and states that are floating. Names that share a tensor still do
  /// afterwards, whichever of them this scope has. Tensors are replaced, so an optimizer must be
  /// made again. Throws `DTypeError` unless `dtype` is floating.
  void convert(DType dtype);

  /// Names without this scope, and tensors, which are shared.
  NamedTensors named() const;
  /// Copies tensors into the parameters and states of this scope, converted to their dtypes. Checks
  /// everything before it changes anything. Throws `ArgumentError` that lists missing and
  /// unexpected names, and `ShapeError` for a tensor of another shape. Throws `ArgumentError` where
  /// names that share a tensor are given different ones.
  LoadResult load(const NamedTensors& tensors, const LoadOptions& options = {});
  /// Likewise, from a safetensors file. Also throws `FileError`.
  LoadResult load(const std::string& path, const LoadOptions& options = {});
  /// Writes `named()` to a safetensors file. Throws `FileError`.
  void save(const std::string& path) const;

  /// For a `TrainingPart`: `named()`, a check that all tensors are given with their types, and a
  /// copy of them into the parameters and states. `check_state` throws `ArgumentError`,
  /// `ShapeError` and `DTypeError`.
  NamedTensors state() const { return named(); }
  void check_state(const NamedTensors& state) const;
  void load_state(const NamedTensors& state);

  /// A table of names, types and bytes, with totals.
  std::string summary() const;

 private:
  struct Contents;
  Parameters(std::shared_ptr<Contents> contents, std::string prefix)
      : contents_(std::move(contents)), prefix_(std::move(prefix)) {}
  Parameter add_entry(std::string_view name, const Tensor& tensor, bool is_state);
  std::string full_name(std::string_view name) const;
  void set_frozen(bool frozen) const;

  std::shared_ptr<Contents> contents_;
  std::string prefix_;  // empty, or ends with '/'
};

std::ostream& operator<<(std::ostream& stream, const Parameters& parameters);

}  // namespace nn
}  // namespace palimpsest
