#pragma once

#include <sys/uio.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "autodiff/bytes.h"
#include "checkpoint/stores/compression.h"
#include "checkpoint/stores/locked_file.h"
#include "checkpoint/stores/spill_file.h"

namespace palimpsest {

/// The pieces of a record, to be read from or written to.
using ConstPieces = std::span<const std::span<const std::byte>>;
using Pieces = std::span<const std::span<std::byte>>;

/// Records of equal sizes in a file, each in a slot of its own. Reads and writes run on the calling
/// thread.
///
/// A record is its pieces one after another, cut into blocks. Each block in the file has a header
/// that identifies the block and the write it belongs to, and a checksum of the header and the
/// block's bytes. So a block is never mistaken for another one, nor for what was in its place
/// before. Compressed blocks leave a hole in the rest of their place. Not thread-safe.
class RecordFile {
 public:
  /// Identifies a record. `read` checks it, and errors name it.
  struct Name {
    std::uint32_t slot;
    std::uint64_t step;
    std::uint64_t writing;  ///< a number that no other `write` to the file has
  };

  /// Throws `FileError` when no file can be made in the directory.
  RecordFile(const std::string& directory, std::vector<RecordPiece> record, bool compress);

  /// Throws `EnvironmentError` when there is no room, and `FileError`.
  void write(const Name& name, ConstPieces pieces);
  /// Throws `FileError` when the bytes are not those that were written.
  void read(const Name& name, Pieces pieces);

  const std::string& path() const { return file_.path(); }
  int descriptor() const { return file_.descriptor(); }
  std::span<const RecordPiece> record() const { return record_; }
  /// Bytes of the file that each record takes.
  Bytes slot_bytes() const { return slot_bytes_; }
  /// Bytes written to and read from the file so far. Thread-safe.
  Bytes bytes_written() const { return bytes_written_; }
  Bytes bytes_read() const { return bytes_read_; }

  /// Bytes of memory that compression takes, measured by a first use.
  static Bytes compression_bytes(std::span<const RecordPiece> record);

  /// Size of a record's blocks; the last one is shorter.
  static constexpr Bytes block_bytes = 256_KiB;

 private:
  struct Header;
  struct Block;
  Block block(const Name& name, Bytes index) const;
  Header header(const Name& name, const Block& block) const;
  std::uint64_t checksum(const Header& header, std::span<const iovec> content) const;
  template <class Byte>
  void cut(const Block& block, std::span<const std::span<Byte>> pieces);
  /// Calls `move(part, width, shuffled)` for each part of the block that was cut, with its place in
  /// the block before compression.
  template <class Move>
  void each_part(Move move);
  void write_block(const Name& name, const Block& block, ConstPieces pieces);
  void read_block(const Name& name, const Block& block, Pieces pieces);
  void read_all(const Name& name, Bytes offset, std::span<const iovec> pieces);
  void check_there(const Name& name) const;

  LockedFile file_;
  std::vector<RecordPiece> record_;
  Bytes record_bytes_ = 0;
  Bytes slot_bytes_ = 0;
  std::uint64_t seed_;  // of the checksums, so that blocks of other files are not accepted
  std::unique_ptr<Compression> compression_;
  std::vector<iovec> pieces_;  // of the current block, after its header
  std::vector<DType> dtypes_;  // of these pieces
  std::atomic<Bytes> bytes_written_ = 0;
  std::atomic<Bytes> bytes_read_ = 0;
};

}  // namespace palimpsest
