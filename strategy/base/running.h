#pragma once

#include <atomic>

#include "autodiff/error.h"

namespace palimpsest {

/// While it exists, an object is running. Throws a `TapeError` with the message if it runs already:
/// always on the same thread, and on another one unless both begin at the same moment. An exchange
/// would find that too, but takes as long as a small step.
class Running {
 public:
  Running(std::atomic<bool>& flag, const char* message) : flag_(flag) {
    if (flag_.load(std::memory_order_relaxed)) throw TapeError(message);
    flag_.store(true, std::memory_order_relaxed);
  }
  ~Running() { flag_.store(false, std::memory_order_relaxed); }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  std::atomic<bool>& flag_;
};

}  // namespace palimpsest
