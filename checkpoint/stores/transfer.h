#pragma once

#include <sys/uio.h>

#include <span>

#include "autodiff/bytes.h"

namespace palimpsest {

/// Result of a read or a write.
struct Transfer {
  Bytes bytes = 0;
  int error = 0;  ///< `errno` of the failure; 0 also at the end of the file
};

/// Writes `pieces` one after another to the open file, from `offset` on, in as many calls as
/// necessary. A write beyond the process's file size limit (`ulimit -f`) is not begun. It returns
/// `EFBIG` instead of raising the signal that ends the process.
Transfer write_at(int file, Bytes offset, std::span<const iovec> pieces);

/// Reads into `pieces` one after another, from `offset` on.
Transfer read_at(int file, Bytes offset, std::span<const iovec> pieces);

}  // namespace palimpsest
