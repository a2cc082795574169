#pragma once

#include <bitset>
#include <span>

namespace palimpsest {

/// A set of core numbers of a machine that a process may use.
using CoreSet = std::bitset<1024>;

/// The cores that this process may use. If the system does not tell, all cores of the machine.
CoreSet usable_cores();

/// The number of cores that process `own` has for itself. `sets` are the cores of all processes of
/// its machine. Processes that may use a common core, directly or through others, divide their
/// cores evenly. At least 1.
int share_of_cores(std::span<const CoreSet> sets, std::size_t own);

}  // namespace palimpsest
