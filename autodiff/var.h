#pragma once

#include <initializer_list>
#include <iosfwd>

#include "autodiff/export.h"
#include "autodiff/tape.h"

namespace palimpsest PALIMPSEST_EXPORT {

class Index;

/// A handle to one value of a tape: 16 bytes, cheap to copy. Throws `TapeError` when used with a
/// handle of another tape, or when the value is no longer on its tape. A value leaves its tape when
/// the tape is cleared or destroyed. Values recorded in the body of a `checkpoint` or `scan`, for
/// example, leave it when their nodes are removed again.
class Var {
 public:
  /// An empty handle; `defined()` is false.
  Var() = default;
  Var(Tape& tape, ValueId id)
      : identity_(&tape.identity()), id_(id), epoch_(tape.identity().epoch()) {}
  Var(const Var&) = default;
  // Not for temporaries, so that `x[0] = y` does not compile: it would not change x.
  Var& operator=(const Var&) & = default;
  ~Var() = default;

  bool defined() const { return identity_ != nullptr; }
  /// The tape. Throws `TapeError` when the handle is empty or its value is no longer on the tape.
  Tape& tape() const {
    if (!defined() || !is_current()) throw_unusable();
    return *identity_->tape();
  }
  /// True while the value is on its tape; the handle must not be empty.
  bool is_current() const { return epoch_ == identity_->epoch() || was_kept(); }
  /// True while the value is on this tape.
  bool belongs_to(const Tape& tape) const { return identity_ == &tape.identity() && is_current(); }
  /// The number of the value on its tape.
  ValueId id() const { return id_; }
  /// The node that makes this value.
  NodeId node() const { return tape().producer(id_); }
  /// Output `index` of that node. Throws `ArgumentError` when there is no such output.
  Var output(std::uint32_t index) const;

  Shape shape() const { return tape().shape(id_); }
  DType dtype() const { return tape().dtype(id_); }
  ValueType type() const { return tape().type(id_); }
  int rank() const { return shape().rank(); }

  /// The value. Computed if it is not present, also again after it was dropped. Throws what kernels
  /// throw, and `BudgetError` when the evaluator has a budget that is too small. Throws `TapeError`
  /// while a `Program` is recorded, if the value depends on a leaf or on random numbers.
  Tensor value() const { return tape().look(id_); }
  /// The only element of the value. Throws `ShapeError` unless there is exactly one.
  template <class T = double>
  T item() const {
    return value().template item<T>();
  }

  /// The elements at `index` along axis 0, or at several indices along the first axes, as in
  /// `x[{0, Slice{1, 3}}]`. Records `select`, `slice` and the like; see `Index`. Throws
  /// `ShapeError` for more indices than axes. Throws `ArgumentError` for a position out of range, a
  /// slice with a step of 0, a second ellipsis, and a second tensor of positions or mask. Throws
  /// `DTypeError` for positions that are neither integers nor bool.
  Var operator[](const Index& index) const;
  Var operator[](std::initializer_list<Index> indices) const;

  /// Names the node that makes this value, for messages, reports and DOT. Returns this handle.
  const Var& named(std::string_view name) const;

  /// True for handles of the same value of the same tape.
  bool operator==(const Var& other) const {
    return identity_ == other.identity_ && id_ == other.id_ &&
           (epoch_ == other.epoch_ || !defined() || is_current() == other.is_current());
  }

 private:
  [[noreturn]] void throw_unusable() const;
  /// True when the value survived while others were removed from its tape.
  bool was_kept() const;

  const TapeIdentity* identity_ = nullptr;
  ValueId id_ = none;
  std::uint32_t epoch_ = 0;
};

/// Prints the type, then the elements, as for a `Tensor`; `undefined Var` for an empty handle.
/// Computes the value if it is not present. Throws as `Var::value` does.
std::ostream& operator<<(std::ostream& stream, const Var& x);

inline Var Tape::here(const Var& value, std::string_view operation, const Where& where) {
  return value.belongs_to(*this) ? value : stand_in_for(value, operation, where);
}

/// Throws a `TapeError` that explains why `var` cannot be used on the current tape.
[[noreturn]] void throw_foreign(const Var& var, std::string_view operation, const Where& where);

/// Throws `TapeError` naming `operation` when x is empty or no longer on its tape.
inline void require_value(const Var& x, std::string_view operation, const Where& where) {
  if (!x.defined() || !x.is_current()) throw_foreign(x, operation, where);
}
/// Like `require_value`, and throws `DTypeError` unless x is floating.
void require_floating(const Var& x, std::string_view operation, const Where& where);

/// The tape that all `vars` belong to, or its replacement (see `RedirectedRecording`). Throws
/// `TapeError` naming `operation` when there are two tapes, or when a handle is empty or stale.
Tape& common_tape(std::span<const Var> vars, std::string_view operation, const Where& where);

}  // namespace palimpsest
