// Makes calls to the file system fail as described in failing_calls.h. The functions replace those
// of the C library by their symbol names, for the program and for the libraries it uses.
#include "tests/mutations/failing_calls.h"

#include <dlfcn.h>
#include <sys/types.h>

#include <atomic>
#include <cerrno>
#include <cstddef>

namespace palimpsest {
namespace {

std::atomic<bool> is_armed = false;
std::atomic<std::int64_t> left = 0;
std::atomic<const char*> failed = nullptr;

/// Calls the C library's function `name`, unless this call is the one to fail.
template <class Result, class... Arguments>
Result call(const char* name, int error, Result on_error, Arguments... arguments) {
  if (is_armed.load() && left.fetch_sub(1) == 0) {
    failed = name;
    errno = error;
    return on_error;
  }
  using Function = Result (*)(Arguments...);
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name))(arguments...);
}

}  // namespace

void fail_file_call(std::int64_t before) {
  failed = nullptr;
  left = before;
  is_armed = true;
}

const char* end_failing_calls() {
  is_armed = false;
  return failed;
}

}  // namespace palimpsest

using palimpsest::call;

struct iovec;

// The functions have their own C++ names, because headers may declare the others with more
// arguments.
extern "C" {
#define PALIMPSEST_FAILING(result, name, error, on_error, parameters, ...) \
  result failing_##name parameters noexcept asm(#name);                    \
  result failing_##name parameters noexcept {                              \
    return call<result>(#name, error, on_error, __VA_ARGS__);              \
  }

PALIMPSEST_FAILING(int, open, EIO, -1, (const char* path, int flags, unsigned mode), path, flags,
                   mode)
PALIMPSEST_FAILING(int, open64, EIO, -1, (const char* path, int flags, unsigned mode), path, flags,
                   mode)
PALIMPSEST_FAILING(void*, fopen, EIO, nullptr, (const char* path, const char* mode), path, mode)
PALIMPSEST_FAILING(void*, fopen64, EIO, nullptr, (const char* path, const char* mode), path, mode)
PALIMPSEST_FAILING(ssize_t, read, EIO, -1, (int file, void* to, std::size_t n), file, to, n)
PALIMPSEST_FAILING(ssize_t, pread, EIO, -1, (int file, void* to, std::size_t n, off_t at), file, to,
                   n, at)
PALIMPSEST_FAILING(ssize_t, preadv, EIO, -1, (int file, const iovec* to, int n, off_t at), file, to,
                   n, at)
PALIMPSEST_FAILING(ssize_t, pread64, EIO, -1, (int file, void* to, std::size_t n, off_t at), file,
                   to, n, at)
PALIMPSEST_FAILING(ssize_t, preadv64, EIO, -1, (int file, const iovec* to, int n, off_t at), file,
                   to, n, at)
PALIMPSEST_FAILING(ssize_t, write, ENOSPC, -1, (int file, const void* from, std::size_t n), file,
                   from, n)
PALIMPSEST_FAILING(ssize_t, writev, ENOSPC, -1, (int file, const iovec* from, int n), file, from, n)
PALIMPSEST_FAILING(ssize_t, pwritev, ENOSPC, -1, (int file, const iovec* from, int n, off_t at),
                   file, from, n, at)
PALIMPSEST_FAILING(ssize_t, pwritev64, ENOSPC, -1, (int file, const iovec* from, int n, off_t at),
                   file, from, n, at)
PALIMPSEST_FAILING(off_t, lseek64, EIO, -1, (int file, off_t by, int from), file, by, from)
PALIMPSEST_FAILING(int, stat, EIO, -1, (const char* path, void* status), path, status)
PALIMPSEST_FAILING(int, lstat, EIO, -1, (const char* path, void* status), path, status)
PALIMPSEST_FAILING(int, fstat, EIO, -1, (int file, void* status), file, status)
PALIMPSEST_FAILING(int, stat64, EIO, -1, (const char* path, void* status), path, status)
PALIMPSEST_FAILING(int, lstat64, EIO, -1, (const char* path, void* status), path, status)
PALIMPSEST_FAILING(int, fstat64, EIO, -1, (int file, void* status), file, status)
PALIMPSEST_FAILING(int, access, EIO, -1, (const char* path, int mode), path, mode)
PALIMPSEST_FAILING(char*, realpath, EIO, nullptr, (const char* path, char* to), path, to)
PALIMPSEST_FAILING(int, fchmodat, EIO, -1, (int folder, const char* path, unsigned mode, int flags),
                   folder, path, mode, flags)
PALIMPSEST_FAILING(int, flock, ENOLCK, -1, (int file, int what), file, what)
PALIMPSEST_FAILING(int, rename, EIO, -1, (const char* from, const char* to), from, to)
PALIMPSEST_FAILING(int, remove, EIO, -1, (const char* path), path)
PALIMPSEST_FAILING(int, unlink, EIO, -1, (const char* path), path)

#undef PALIMPSEST_FAILING
}
