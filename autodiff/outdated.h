#pragma once

#include <cstdint>
#include <map>

#include "autodiff/export.h"
#include "autodiff/storage_version.h"
#include "autodiff/wengert_list.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// A value that was made from a leaf before the library wrote into that leaf (see `note_write`).
struct OutdatedValue {
  Buffer buffer;     ///< null if a budget forced it out
  ValueId leaf;      ///< one of those that were written
  const char* call;  ///< that wrote into it
};

/// The values of a tape that are out of date. They are not present, so runs do not read them.
struct OutdatedValues {
  std::map<ValueId, OutdatedValue> values = {};
  std::uint64_t version = latest_version();  ///< that the tape has noticed
  bool takes_memory = false;                 ///< more than that of a few bytes each
};

}  // namespace palimpsest
