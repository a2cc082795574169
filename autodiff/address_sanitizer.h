#pragma once

// Defined by the sanitizer's runtime; weak, so the program also links without it.
extern "C" void __asan_init() __attribute__((weak));  // NOLINT

namespace palimpsest {

/// True in a process instrumented by AddressSanitizer. It detects an access past the end of a block
/// only if the block comes from the heap and ends exactly where the data ends.
inline bool has_address_sanitizer() { return &__asan_init != nullptr; }

}  // namespace palimpsest
