#pragma once

#include <cstdint>

#include "autodiff/export.h"
#include "autodiff/tape.h"

namespace palimpsest PALIMPSEST_EXPORT {  // for palimpsest-mpi

/// A summary of a recorded tape, short enough to compare over processes. Unlike the fingerprint for
/// finding plans, it has the same meaning in every process: it identifies operations by their
/// names.
struct TapeDigest {
  /// Operations, their inputs, dtypes and numbers of axes. Ranks have these in common even if their
  /// shards differ in size.
  std::uint64_t structure = 0;
  std::uint64_t shapes = 0;  ///< of all values
  NodeId nodes = 0;
};

TapeDigest digest_of(const Tape& tape);

}  // namespace palimpsest
