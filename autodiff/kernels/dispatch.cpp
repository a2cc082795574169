#include <cstdlib>
#include <iterator>
#include <string>
#include <string_view>

#include "autodiff/error.h"
#include "autodiff/kernels/kernels.h"
#include "autodiff/kernels/processor.h"

namespace palimpsest {

namespace base {
Kernels make_kernels();
}
namespace v3 {
Kernels make_kernels();
}
namespace v4 {
Kernels make_kernels();
}
namespace v4_bf16 {
void add_gemm_bf16(Kernels& kernels);
}

#ifdef PALIMPSEST_MATMUL_ONEDNN
void add_onednn(Kernels& kernels);
#endif

namespace {

struct Level {
  const char* name;
  Kernels (*make)();
};

#ifdef PALIMPSEST_LEVEL_V4_BF16
Kernels make_v4_bf16() {
  Kernels kernels = v4::make_kernels();
  v4_bf16::add_gemm_bf16(kernels);
  return kernels;
}
#endif

/// The levels of this build, in ascending order.
constexpr Level levels[] = {
#ifdef PALIMPSEST_LEVEL_BASE
    {"base", base::make_kernels},
#endif
#ifdef PALIMPSEST_LEVEL_V3
    {"v3", v3::make_kernels},
#endif
#ifdef PALIMPSEST_LEVEL_V4
    {"v4", v4::make_kernels},
#endif
#ifdef PALIMPSEST_LEVEL_V4_BF16
    {"v4_bf16", make_v4_bf16},
#endif
};

std::string list(const auto& levels, auto name_of) {
  std::string text;
  for (const auto& level : levels) text += (text.empty() ? "" : ", ") + std::string(name_of(level));
  return text;
}

/// Position of `name` among all levels.
std::size_t rank_of(std::string_view name) {
  std::size_t rank = 0;
  for (const std::string_view level : kernel_level_names) {
    if (level == name) return rank;
    ++rank;
  }
  throw ArgumentError("[kernels] PALIMPSEST_KERNELS is " + std::string(name) + "; use one of " +
                      list(kernel_level_names, [](const char* level) { return level; }));
}

Kernels choose_level() {
  const char* const named = std::getenv("PALIMPSEST_KERNELS");
  const char* const wish = named != nullptr && *named != '\0' ? named : nullptr;
  const std::size_t most = rank_of(wish != nullptr ? wish : std::rbegin(levels)->name);
  const Level* best = nullptr;
  for (const Level& level : levels) {
    if (rank_of(level.name) <= most && processor_has(level.name)) best = &level;
  }
  if (best == nullptr) {
    throw EnvironmentError("[kernels] this build only has kernels for " +
                           list(levels, [](const Level& level) { return level.name; }) + ", but " +
                           (wish != nullptr
                                ? "PALIMPSEST_KERNELS asks for at most " + std::string(wish)
                                : "this processor does not run them") +
                           "; build the library with -Dkernels=all");
  }
  Kernels kernels = best->make();
  kernels.level = best->name;
  return kernels;
}

}  // namespace

const Kernels& kernels() {
  static const Kernels chosen = [] {
    Kernels kernels = choose_level();
#ifdef PALIMPSEST_MATMUL_ONEDNN
    add_onednn(kernels);
#endif
    return kernels;
  }();
  return chosen;
}

}  // namespace palimpsest
