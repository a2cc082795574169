#include "autodiff/in_use.h"

#include <string>
#include <thread>

namespace palimpsest {
namespace {

// Every recorded node reads these, so they are addressed without a call.
[[gnu::tls_model("initial-exec")]] thread_local const void* innermost_user_call = nullptr;
[[gnu::tls_model("initial-exec")]] thread_local char this_thread_as_caller;

}  // namespace

UserCall::UserCall() noexcept : outer_(innermost_user_call) { innermost_user_call = this; }
UserCall::~UserCall() { innermost_user_call = outer_; }

const void* InUse::caller() noexcept {
  return innermost_user_call != nullptr ? innermost_user_call : &this_thread_as_caller;
}

bool InUse::permits(const Purpose& current, Level level) const noexcept {
  return current.level != Level::alone && level != Level::alone && level >= current.level &&
         owner_.load(std::memory_order_relaxed) == caller();
}

const InUse::Purpose* InUse::begin_inner(const Purpose& purpose, std::string_view function,
                                         const Where* where) {
  while (true) {
    const Purpose* const current = purpose_.load(std::memory_order_relaxed);
    if (current == nullptr) {  // another thread's use has just ended
      if (begin(purpose)) return nullptr;
      continue;
    }
    if (purpose.is_first || !permits(*current, purpose.level)) refuse(*current, function, where);
    purpose_.store(&purpose, std::memory_order_relaxed);
    return current;
  }
}

InUse::Use::Use(InUse& object, const Purpose& purpose) noexcept : object_(object) {
  while (!object.begin(purpose)) {
    const Purpose* const current = object.purpose_.load(std::memory_order_relaxed);
    if (current != nullptr && object.permits(*current, purpose.level)) {
      object.purpose_.store(&purpose, std::memory_order_relaxed);
      outer_ = current;
      return;
    }
    std::this_thread::yield();
  }
}

void InUse::refuse(const Purpose& current, std::string_view function, const Where* where) const {
  const std::string object = object_;
  const std::string message =
      "the " + object + " is in use: " + current.what + "; call " + std::string(function) +
      " before or after that, not in a function that is called meanwhile, and give each thread a " +
      object + " of its own";
  if (where != nullptr) throw TapeError(function, message, *where);
  throw TapeError("[" + std::string(function) + "] " + message);
}

}  // namespace palimpsest
