#include "strategy/loops/loop_disk.h"

#include <map>
#include <tuple>

#include "checkpoint/stores/disk_seconds.h"

namespace palimpsest {
namespace {

/// Writes and reads under way at a time: one from or into each block of a loop, and the next.
constexpr std::size_t under_way = 3;

Bytes bytes_of(const std::vector<RecordPiece>& record) {
  Bytes bytes = 0;
  for (const RecordPiece& piece : record) bytes += piece.bytes;
  return bytes;
}

/// Measured once a process.
DiskSeconds disk_seconds(const std::string& directory, Bytes bytes, Bytes total) {
  static std::mutex mutex;
  static std::map<std::tuple<std::string, Bytes, Bytes>, DiskSeconds> known;
  const std::lock_guard lock(mutex);
  const std::tuple key(directory, bytes, total);
  const auto found = known.find(key);
  if (found != known.end()) return found->second;
  return known.emplace(key, measure_disk(directory, bytes, total)).first->second;
}

}  // namespace

LoopDisk::LoopDisk(const LoopOptions& options, std::vector<RecordPiece> record,
                   std::uint32_t states, std::function<double()> step_seconds)
    : directory_(options.spill),
      options_(options.spill_options),
      record_(std::move(record)),
      states_(states),
      step_seconds_(std::move(step_seconds)),
      memory_bytes_(SpillFile::memory_bytes(0, record_, under_way, options_)),
      costs_(options.disk_costs) {
  if (costs_) require_valid(*costs_);
}

DiskCosts LoopDisk::costs() const {
  const std::lock_guard lock(mutex_);
  if (!costs_) {
    const Bytes bytes = bytes_of(record_);
    const DiskSeconds seconds = disk_seconds(directory_, bytes, bytes * states_);
    const double step = step_seconds_();
    costs_ = {.write = seconds.write / step, .read = seconds.read / step};
  }
  return *costs_;
}

TwoTierSchedule LoopDisk::schedule(std::uint32_t steps, std::uint32_t snapshots) const {
  const DiskCosts costs = this->costs();
  const std::lock_guard lock(mutex_);
  const std::pair wanted(steps, snapshots);
  if (!schedule_ || made_for_ != wanted) {
    schedule_.emplace(steps, snapshots, costs);
    made_for_ = wanted;
  }
  return *schedule_;
}

std::unique_ptr<SpillFile> LoopDisk::open() const {
  return std::make_unique<SpillFile>(directory_, record_, options_);
}

}  // namespace palimpsest
