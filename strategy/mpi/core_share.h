#pragma once

#include <bitset>
#include <span>

namespace palimpsest {

/// Cores of a machine, by their numbers: those that a process may use.
using CoreSet = std::bitset<1024>;

/// Of this process, as far as the system tells; without, those that there are.
CoreSet usable_cores();

/// How many cores the process has for itself whose set is `sets[own]`, where these are the
/// processes of its machine: those that may use a core in common, directly or through others, share
/// theirs out evenly. At least 1.
int share_of_cores(std::span<const CoreSet> sets, std::size_t own);

}  // namespace palimpsest
