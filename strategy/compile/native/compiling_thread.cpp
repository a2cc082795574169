#include "strategy/compile/native/compiling_thread.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

#include "strategy/compile/native/native_program.h"

namespace palimpsest {
namespace {

class CompilingThread {
 public:
  void add(std::shared_ptr<NativeProgram> program) {
    {
      const std::lock_guard lock(mutex_);
      programs_.push_back(std::move(program));
      if (!thread_.joinable()) {
        thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
      }
    }
    changed_.notify_one();
  }

 private:
  void run(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (changed_.wait(lock, stop, [&] { return !programs_.empty(); })) {
      if (stop.stop_requested()) return;
      std::shared_ptr<NativeProgram> program = std::move(programs_.front());
      programs_.pop_front();
      lock.unlock();
      // If nobody else holds it, the program cannot run again.
      if (program.use_count() > 1) program->make({.idle = true, .stop = stop});
      program.reset();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<std::shared_ptr<NativeProgram>> programs_;
  std::jthread thread_;  // the last member: it ends before the others are destroyed
};

}  // namespace

void compile_later(std::shared_ptr<NativeProgram> program) {
  prepare_libraries();
  static CompilingThread thread;
  thread.add(std::move(program));
}

}  // namespace palimpsest
