#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "autodiff/bytes.h"
#include "checkpoint/reverse/stored_object.h"
#include "checkpoint/stores/hash_stream.h"

namespace palimpsest {

/// A part of an `ExtentFile`. Without bytes: none.
struct Extent {
  Bytes offset = 0;
  Bytes bytes = 0;
  Hash128 hash = {};  ///< of the content

  explicit operator bool() const { return bytes > 0; }
};

/// Records of any sizes in a file. Each is in an extent of its own, which is free again when all
/// of its holders have released it. Does not own the file. Not thread-safe.
class ExtentFile {
 public:
  /// `first` is the offset from which on the file may be used. Errors name `operation`.
  ExtentFile(int descriptor, std::string path, Bytes first, std::string_view operation = "reverse");

  /// Writes a record that consists of the pieces that `save` passes to its argument. `what` names
  /// it in errors. Throws `EnvironmentError` when there is no room, and `FileError`.
  Extent write(Bytes bytes, const std::function<void(const StoredObject::Sink&)>& save,
               const std::string& what);
  /// Reads a record into the pieces that `load` asks for. Returns whether the bytes are those that
  /// were written. Without an extent, that is so if `load` asks for no bytes.
  bool read(const Extent& extent, const std::function<void(const StoredObject::Source&)>& load);
  /// Whether the bytes are those that were written.
  bool is_intact(const Extent& extent);

  /// Adds a holder to an extent. One that was not written by this object, but by another process
  /// before, is occupied from now on.
  void hold(const Extent& extent);
  void release(const Extent& extent);
  /// Waits until everything that was written is on the disk.
  void sync();
  /// Gives the disk space of free extents back to the system, where it can.
  void trim();

  const std::string& path() const { return path_; }
  Bytes bytes_written() const { return bytes_written_; }
  Bytes bytes_read() const { return bytes_read_; }

  /// Bytes of memory for each extent.
  static constexpr Bytes extent_bytes = 160;
  /// Bytes of memory in addition, including a buffer.
  static constexpr Bytes memory_bytes = 72 << 10;

 private:
  struct Use {
    Bytes bytes;
    int holders;
  };
  Bytes allocate(Bytes bytes);
  void free(Bytes offset, Bytes bytes);

  int descriptor_;
  std::string path_;
  std::string operation_;
  Bytes end_;                     // of the used part of the file
  std::map<Bytes, Bytes> gaps_;   // free bytes before the end, by offset
  std::map<Bytes, Use> extents_;  // by offset
  HashStream hash_;
  std::vector<std::byte> buffer_;  // for checks
  Bytes bytes_written_ = 0;
  Bytes bytes_read_ = 0;
};

}  // namespace palimpsest
