#pragma once

#include <utility>
#include <variant>

#include "checkpoint/plan.h"

namespace palimpsest {

/// A result, or the refusal of a budget that is too small for it. Passes return refusals as values,
/// so that a caller can try something else without an exception.
template <class T>
class OrRefusal {
 public:
  OrRefusal(T value) : held_(std::move(value)) {}  // NOLINT(google-explicit-constructor)
  // NOLINTNEXTLINE(google-explicit-constructor)
  OrRefusal(BudgetError refusal) : held_(std::move(refusal)) {}

  explicit operator bool() const { return std::holds_alternative<T>(held_); }
  T& operator*() { return std::get<T>(held_); }
  const T& operator*() const { return std::get<T>(held_); }
  T* operator->() { return &**this; }
  const T* operator->() const { return &**this; }
  const BudgetError& refusal() const { return std::get<BudgetError>(held_); }

  /// The result. Throws the refusal.
  T take() && {
    if (!*this) throw refusal();
    return std::move(**this);
  }

 private:
  std::variant<T, BudgetError> held_;
};

}  // namespace palimpsest
