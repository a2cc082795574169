#include "autodiff/usable_threads.h"

#include <oneapi/tbb/global_control.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <typeinfo>
#include <vector>

#include "autodiff/error.h"

namespace palimpsest {
namespace {

using Control = tbb::global_control;

/// A thread that only waits.
struct TrialThread {
  pthread_t handle{};
  std::atomic<pid_t> id = 0;
  const std::atomic<bool>* ends = nullptr;

  static void* run(void* object) {
    auto& self = *static_cast<TrialThread*>(object);
    self.id = static_cast<pid_t>(::syscall(SYS_gettid));
    self.id.notify_one();
    self.ends->wait(false);
    return nullptr;
  }
};

/// Waits until the system no longer counts an ended thread. It does so for a moment after a join.
void wait_until_gone(pid_t thread) {
  constexpr int most = 10'000;  // another thread may have got the number
  for (int i = 0; i < most && ::syscall(SYS_tgkill, ::getpid(), thread, 0) == 0; ++i) {
    ::sched_yield();
  }
}

struct Trial {
  int most = INT_MAX;   ///< threads, with the caller's; or at least as many as oneTBB wants
  std::string problem;  ///< why there are no more
  const Control* limit = nullptr;
};

/// Starts as many threads at once as oneTBB would, with stacks as large as theirs.
Trial try_threads() {
  const auto wanted = static_cast<int>(Control::active_value(Control::max_allowed_parallelism));
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, Control::active_value(Control::thread_stack_size));
  std::atomic<bool> ends = false;
  std::vector<std::unique_ptr<TrialThread>> started;
  int error = 0;
  while (error == 0 && std::ssize(started) < wanted - 1) {
    auto thread = std::make_unique<TrialThread>();
    thread->ends = &ends;
    error = ::pthread_create(&thread->handle, &attributes, TrialThread::run, thread.get());
    if (error == 0) started.push_back(std::move(thread));
  }
  ::pthread_attr_destroy(&attributes);
  for (const auto& thread : started) thread->id.wait(0);
  ends = true;
  ends.notify_all();
  for (const auto& thread : started) {
    ::pthread_join(thread->handle, nullptr);
    wait_until_gone(thread->id);
  }
  if (error == 0) return {};
  const int most = static_cast<int>(std::ssize(started)) + 1;
  return {most, "the system starts " + std::to_string(most - 1) + " of " +
                    std::to_string(wanted - 1) +
                    " more threads: " + std::generic_category().message(error) +
                    "; raise the limits that `ulimit -u` and `ulimit -v` show"};
}

const Trial& trial() {
  static const Trial made = [] {
    Trial found = try_threads();
    // It is never destroyed: at the end of the process it would have oneTBB start threads.
    if (found.most < INT_MAX) {
      found.limit =
          new Control(Control::max_allowed_parallelism, static_cast<std::size_t>(found.most));
    }
    return found;
  }();
  return made;
}

}  // namespace

int usable_threads() {
  trial();
  return static_cast<int>(Control::active_value(Control::max_allowed_parallelism));
}

bool starts_no_threads() { return trial().most == 1; }

std::string thread_problem(int threads) {
  if (threads == 1) return {};
  const Trial& known = trial();
  return threads == 0 || threads > known.most ? known.problem : std::string();
}

void rethrow_with_type() {
  try {
    throw;
  } catch (const std::runtime_error& error) {
    const std::string_view text = error.what();
    const bool is_of_tbb =
        typeid(error) == typeid(std::runtime_error) && text.starts_with("pthread_create");
    if (!is_of_tbb) throw;
    throw EnvironmentError("[threads] the system starts no more threads (" + std::string(text) +
                           "); raise the limit that `ulimit -u` shows, or set threads to 1");
  }
}

}  // namespace palimpsest
