#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "autodiff/export.h"
#include "autodiff/tensor.h"
#include "strategy/training/safetensors.h"

namespace palimpsest PALIMPSEST_EXPORT {  // for palimpsest-mpi

/// Reads the entries of a saved state. Errors begin with `owner` and name the entry.
class StateEntries {
 public:
  StateEntries(const NamedTensors& state, std::string owner)
      : state_(&state), owner_(std::move(owner)) {}

  bool has(const std::string& name) const { return state_->contains(name); }
  /// Throws `ArgumentError` when it is missing, `ShapeError` or `DTypeError` for another type.
  const Tensor& tensor(const std::string& name, const ValueType& type) const;
  /// A number of f64 or i64 without axes. Throws as `tensor`.
  double number(const std::string& name) const;
  std::int64_t integer(const std::string& name) const;
  /// An integer of at least 0. Also throws `ArgumentError`.
  std::int64_t count(const std::string& name) const;
  /// Likewise, of at most 32 bits.
  std::uint32_t short_count(const std::string& name) const;
  /// A number of at least 0. Also throws `ArgumentError`.
  double not_negative_number(const std::string& name) const;

  /// Throws `ArgumentError` for an entry that is not in `known`.
  void require_only(std::initializer_list<std::string_view> known) const;
  /// The entries of a part, whose names begin with `prefix`, without it. Throws `ArgumentError` for
  /// an entry that is neither of the part nor in `known`, and for any of a part that does not
  /// exist.
  NamedTensors part(std::string_view prefix, bool exists,
                    std::initializer_list<std::string_view> known) const;
  /// Throws `ArgumentError` about an entry.
  [[noreturn]] void refuse(const std::string& name, const std::string& problem) const;

 private:
  const NamedTensors* state_;
  std::string owner_;
};

/// Adds the entries of a part; their names get a prefix.
void add_part(NamedTensors& all, std::string_view prefix, const NamedTensors& part);

/// i64 and f64 tensors without axes, for entries of a state.
Tensor integer_entry(std::int64_t value);
Tensor number_entry(double value);

/// Copies the bits of `from` to `to`; their types are equal.
void copy_elements(const Tensor& from, const Tensor& to);
/// Likewise, into a tensor of the user, as `call` (see `note_write`).
void write_elements(const Tensor& from, const Tensor& to, const char* call);

}  // namespace palimpsest
