#pragma once

#include <sys/uio.h>

#include <span>

#include "autodiff/bytes.h"

namespace palimpsest {

/// What reading or writing came to.
struct Transfer {
  Bytes bytes = 0;
  int error = 0;  ///< `errno` of what stopped it; 0 also where the file ended
};

/// Writes `pieces` one after another from `offset` of the open file on, in as many calls as it
/// takes. What goes beyond the process's limit for files (`ulimit -f`) is not
/// begun and gives `EFBIG`, not the signal that ends processes.
Transfer write_at(int file, Bytes offset, std::span<const iovec> pieces);

/// Reads into `pieces` one after another, likewise.
Transfer read_at(int file, Bytes offset, std::span<const iovec> pieces);

}  // namespace palimpsest
