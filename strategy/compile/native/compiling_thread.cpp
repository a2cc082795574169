#include "strategy/compile/native/compiling_thread.h"

#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <exception>
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

  void finish() {
    if (!thread_.joinable()) return;
    thread_.request_stop();
    thread_.join();
  }

 private:
  static void make(NativeProgram& program, const std::stop_token& stop) {
    try {
      program.make({.idle = true, .stop = stop});
    } catch (const std::exception& error) {  // memory may be short
      program.fail(error.what());
    }
  }

  void run(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (changed_.wait(lock, stop, [&] { return !programs_.empty(); })) {
      if (stop.stop_requested()) return;
      std::shared_ptr<NativeProgram> program = std::move(programs_.front());
      programs_.pop_front();
      lock.unlock();
      // If nobody else holds it, the program cannot run again.
      if (program.use_count() > 1) make(*program, stop);
      program.reset();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<std::shared_ptr<NativeProgram>> programs_;
  std::jthread thread_;
};

/// Never destroyed, since a forked child has the object but not the thread.
CompilingThread& compiling_thread() {
  static auto* const thread = new CompilingThread;
  return *thread;
}

/// Ends the thread with the process that has started it.
struct EndOfProcess {
  ~EndOfProcess() {
    if (::getpid() == process) compiling_thread().finish();
  }
  pid_t process = ::getpid();
};

}  // namespace

void compile_later(std::shared_ptr<NativeProgram> program) {
  prepare_libraries();
  compiling_thread();
  static const EndOfProcess end;
  compiling_thread().add(std::move(program));
}

}  // namespace palimpsest
