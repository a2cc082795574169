#include "strategy/compile/native/compiling_thread.h"

#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

#include "strategy/compile/native/native_program.h"

namespace palimpsest {
namespace {

class CompilingThread {
 public:
  pid_t process() const { return process_; }

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

  const pid_t process_ = ::getpid();
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<std::shared_ptr<NativeProgram>> programs_;
  std::jthread thread_;
};

/// The thread of this process. It is never destroyed: a forked child has the parent's object, but
/// not its thread, and makes its own.
CompilingThread& compiling_thread() {
  static std::atomic<CompilingThread*> latest = new CompilingThread;
  CompilingThread* found = latest;
  if (found->process() == ::getpid()) return *found;
  auto own = std::make_unique<CompilingThread>();
  if (latest.compare_exchange_strong(found, own.get())) found = own.release();
  return *found;
}

/// Ends the thread with its process.
struct EndOfProcess {
  ~EndOfProcess() { compiling_thread().finish(); }
};

}  // namespace

void compile_later(std::shared_ptr<NativeProgram> program) {
  prepare_libraries();
  compiling_thread();
  static const EndOfProcess end;
  compiling_thread().add(std::move(program));
}

}  // namespace palimpsest
