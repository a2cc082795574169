#pragma once

/// Marks the namespace of a header whose functions and classes the shared library exports. All
/// other symbols are hidden.
#if defined(__GNUC__)
#define PALIMPSEST_EXPORT __attribute__((visibility("default")))
#else
#define PALIMPSEST_EXPORT
#endif
