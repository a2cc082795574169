#include <cstdlib>
#include <string_view>

#include "autodiff/kernels/kernels.h"

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

Kernels choose_level() {
  Kernels chosen;
#ifdef PALIMPSEST_X86_LEVELS
  const char* wish = std::getenv("PALIMPSEST_KERNELS");
  const std::string_view most = wish != nullptr ? wish : "v4_bf16";
  const bool has_v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                      __builtin_cpu_supports("bmi2");
  const bool has_v4 = has_v3 && __builtin_cpu_supports("avx512f") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  if (has_v4 && (most == "v4" || most == "v4_bf16")) {
    chosen = v4::make_kernels();
    chosen.level = "v4";
    if (most == "v4_bf16" && __builtin_cpu_supports("avx512bf16")) {
      v4_bf16::add_gemm_bf16(chosen);
      chosen.level = "v4_bf16";
    }
    return chosen;
  }
  if (has_v3 && most != "base") {
    chosen = v3::make_kernels();
    chosen.level = "v3";
    return chosen;
  }
#endif
  chosen = base::make_kernels();
  chosen.level = "base";
  return chosen;
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
