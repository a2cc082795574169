#include "checkpoint/stores/record_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <random>
#include <system_error>
#include <utility>

#include "autodiff/error.h"
#include "autodiff/parallel.h"
#include "checkpoint/stores/hash.h"
#include "checkpoint/stores/shuffle.h"
#include "checkpoint/stores/transfer.h"

namespace palimpsest {
namespace {

/// Slots do not share a page of the system's cache.
constexpr Bytes slot_alignment = 4096;

std::size_t size(Bytes bytes) { return static_cast<std::size_t>(bytes); }

Bytes total(std::span<const RecordPiece> record) {
  Bytes bytes = 0;
  for (const RecordPiece& piece : record) bytes += piece.bytes;
  return bytes;
}

std::string words(const RecordFile::Name& name) {
  return "step " + std::to_string(name.step) + " in slot " + std::to_string(name.slot);
}

[[noreturn]] void fail_to_write(const std::string& path, const RecordFile::Name& name, int error) {
  const std::string subject = "[spill] " + path + ": " + words(name) + " cannot be written: ";
  const std::string reason = std::generic_category().message(error);
  if (error == EFBIG) {
    throw EnvironmentError(subject + reason +
                           "; raise the limit shown by `ulimit -f`, or raise the memory budget");
  }
  if (error != ENOSPC && error != EDQUOT) {
    throw FileError(subject + reason + "; check the disk, or name another directory");
  }
  std::error_code ignored;
  const std::filesystem::space_info space = std::filesystem::space(path, ignored);
  const std::string left = ignored ? "" : ", " + format_bytes(static_cast<Bytes>(space.available));
  throw EnvironmentError(
      subject + reason + left +
      " left; free disk space, name another directory, or raise the memory budget");
}

[[noreturn]] void fail_to_read(const std::string& path, Bytes offset, const RecordFile::Name& name,
                               const std::string& what) {
  throw FileError("[spill] " + path + ", byte " + std::to_string(offset) + ": " + words(name) +
                  " " + what + "; check the disk, or name another directory, and run again");
}

}  // namespace

struct RecordFile::Block {
  std::uint32_t index;
  Bytes first;   // offset in the record
  Bytes bytes;   // of the block
  Bytes offset;  // offset in the file
};

/// The bytes before a block in the file.
struct RecordFile::Header {
  std::uint64_t checksum = 0;  // of the following fields, and of the block as it is stored
  std::uint64_t writing = 0;
  std::uint64_t step = 0;
  std::uint32_t slot = 0;
  std::uint32_t block = 0;
  std::uint32_t bytes = 0;
  std::uint32_t stored_bytes = 0;         // fewer when the block is compressed
  std::array<std::uint64_t, 3> unused{};  // fills a cache line, so that copies are aligned

  bool operator==(const Header&) const = default;
};

RecordFile::RecordFile(const std::string& directory, std::vector<RecordPiece> record, bool compress)
    : file_(directory),
      record_(std::move(record)),
      record_bytes_(total(record_)),
      slot_bytes_(
          round_up(record_bytes_ + divide_up(record_bytes_, block_bytes) * Bytes{sizeof(Header)},
                   slot_alignment)) {
  std::random_device random;
  seed_ = std::uint64_t{random()} << 32 | random();
  pieces_.reserve(record_.size() + 1);
  dtypes_.reserve(record_.size());
  if (compress) compression_ = std::make_unique<Compression>(std::min(block_bytes, record_bytes_));
}

Bytes RecordFile::compression_bytes(std::span<const RecordPiece> record) {
  const Bytes block = std::min(block_bytes, total(record));
  Compression compression(block);
  compression.decompress(compression.compress(size(block)), size(block));
  return compression.memory_bytes();
}

RecordFile::Block RecordFile::block(const Name& name, Bytes index) const {
  const Bytes first = index * block_bytes;
  return {.index = static_cast<std::uint32_t>(index),
          .first = first,
          .bytes = std::min(block_bytes, record_bytes_ - first),
          .offset = LockedFile::first_free + name.slot * slot_bytes_ + first +
                    index * Bytes{sizeof(Header)}};
}

RecordFile::Header RecordFile::header(const Name& name, const Block& block) const {
  return {.writing = name.writing,
          .step = name.step,
          .slot = name.slot,
          .block = block.index,
          .bytes = static_cast<std::uint32_t>(block.bytes),
          .stored_bytes = static_cast<std::uint32_t>(block.bytes)};
}

std::uint64_t RecordFile::checksum(const Header& header, std::span<const iovec> content) const {
  const auto fields = std::as_bytes(std::span(&header, 1)).subspan(sizeof header.checksum);
  std::uint64_t hash = hash_bytes(fields, seed_);
  for (const iovec& piece : content) {
    hash = hash_bytes({static_cast<const std::byte*>(piece.iov_base), piece.iov_len}, hash);
  }
  return hash;
}

template <class Byte>
void RecordFile::cut(const Block& block, std::span<const std::span<Byte>> pieces) {
  pieces_.resize(1);  // the header's
  dtypes_.clear();
  Bytes begin = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const Bytes end = begin + record_[i].bytes;
    const Bytes from = std::max(begin, block.first);
    const Bytes to = std::min(end, block.first + block.bytes);
    if (from < to) {
      const std::span<Byte> part = pieces[i].subspan(size(from - begin), size(to - from));
      pieces_.push_back({const_cast<std::byte*>(part.data()), part.size()});
      dtypes_.push_back(record_[i].dtype);
    }
    begin = end;
  }
}

template <class Move>
void RecordFile::each_part(Move move) {
  std::span<std::byte> shuffled = compression_->plain();
  for (std::size_t i = 0; i < dtypes_.size(); ++i) {
    const iovec& piece = pieces_[i + 1];
    move({static_cast<std::byte*>(piece.iov_base), piece.iov_len}, size(size_of(dtypes_[i])),
         shuffled.first(piece.iov_len));
    shuffled = shuffled.subspan(piece.iov_len);
  }
}

void RecordFile::check_there(const Name& name) const {
  if (!file_.deleted()) return;
  throw FileError("[spill] " + path() + " was deleted while " + words(name) +
                  " still needed it; do not touch it while the program runs, and run again");
}

void RecordFile::write(const Name& name, ConstPieces pieces) {
  check_there(name);
  const Bytes blocks = divide_up(record_bytes_, block_bytes);
  for (Bytes index = 0; index < blocks; ++index) write_block(name, block(name, index), pieces);
}

void RecordFile::write_block(const Name& name, const Block& block, ConstPieces pieces) {
  Header header = this->header(name, block);
  cut(block, pieces);
  if (compression_ != nullptr) {
    each_part([](std::span<std::byte> part, std::size_t width, std::span<std::byte> shuffled) {
      shuffle(part, width, shuffled);
    });
    if (const std::size_t packed = compression_->compress(size(block.bytes)); packed > 0) {
      pieces_.resize(1);
      pieces_.push_back({compression_->packed().data(), packed});
      header.stored_bytes = static_cast<std::uint32_t>(packed);
    }
  }
  header.checksum = checksum(header, std::span(pieces_).subspan(1));
  pieces_.front() = {&header, sizeof header};
  const Transfer done = write_at(file_.descriptor(), block.offset, pieces_);
  bytes_written_ += done.bytes;
  if (done.error != 0) fail_to_write(path(), name, done.error);
}

void RecordFile::read(const Name& name, Pieces pieces) {
  check_there(name);
  const Bytes blocks = divide_up(record_bytes_, block_bytes);
  for (Bytes index = 0; index < blocks; ++index) read_block(name, block(name, index), pieces);
}

void RecordFile::read_block(const Name& name, const Block& block, Pieces pieces) {
  Header found;
  const iovec found_bytes{&found, sizeof found};
  cut(block, pieces);
  if (compression_ == nullptr) {
    pieces_.front() = found_bytes;
    read_all(name, block.offset, pieces_);
  } else {
    read_all(name, block.offset, {&found_bytes, 1});
    // A damaged size must not lead to reading beyond the block. The checksum will reveal it.
    const std::size_t stored = std::min(size(block.bytes), std::size_t{found.stored_bytes});
    if (stored < size(block.bytes)) {
      pieces_.resize(1);
      pieces_.push_back({compression_->packed().data(), stored});
    }
    read_all(name, block.offset + Bytes{sizeof found}, std::span(pieces_).subspan(1));
  }
  if (found.checksum != checksum(found, std::span(pieces_).subspan(1))) {
    fail_to_read(path(), block.offset, name, "is damaged: its checksum does not match its bytes");
  }
  Header wanted = header(name, block);
  wanted.checksum = found.checksum;
  wanted.stored_bytes = compression_ == nullptr ? wanted.bytes : found.stored_bytes;
  if (found != wanted) {
    fail_to_read(path(), block.offset, name, "is missing: an earlier record is in its place");
  }
  if (found.stored_bytes == found.bytes) return;
  internal_check(compression_->decompress(found.stored_bytes, found.bytes),
                 "[spill] a block with the right checksum cannot be decompressed");
  cut(block, pieces);
  each_part([](std::span<std::byte> part, std::size_t width, std::span<std::byte> shuffled) {
    unshuffle(shuffled, width, part);
  });
}

void RecordFile::read_all(const Name& name, Bytes offset, std::span<const iovec> pieces) {
  Bytes wanted = 0;
  for (const iovec& piece : pieces) wanted += static_cast<Bytes>(piece.iov_len);
  const Transfer done = read_at(file_.descriptor(), offset, pieces);
  bytes_read_ += done.bytes;
  if (done.error != 0) {
    fail_to_read(path(), offset, name,
                 "cannot be read: " + std::generic_category().message(done.error));
  }
  if (done.bytes < wanted) {
    fail_to_read(path(), offset + done.bytes, name, "is truncated: the file ends here");
  }
}

}  // namespace palimpsest
