#pragma once

// Its runtime has this; a weak name may be missing.
extern "C" void __asan_init() __attribute__((weak));  // NOLINT(bugprone-reserved-identifier)

namespace palimpsest {

/// True in a process that AddressSanitizer watches. It sees an access past a block only where the
/// block is the heap's and ends where it should.
inline bool has_address_sanitizer() { return &__asan_init != nullptr; }

}  // namespace palimpsest
