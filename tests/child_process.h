#pragma once

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <stdexcept>
#include <string>

namespace palimpsest {

/// A child process that runs one hidden test case (`[.]`) of this program. The test case reads its
/// task from the environment variable `PALIMPSEST_TEST_CHILD`.
class ChildProcess {
 public:
  /// The child calls `before` before it becomes this program.
  ChildProcess(const char* test_case, const std::string& what, void (*before)() = nullptr) {
    setenv(variable, what.c_str(), 1);
    process_ = fork();
    if (process_ == 0) {
      if (before != nullptr) before();
      dup2(STDERR_FILENO, STDOUT_FILENO);  // keeps the child's totals out of this program's output
      execl("/proc/self/exe", "child", test_case, static_cast<char*>(nullptr));
      _exit(127);
    }
    unsetenv(variable);
    if (process_ < 0) throw std::runtime_error("no process can be made");
  }
  ~ChildProcess() {
    if (process_ > 0) kill();
  }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// The value that the parent passed for `what`; empty when this process is not a child.
  static std::string task() {
    const char* what = getenv(variable);
    return what == nullptr ? "" : what;
  }

  /// Kills the child, as the system does when memory runs out.
  void kill() {
    ::kill(process_, SIGKILL);
    wait();
  }
  /// The exit code; -1 when a signal ended the child.
  int wait() {
    int status = 0;
    waitpid(process_, &status, 0);
    process_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  static constexpr const char* variable = "PALIMPSEST_TEST_CHILD";
  pid_t process_;
};

}  // namespace palimpsest
