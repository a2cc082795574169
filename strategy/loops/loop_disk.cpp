#include "strategy/loops/loop_disk.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <tuple>

#include "checkpoint/machine.h"
#include "checkpoint/reverse/journal_directory.h"
#include "checkpoint/stores/disk_seconds.h"

namespace palimpsest {
namespace {

/// Concurrent writes and reads: one for each block of a loop.
constexpr std::size_t under_way = 2;

Bytes bytes_of(const std::vector<RecordPiece>& record) {
  Bytes bytes = 0;
  for (const RecordPiece& piece : record) bytes += piece.bytes;
  return bytes;
}

/// Measured once per process, for each record size and power of two of their total bytes.
DiskSeconds disk_seconds(const std::string& directory, Bytes bytes, Bytes total) {
  static std::mutex mutex;
  static std::map<std::tuple<std::string, Bytes, Bytes>, DiskSeconds> known;
  const std::lock_guard lock(mutex);
  const auto rounded = static_cast<Bytes>(std::bit_ceil(static_cast<std::uint64_t>(total)));
  const std::tuple key(directory, bytes, rounded);
  const auto found = known.find(key);
  if (found != known.end()) return found->second;
  return known.emplace(key, measure_disk(directory, bytes, rounded)).first->second;
}

}  // namespace

LoopDisk::LoopDisk(const LoopOptions& options, std::vector<RecordPiece> record,
                   std::uint32_t states, std::function<double()> step_seconds)
    : directory_(absolute_path(options.spill)),
      options_(options.spill_options),
      record_(std::move(record)),
      states_(states),
      step_seconds_(std::move(step_seconds)),
      costs_(options.disk_costs) {
  if (costs_) require_valid(*costs_);
}

Bytes LoopDisk::memory_bytes() const {
  const std::lock_guard lock(mutex_);
  if (!memory_bytes_) memory_bytes_ = SpillFile::memory_bytes(0, record_, under_way, options_);
  return *memory_bytes_;
}

DiskCosts LoopDisk::costs() const {
  const std::lock_guard lock(mutex_);
  if (!costs_) {
    constexpr Bytes most = Bytes{1} << 50;
    const Bytes bytes = std::max<Bytes>(bytes_of(record_), 1);
    const Bytes total = bytes * std::clamp<Bytes>(states_, 1, std::max<Bytes>(most / bytes, 1));
    const DiskSeconds seconds = disk_seconds(directory_, bytes, total);
    // A step may take no time at all.
    const double step = std::max(step_seconds_(), Machine().seconds_per_node);
    costs_ = {.write = seconds.write / step, .read = seconds.read / step};
  }
  return *costs_;
}

std::optional<DiskCosts> LoopDisk::known_costs() const {
  const std::lock_guard lock(mutex_);
  return costs_;
}

const TwoTierSchedule& LoopDisk::planned(Chain chain) const {
  if (!schedule_ || schedule_of_ != chain) {
    schedule_.emplace(chain.first, chain.second, *costs_);
    schedule_of_ = chain;
  }
  return *schedule_;
}

TwoTierSchedule LoopDisk::schedule(std::uint32_t steps, std::uint32_t snapshots) const {
  costs();
  const std::lock_guard lock(mutex_);
  return planned({steps, snapshots});
}

LoopWork LoopDisk::work(std::uint32_t steps, std::uint32_t snapshots) const {
  const DiskCosts costs = this->costs();
  const std::lock_guard lock(mutex_);
  const Chain chain(steps, snapshots);
  const auto known = works_.find(chain);
  if (known != works_.end()) return known->second;
  const TwoTierSchedule& best = planned(chain);
  const double accesses = costs.write * static_cast<double>(best.writes()) +
                          costs.read * static_cast<double>(best.reads());
  const LoopWork work{static_cast<double>(best.forward_steps()), accesses, best.writes(),
                      best.reads()};
  return works_.emplace(chain, work).first->second;
}

std::unique_ptr<SpillFile> LoopDisk::open() const {
  return std::make_unique<SpillFile>(directory_, record_, options_);
}

}  // namespace palimpsest
