#pragma once

#include <string_view>

namespace palimpsest {

/// The instruction-set levels that kernels are compiled for. Each includes all preceding ones.
inline constexpr const char* kernel_level_names[] = {"base", "v3", "v4", "v4_bf16"};

/// Whether this processor supports the instructions of a level.
inline bool processor_has(std::string_view level) {
#ifdef __x86_64__
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi2");
  const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  if (level == "v3") return v3;
  if (level == "v4") return v4;
  if (level == "v4_bf16") return v4 && __builtin_cpu_supports("avx512bf16");
#endif
  return level == "base";
}

}  // namespace palimpsest
