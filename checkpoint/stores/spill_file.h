#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "autodiff/bytes.h"
#include "autodiff/dtype.h"

namespace palimpsest {

/// A part of each record, such as a tensor of the state.
struct RecordPiece {
  Bytes bytes = 0;
  DType dtype = DType::boolean;  ///< what it is does not matter but for compressing it well

  bool operator==(const RecordPiece&) const = default;
};

struct SpillOptions {
  /// Without loss, by zstd, after the bytes of numbers are sorted by significance. Blocks that do
  /// not shrink are stored as they are.
  bool compress = false;
};

/// Records of the same sizes, such as the states of a loop, in a file of a directory: as many slots
/// as are written, each of which holds one record. Writing and reading happen while the caller goes
/// on, on a thread of TBB's or, where none comes, on one that waits for them.
///
/// The bytes given to `write` and the room given to `prefetch` are the caller's and must stay, the
/// bytes unchanged and the room untouched, until `wait` for the slot or `finish` returns: nothing
/// is copied but the list of pieces. What the file itself takes of memory is `memory_bytes`.
///
/// The file, `palimpsest-<16 digits>.spill`, is locked while it is in use and removed when this
/// goes. One that a killed process has left behind is removed by the next SpillFile in the same
/// directory. A file that is removed, cut short or changed while it is in use is an error of the
/// next `wait` that it concerns: no byte that was not written is ever taken for one that was.
///
/// Any thread may call any member, for one slot one thread at a time.
class SpillFile {
 public:
  /// For records of such pieces. Throws `FileError` naming the directory when no file can be made
  /// there.
  SpillFile(const std::string& directory, std::vector<RecordPiece> record,
            SpillOptions options = {});
  /// Leaves out what has not begun, waits for what has, and removes the file.
  ~SpillFile();
  SpillFile(const SpillFile&) = delete;
  SpillFile& operator=(const SpillFile&) = delete;

  /// Begins to write a record, the state before `step`, into a slot, in place of what it holds.
  /// Throws `ArgumentError` for pieces of other sizes.
  void write(std::uint32_t slot, std::uint64_t step,
             std::span<const std::span<const std::byte>> pieces);
  /// Begins to read the record that was last written into a slot, also when that has not ended yet.
  /// Throws `ArgumentError` when it is not that of `step`, and for pieces of other sizes.
  void prefetch(std::uint32_t slot, std::uint64_t step,
                std::span<const std::span<std::byte>> pieces);

  /// Waits for what was begun for a slot. Throws what went wrong with it, naming file, slot, step
  /// and what to do: `EnvironmentError` when there is no room, else `FileError`. What followed on
  /// the same slot has not been done then.
  void wait(std::uint32_t slot);
  /// Waits for all that was begun. Of several errors it throws one.
  void finish();

  const std::string& path() const;
  /// Gone to the disk and come from it, in what has ended.
  Bytes bytes_written() const;
  Bytes bytes_read() const;

  /// Bytes of memory that a file of so many slots takes at most while so many calls of `write` and
  /// `prefetch` are under way: some 10 KiB, 17 bytes a slot, and where it compresses what that
  /// takes, which is tried once and comes to 1.2 MiB for records of 256 KiB and more.
  static Bytes memory_bytes(std::size_t slots, std::span<const RecordPiece> record,
                            std::size_t under_way, SpillOptions options = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace palimpsest
