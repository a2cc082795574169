#include "checkpoint/stores/transfer.h"

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstddef>

namespace palimpsest {
namespace {

template <class Call>
Transfer transfer(Call call, int file, Bytes offset, std::span<const iovec> pieces) {
  Transfer done;
  std::size_t skipped = 0;  // bytes of the first piece
  while (true) {
    while (!pieces.empty() && skipped >= pieces.front().iov_len) {
      skipped -= pieces.front().iov_len;
      pieces = pieces.subspan(1);
    }
    if (pieces.empty()) return done;
    const iovec& first = pieces.front();
    const iovec rest{static_cast<std::byte*>(first.iov_base) + skipped, first.iov_len - skipped};
    const bool whole = skipped == 0;
    const auto count = static_cast<int>(std::min<std::size_t>(pieces.size(), IOV_MAX));
    const ssize_t bytes =
        call(file, whole ? pieces.data() : &rest, whole ? count : 1, offset + done.bytes);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) done.error = errno;
    if (bytes <= 0) return done;
    done.bytes += bytes;
    skipped += static_cast<std::size_t>(bytes);
  }
}

}  // namespace

Transfer write_at(int file, Bytes offset, std::span<const iovec> pieces) {
  std::size_t end = static_cast<std::size_t>(offset);
  for (const iovec& piece : pieces) end += piece.iov_len;
  rlimit limit;
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && end > limit.rlim_cur) return {0, EFBIG};
  return transfer(pwritev, file, offset, pieces);
}

Transfer read_at(int file, Bytes offset, std::span<const iovec> pieces) {
  return transfer(preadv, file, offset, pieces);
}

}  // namespace palimpsest
