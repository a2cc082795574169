#pragma once

#include <string>

#include "autodiff/bytes.h"
#include "autodiff/export.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// Seconds to write a record to a disk and to read it.
struct DiskSeconds {
  double write = 0;
  double read = 0;
};

/// Measures the times of records of `bytes` in a directory that keeps `total` bytes of them at a
/// time. Takes about half a second and 256 KiB of memory.
///
/// When `total` is small compared with the machine's free memory, the system's cache takes the
/// records and returns them, and the disk never delays a run. Then the cache is measured, otherwise
/// the disk itself. Throws what `SpillFile` does.
DiskSeconds measure_disk(const std::string& directory, Bytes bytes, Bytes total);

}  // namespace palimpsest
