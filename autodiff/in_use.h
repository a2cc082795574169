#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "autodiff/error.h"
#include "autodiff/export.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// Marks a call of a function that the user supplied, such as the forward function of a custom
/// operation or a progress function. While it exists, its thread cannot change the objects that
/// were in use before.
class [[nodiscard]] UserCall {
 public:
  UserCall() noexcept;
  ~UserCall();
  UserCall(const UserCall&) = delete;
  UserCall& operator=(const UserCall&) = delete;

 private:
  const void* outer_;
};

/// Whether an object is in use that serves one caller at a time, and for what. A caller is a
/// thread, or a `UserCall` on it.
///
/// It finds calls from another thread or from a function of the user. It does not make sharing
/// safe. A copy of the object is not in use.
class InUse {
 public:
  /// The level of a use says what it permits. Its own caller may begin another use of this level or
  /// a later one, except `alone`. Other callers may begin none.
  enum class Level : std::uint8_t {
    open,      ///< nodes are recorded, also by functions of the user
    records,   ///< one node is recorded
    computes,  ///< nodes stay as they are; values change
    alone,     ///< no other use
  };
  /// For messages, as in "the tape is in use: a run computes its values".
  struct Purpose {
    Level level;
    const char* what;
    bool is_first = level == Level::alone;  ///< it begins only where there is no other use
  };

  /// `object` names it in messages, and must outlive this object.
  explicit InUse(const char* object) noexcept : object_(object) {}
  InUse(const InUse& other) noexcept : object_(other.object_) {}
  InUse& operator=(const InUse&) noexcept { return *this; }

  /// Throws the `TapeError` that `function` was called during a use, if that does not permit one
  /// of this level.
  void require(Level level, std::string_view function, const Where* where = nullptr) const {
    const Purpose* const current = purpose_.load(std::memory_order_relaxed);
    if (current != nullptr && !permits(*current, level)) refuse(*current, function, where);
  }

  /// Throws the `TapeError` that `function` was called during a use for this purpose.
  [[noreturn]] void refuse(const Purpose& current, std::string_view function,
                           const Where* where = nullptr) const;
  /// True during a use of this level or a later one, by any caller.
  bool is_at_least(Level level) const {
    const Purpose* const current = purpose_.load(std::memory_order_relaxed);
    return current != nullptr && current->level >= level;
  }

  class Use;

 private:
  static const void* caller() noexcept;
  bool permits(const Purpose& current, Level level) const noexcept;
  /// Begins a use within another one, or throws. Returns the outer one.
  const Purpose* begin_inner(const Purpose& purpose, std::string_view function, const Where* where);
  bool begin(const Purpose& purpose) noexcept {
    const Purpose* none = purpose_.load(std::memory_order_relaxed);
    if (none != nullptr ||
        !purpose_.compare_exchange_strong(none, &purpose, std::memory_order_acquire,
                                          std::memory_order_relaxed)) {
      return false;
    }
    owner_.store(caller(), std::memory_order_relaxed);
    return true;
  }

  // Purposes are constants, so another thread may read one that has ended. The owner is null
  // unless there is a purpose, so no thread finds itself in the owner of another one's use.
  std::atomic<const Purpose*> purpose_ = nullptr;
  std::atomic<const void*> owner_ = nullptr;
  const char* object_;
};

/// While it exists, an object is in use for a purpose, which must be a constant. Throws a
/// `TapeError` that names `function` and the current use, if that does not permit this one.
class [[nodiscard]] InUse::Use {
 public:
  Use(InUse& object, const Purpose& purpose, std::string_view function,
      const Where* where = nullptr)
      : object_(object) {
    if (!object.begin(purpose)) outer_ = object.begin_inner(purpose, function, where);
  }
  /// Waits until other callers' uses have ended.
  Use(InUse& object, const Purpose& purpose) noexcept;
  ~Use() {
    if (outer_ == nullptr) object_.owner_.store(nullptr, std::memory_order_relaxed);
    object_.purpose_.store(outer_, std::memory_order_release);
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

 private:
  InUse& object_;
  const Purpose* outer_ = nullptr;
};

/// The purposes for which tapes are in use.
namespace tape_use {

inline constexpr InUse::Purpose recording{InUse::Level::records, "an operation is recorded on it"};
inline constexpr InUse::Purpose differentiating{InUse::Level::open, "derivatives are recorded"};
inline constexpr InUse::Purpose inner_program{
    InUse::Level::open, "the function of a loop, checkpoint or model is recorded"};
inline constexpr InUse::Purpose asking{InUse::Level::open,
                                       "a gradient, value or plan is asked for"};
inline constexpr InUse::Purpose computing{InUse::Level::computes, "a run computes its values"};
inline constexpr InUse::Purpose changing{InUse::Level::computes, "it is cleared or changed", true};

}  // namespace tape_use

/// The purpose of a use in which an object is not used otherwise.
inline constexpr InUse::Purpose call_in_progress{InUse::Level::alone,
                                                 "a call of it is in progress"};

}  // namespace palimpsest
