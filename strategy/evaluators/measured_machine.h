#pragma once

#include <string>

#include "autodiff/export.h"
#include "checkpoint/machine.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// This machine, measured on one thread:
///
/// - products in every dtype;
/// - convolutions with their adjoints, softmax and exponential functions, in f32 and f64;
/// - sums of arrays that fit each cache, and of some that fit none;
/// - overhead of nodes of one element.
///
/// The first call in a process measures, in less than a second. It temporarily takes some 130 to
/// 260 MiB, but at most a quarter of the free memory. Later calls return the same numbers.
const Machine& measured_machine();

/// The machine in a file (see checkpoint/planning_files.h). If there is no file yet, this machine
/// is measured and written to it. A file without rates of kinds of work is used unchanged: remove
/// it to have them measured. Throws as `read_machine` and `write_machine`.
Machine measured_machine(const std::string& path);

}  // namespace palimpsest
