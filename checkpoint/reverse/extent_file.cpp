#include "checkpoint/reverse/extent_file.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "autodiff/error.h"
#include "checkpoint/stores/transfer.h"

namespace palimpsest {
namespace {

/// Extents do not share a page of the system's cache.
constexpr Bytes extent_alignment = 4096;
constexpr Bytes buffer_bytes = 64 << 10;

Bytes occupied(Bytes bytes) {
  return (bytes + extent_alignment - 1) / extent_alignment * extent_alignment;
}

[[noreturn]] void fail_to_write_extent(const std::string& operation, const std::string& path,
                                       const std::string& what, int error) {
  const std::string subject = "[" + operation + "] " + path + ": " + what +
                              " cannot be written: " + std::generic_category().message(error);
  if (error == EFBIG) {
    throw EnvironmentError(subject +
                           "; raise the limit shown by `ulimit -f`, or raise the memory budget");
  }
  if (error != ENOSPC && error != EDQUOT) {
    throw FileError(subject + "; check the disk, or name another directory");
  }
  throw EnvironmentError(subject +
                         "; free disk space, name another directory, or raise the memory budget");
}

}  // namespace

ExtentFile::ExtentFile(int descriptor, std::string path, Bytes first, std::string_view operation)
    : descriptor_(descriptor),
      path_(std::move(path)),
      operation_(operation),
      end_(occupied(first)),
      buffer_(static_cast<std::size_t>(buffer_bytes)) {}

// First fit. The gaps are few, because most records have the same size.
Bytes ExtentFile::allocate(Bytes bytes) {
  const Bytes room = occupied(bytes);
  for (auto gap = gaps_.begin(); gap != gaps_.end(); ++gap) {
    if (gap->second < room) continue;
    const auto [offset, free] = *gap;
    gaps_.erase(gap);
    if (free > room) gaps_.emplace(offset + room, free - room);
    return offset;
  }
  return std::exchange(end_, end_ + room);
}

void ExtentFile::free(Bytes offset, Bytes bytes) {
  auto [gap, is_new] = gaps_.emplace(offset, occupied(bytes));
  internal_check(is_new, "an extent is free twice");
  const auto after = std::next(gap);
  if (after != gaps_.end() && gap->first + gap->second == after->first) {
    gap->second += after->second;
    gaps_.erase(after);
  }
  if (gap != gaps_.begin()) {
    const auto before = std::prev(gap);
    if (before->first + before->second == gap->first) {
      before->second += gap->second;
      gaps_.erase(gap);
      gap = before;
    }
  }
  if (gap->first + gap->second == end_) {
    end_ = gap->first;
    gaps_.erase(gap);
  }
}

Extent ExtentFile::write(Bytes bytes, const std::function<void(const StoredObject::Sink&)>& save,
                         const std::string& what) {
  if (bytes == 0) return {};
  Extent extent{.offset = allocate(bytes), .bytes = bytes};
  extents_[extent.offset] = {bytes, 1};
  hash_.reset();
  Bytes at = extent.offset;
  try {
    save([&](std::span<const std::byte> piece) {
      const iovec content{const_cast<std::byte*>(piece.data()), piece.size()};
      hash_.add(piece);
      const Transfer done = write_at(descriptor_, at, {&content, 1});
      bytes_written_ += done.bytes;
      if (done.error != 0) fail_to_write_extent(operation_, path_, what, done.error);
      at += done.bytes;
    });
  } catch (...) {
    release(extent);
    throw;
  }
  internal_check(at == extent.offset + bytes, "a record has other bytes than its object");
  extent.hash = hash_.digest();
  return extent;
}

bool ExtentFile::read(const Extent& extent,
                      const std::function<void(const StoredObject::Source&)>& load) {
  bool is_whole = true;
  if (!extent) {
    load([&](std::span<std::byte> piece) {
      is_whole = is_whole && piece.empty();
      std::ranges::fill(piece, std::byte{0});
    });
    return is_whole;
  }
  hash_.reset();
  Bytes at = extent.offset;
  load([&](std::span<std::byte> piece) {
    const iovec content{piece.data(), piece.size()};
    const Transfer done = read_at(descriptor_, at, {&content, 1});
    bytes_read_ += done.bytes;
    at += static_cast<Bytes>(piece.size());
    is_whole = is_whole && done.error == 0 && done.bytes == static_cast<Bytes>(piece.size());
    hash_.add(piece);
  });
  return is_whole && hash_.digest() == extent.hash;
}

bool ExtentFile::is_intact(const Extent& extent) {
  return read(extent, [&](const StoredObject::Source& source) {
    for (Bytes left = extent.bytes; left > 0;) {
      const Bytes part = std::min(left, buffer_bytes);
      source(std::span(buffer_).first(static_cast<std::size_t>(part)));
      left -= part;
    }
  });
}

void ExtentFile::hold(const Extent& extent) {
  if (!extent) return;
  const auto [found, is_new] = extents_.emplace(extent.offset, Use{extent.bytes, 1});
  if (!is_new) {
    ++found->second.holders;
    return;
  }
  // Occupy it: it lies in a gap or after the end.
  const Bytes room = occupied(extent.bytes);
  if (extent.offset >= end_) {
    if (extent.offset > end_) gaps_.emplace(end_, extent.offset - end_);
    end_ = extent.offset + room;
    return;
  }
  const auto after = gaps_.upper_bound(extent.offset);
  internal_check(after != gaps_.begin(), "an extent overlaps another one");
  const auto gap = std::prev(after);
  const auto [offset, bytes] = *gap;
  internal_check(extent.offset + room <= offset + bytes, "an extent overlaps another one");
  gaps_.erase(gap);
  if (offset < extent.offset) gaps_.emplace(offset, extent.offset - offset);
  const Bytes rest = offset + bytes - extent.offset - room;
  if (rest > 0) gaps_.emplace(extent.offset + room, rest);
}

void ExtentFile::release(const Extent& extent) {
  if (!extent) return;
  const auto found = extents_.find(extent.offset);
  internal_check(found != extents_.end(), "an extent that is not held is released");
  if (--found->second.holders > 0) return;
  const Bytes bytes = found->second.bytes;
  extents_.erase(found);
  free(extent.offset, bytes);
}

void ExtentFile::sync() {
  if (fdatasync(descriptor_) == 0) return;
  throw FileError("[" + operation_ + "] " + path_ + " cannot be written: " +
                  std::generic_category().message(errno) + "; check the disk");
}

void ExtentFile::trim() {
  [[maybe_unused]] const int cut = ftruncate(descriptor_, end_);
#ifdef FALLOC_FL_PUNCH_HOLE
  for (const auto& [offset, bytes] : gaps_) {
    fallocate(descriptor_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, bytes);
  }
#endif
}

}  // namespace palimpsest
