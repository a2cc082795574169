#pragma once

#include <string>

#include "checkpoint/machine.h"

namespace palimpsest {

/// This machine, as one thread of it finds it: products in every type, convolutions with their
/// adjoints and softmax and exponential functions in f32 and f64, sums of arrays that fit each
/// cache and of some that fit none, and nodes of one element. Measured at the first call in a
/// process, in less than a second and, for that time, some 130 to 260 MiB, but at most a quarter of
/// the memory that is free; later calls return the same numbers.
const Machine& measured_machine();

/// The machine in a file (see checkpoint/machine_file.h); where there is none yet, this machine,
/// which is written there. A file without rates of kinds of work is taken as it is: remove it to
/// have them measured. Throws as `read_machine` and `write_machine`.
Machine measured_machine(const std::string& path);

}  // namespace palimpsest
