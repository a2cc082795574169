#include "examples/support/resident.h"

#include <malloc.h>

#include <fstream>
#include <string>

namespace examples {

std::int64_t peak_resident() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    std::int64_t kilobytes = 0;
    if (word == "VmHWM:" && status >> kilobytes) return kilobytes * 1024;
  }
  return 0;
}

void restart_peak_resident() {
  // What the allocator keeps for later would hide growth: new memory would come out of it.
  malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << "5";
}

}  // namespace examples
