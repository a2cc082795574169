#include "checkpoint/stores/disk_seconds.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <random>
#include <vector>

#include "autodiff/error.h"
#include "checkpoint/stores/record_file.h"

namespace palimpsest {
namespace {

/// A batch of records that takes this long predicts the speed of the next ones.
constexpr double enough_seconds = 0.05;
/// Initial size of a batch, so that a slow disk finishes it soon.
constexpr Bytes first_bytes = 2_MiB;
constexpr Bytes most_bytes = 256_MiB;
/// Linux lets no writer wait while at most this part of free memory is waiting for the disk
/// (vm.dirty_background_ratio is 10 by default).
constexpr Bytes cached_part = 10;

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Memory available without writing anything to disk; 0 when the system does not tell.
Bytes available_memory() {
  std::ifstream file("/proc/meminfo");
  std::string word;
  while (file >> word) {
    if (word != "MemAvailable:") continue;
    Bytes kibibytes = 0;
    file >> kibibytes;
    return kibibytes * 1_KiB;
  }
  return 0;
}

/// Records that are written and read, all from the same memory.
class Sample {
 public:
  Sample(const std::string& directory, Bytes bytes)
      : buffer_(static_cast<std::size_t>(std::min(bytes, RecordFile::block_bytes))),
        file_(directory, pieces_of(bytes), /*compress=*/false) {
    // Not all zeros, because some file systems would not store them.
    std::mt19937 random(1);
    for (std::byte& byte : buffer_) byte = static_cast<std::byte>(random());
    for (const RecordPiece& piece : file_.record()) {
      into_.emplace_back(buffer_.data(), static_cast<std::size_t>(piece.bytes));
    }
    from_.assign(into_.begin(), into_.end());
  }

  Bytes slot_bytes() const { return file_.slot_bytes(); }

  /// Seconds to write records into slots [0, records).
  double write(std::uint32_t records, bool to_the_disk) {
    const Stopwatch watch;
    for (std::uint32_t slot = 0; slot < records; ++slot) {
      file_.write({.slot = slot, .step = 0, .writing = records}, from_);
    }
    if (to_the_disk) fdatasync(file_.descriptor());
    return watch.seconds();
  }

  /// Seconds per record to read them. Reads only as many as a measurement needs.
  double read_one(std::uint32_t records, bool from_the_disk) {
    if (from_the_disk) posix_fadvise(file_.descriptor(), 0, 0, POSIX_FADV_DONTNEED);
    const Stopwatch watch;
    std::uint32_t slot = 0;
    while (slot < records && (slot == 0 || watch.seconds() < 2 * enough_seconds)) {
      file_.read({.slot = slot++, .step = 0, .writing = records}, into_);
    }
    return watch.seconds() / slot;
  }

 private:
  static std::vector<RecordPiece> pieces_of(Bytes bytes) {
    std::vector<RecordPiece> pieces;
    for (; bytes > 0; bytes -= pieces.back().bytes) {
      pieces.push_back({.bytes = std::min(bytes, RecordFile::block_bytes)});
    }
    return pieces;
  }

  std::vector<std::byte> buffer_;
  RecordFile file_;
  std::vector<std::span<std::byte>> into_;
  std::vector<std::span<const std::byte>> from_;
};

}  // namespace

DiskSeconds measure_disk(const std::string& directory, Bytes bytes, Bytes total) {
  if (bytes <= 0 || total < 0) {
    throw ArgumentError("[spill] records of " + std::to_string(bytes) + " bytes, " +
                        std::to_string(total) +
                        " in total, cannot be measured; give positive numbers");
  }
  const bool disk = total > available_memory() / cached_part;
  // Only part of a large record, to finish soon.
  const Bytes sampled = std::min(bytes, 2 * first_bytes);
  Sample sample(directory, sampled);
  const Bytes room = std::min(most_bytes, std::max(total, sampled) / sampled * sample.slot_bytes());
  const auto records_in = [&](Bytes part) {
    return static_cast<std::uint32_t>(std::max<Bytes>(part / sample.slot_bytes(), 1));
  };
  const std::uint32_t most = records_in(room);
  std::uint32_t records = 0;
  double seconds = 0;
  // A disk with room for a few records is measured with these.
  const auto has_room_for = [&](std::uint32_t more) {
    try {
      seconds = sample.write(more, disk);
      records = more;
      return true;
    } catch (const EnvironmentError&) {
      if (more == 1) throw;
      return false;
    }
  };
  for (std::uint32_t first = std::min(most, records_in(first_bytes)); !has_room_for(first);) {
    first = std::max<std::uint32_t>(first / 2, 1);
  }
  while (seconds < enough_seconds && 2 * records <= most && has_room_for(2 * records)) {
  }
  const double scale = static_cast<double>(bytes) / static_cast<double>(sampled);
  return {.write = scale * seconds / records, .read = scale * sample.read_one(records, disk)};
}

}  // namespace palimpsest
