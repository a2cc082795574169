#include <cstdio>

#include "autodiff/kernels/processor.h"

// Run by the build: prints the best level that this processor supports.
int main() {
  const char* best = "";
  for (const char* level : palimpsest::kernel_level_names) {
    if (palimpsest::processor_has(level)) best = level;
  }
  std::fputs(best, stdout);
}
