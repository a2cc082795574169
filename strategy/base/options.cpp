#include "strategy/base/options.h"

#include <algorithm>
#include <array>
#include <string>

#include "autodiff/enumerators.h"
#include "autodiff/error.h"
#include "autodiff/usable_threads.h"
#include "strategy/base/enumerators.h"

namespace palimpsest {

std::string_view name_of(NativeCode native) {
  static constexpr std::array<std::string_view, 3> names{"off", "automatic", "at_once"};
  return names[static_cast<std::size_t>(native)];
}

void check(const RunOptions& options) {
  checked_threads(options.threads);
  check(options.machine);
  require_enumerator(options.memory, enumerators<AllocationPolicy>, "[run] RunOptions::memory");
  require_enumerator(options.native, enumerators<NativeCode>, "[run] RunOptions::native");
  if (options.memory_budget < 0) {
    throw ArgumentError("[run] the memory budget is " + std::to_string(options.memory_budget) +
                        " bytes; give a positive number, such as 256_MiB");
  }
}

int checked_threads(int threads) {
  if (threads < 0) {
    throw ArgumentError("[run] cannot use " + std::to_string(threads) +
                        " threads; give a positive number, or 0 for one per core");
  }
  if (threads == 1) return 1;  // the first question to oneTBB takes 0.1 ms
  // oneTBB prints a warning when an arena is larger than its workers can ever fill.
  const int most = usable_threads();
  return threads > 0 ? std::min(threads, most) : most;
}

}  // namespace palimpsest
