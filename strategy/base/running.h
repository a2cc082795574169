#pragma once

#include <atomic>

#include "autodiff/error.h"

namespace palimpsest {

/// While it exists, an object is running. Throws a `TapeError` with the message if it runs already,
/// on this thread or on another one.
class Running {
 public:
  Running(std::atomic<bool>& flag, const char* message) : flag_(flag) {
    if (flag_.exchange(true, std::memory_order_acquire)) throw TapeError(message);
  }
  ~Running() { flag_.store(false, std::memory_order_release); }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  std::atomic<bool>& flag_;
};

}  // namespace palimpsest
