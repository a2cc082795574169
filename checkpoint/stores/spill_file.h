#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "autodiff/bytes.h"
#include "autodiff/dtype.h"
#include "autodiff/export.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// A part of each record, such as a tensor of the state.
struct RecordPiece {
  Bytes bytes = 0;
  DType dtype = DType::boolean;  ///< only a hint for compression

  bool operator==(const RecordPiece&) const = default;
};

struct SpillOptions {
  /// Lossless, by zstd, after the bytes of numbers are grouped by significance. Blocks that do not
  /// shrink are stored uncompressed.
  bool compress = false;
};

/// Records of equal sizes, such as the states of a loop, in a file in a directory. There are as
/// many slots as are written, and each holds one record. Reads and writes run while the caller
/// continues, on a TBB thread or, when none is available, on a thread that waits for them.
///
/// The bytes passed to `write` and the buffers passed to `prefetch` belong to the caller. They must
/// stay valid, with the bytes unchanged and the buffers untouched, until `wait` for the slot or
/// `finish` returns. Only the list of pieces is copied. `memory_bytes` tells how much memory the
/// file itself takes.
///
/// The file, `palimpsest-<16 digits>.spill`, is locked while it is in use, and removed with this
/// object. A file that a killed process left behind is removed by the next SpillFile in the same
/// directory. If a file is removed, truncated or changed while it is in use, the next `wait` that
/// it affects throws. Bytes that were not written are never returned.
///
/// Thread-safe, but only one thread at a time may use a slot.
class SpillFile {
 public:
  /// For records of these pieces. Throws `FileError` naming the directory when no file can be made
  /// there.
  SpillFile(const std::string& directory, std::vector<RecordPiece> record,
            SpillOptions options = {});
  /// Skips operations that have not begun, waits for the running one, and removes the file.
  ~SpillFile();
  SpillFile(const SpillFile&) = delete;
  SpillFile& operator=(const SpillFile&) = delete;

  /// Begins to write a record, the state before `step`, into a slot. It replaces the slot's
  /// content. Throws `ArgumentError` for pieces of other sizes.
  void write(std::uint32_t slot, std::uint64_t step,
             std::span<const std::span<const std::byte>> pieces);
  /// Begins to read the record that was last written into a slot, even if that write has not ended
  /// yet. Throws `ArgumentError` when it is not the record of `step`, and for pieces of other
  /// sizes.
  void prefetch(std::uint32_t slot, std::uint64_t step,
                std::span<const std::span<std::byte>> pieces);

  /// Waits for the operations of a slot. Rethrows their error, which names file, slot, step and
  /// what to do: `EnvironmentError` when there is no room, otherwise `FileError`. Later operations
  /// on the same slot have then been skipped.
  void wait(std::uint32_t slot);
  /// Waits for all operations. Throws one of their errors, if there are any.
  void finish();

  /// The name of the file, with its directory.
  const std::string& path() const;
  /// Bytes written to and read from the disk, by operations that have ended.
  Bytes bytes_written() const;
  Bytes bytes_read() const;

  /// An upper bound on the memory of a file of so many slots while so many calls of `write` and
  /// `prefetch` are under way. It is about 10 KiB plus 17 bytes per slot, plus the memory of
  /// compression. The latter is measured and comes to 1.2 MiB for records of 256 KiB and more.
  static Bytes memory_bytes(std::size_t slots, std::span<const RecordPiece> record,
                            std::size_t under_way, SpillOptions options = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace palimpsest
