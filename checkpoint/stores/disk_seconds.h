#pragma once

#include <string>

#include "autodiff/bytes.h"

namespace palimpsest {

/// What it takes to write a record to a disk and to read it.
struct DiskSeconds {
  double write = 0;
  double read = 0;
};

/// Measures, in about half a second and with 256 KiB of memory, what records of `bytes` take in
/// a directory when `total` bytes of them are kept there at a time.
///
/// Where these are few beside the memory that the machine has to spare, it is the system's cache
/// that takes them and gives them back, and the disk never makes a run wait: then that is what is
/// measured. Otherwise it is the disk itself. Throws what `SpillFile` does.
DiskSeconds measure_disk(const std::string& directory, Bytes bytes, Bytes total);

}  // namespace palimpsest
