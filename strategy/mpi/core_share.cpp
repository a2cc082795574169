#include "strategy/mpi/core_share.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>

namespace palimpsest {

CoreSet usable_cores() {
  CoreSet cores;
  cpu_set_t of_process;
  const bool is_known = sched_getaffinity(0, sizeof of_process, &of_process) == 0;
  const auto count = static_cast<std::size_t>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
  for (std::size_t core = 0; core < cores.size(); ++core) {
    cores[core] = is_known ? CPU_ISSET(core, &of_process) : core < count;
  }
  return cores;
}

int share_of_cores(std::span<const CoreSet> sets, std::size_t own) {
  CoreSet shared = sets[own];
  CoreSet before;
  while (shared != before) {
    before = shared;
    for (const CoreSet& set : sets) {
      if ((set & shared).any()) shared |= set;
    }
  }
  const auto processes =
      std::ranges::count_if(sets, [&](const CoreSet& set) { return (set & shared).any(); });
  if (processes == 0) return 1;
  return std::max(1, static_cast<int>(shared.count()) / static_cast<int>(processes));
}

}  // namespace palimpsest
