#include "autodiff/file_size_limit.h"

#include <sys/resource.h>

#include <ctime>

#include "autodiff/bytes.h"

namespace palimpsest {
namespace {

sigset_t of_file_size() {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGXFSZ);
  return signals;
}

bool is_pending() {
  sigset_t pending;
  ::sigpending(&pending);
  return ::sigismember(&pending, SIGXFSZ) == 1;
}

}  // namespace

FileSizeScope::FileSizeScope() : was_pending_(is_pending()) {
  const sigset_t signals = of_file_size();
  ::pthread_sigmask(SIG_BLOCK, &signals, &before_);
}

FileSizeScope::~FileSizeScope() {
  const sigset_t signals = of_file_size();
  // The system has sent it to this thread.
  constexpr timespec at_once{};
  if (!was_pending_ && is_pending()) ::sigtimedwait(&signals, nullptr, &at_once);
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

std::string file_size_hint() {
  rlimit limit;
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return {};
  return "; files may have " + format_bytes(static_cast<Bytes>(limit.rlim_cur)) +
         ", see `ulimit -f`";
}

}  // namespace palimpsest
