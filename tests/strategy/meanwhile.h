#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "autodiff/error.h"

namespace palimpsest {

/// A call that a function of the user makes while the library runs, once.
class Meanwhile {
 public:
  Meanwhile() = default;
  Meanwhile(std::function<void()> call, bool on_another_thread)
      : call_(std::move(call)), on_another_thread_(on_another_thread) {}

  /// Makes the call, unless it was made before.
  void operator()() {
    if (call_ == nullptr || made_.exchange(true)) return;
    if (!on_another_thread_) return make();
    std::thread([this] { make(); }).join();
  }

  bool was_made() const { return made_; }
  /// How the call ended: "TapeError", another error with its message, or empty.
  const std::string& end() const { return end_; }

 private:
  void make() {
    try {
      call_();
    } catch (const TapeError&) {
      end_ = "TapeError";
    } catch (const std::exception& error) {
      end_ = error.what();
    }
  }

  std::function<void()> call_;
  bool on_another_thread_ = false;
  std::atomic<bool> made_ = false;
  std::string end_;
};

}  // namespace palimpsest
