#include "checkpoint/stores/spill_file.h"

#include <deque>
#include <mutex>
#include <utility>

#include "autodiff/error.h"
#include "checkpoint/stores/job_queue.h"
#include "checkpoint/stores/record_file.h"

namespace palimpsest {
namespace {

/// The last record written into a slot, or about to be.
struct Slot {
  std::uint64_t step = 0;
  std::uint64_t writing = 0;  // 0: nothing
};

template <class Byte>
void check_sizes(const RecordFile& file, std::span<const std::span<Byte>> pieces) {
  const std::span<const RecordPiece> wanted = file.record();
  if (pieces.size() != wanted.size()) {
    throw ArgumentError("[spill] a record has " + std::to_string(wanted.size()) + " pieces, not " +
                        std::to_string(pieces.size()) + "; give all of them");
  }
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (static_cast<Bytes>(pieces[i].size()) == wanted[i].bytes) continue;
    throw ArgumentError("[spill] piece " + std::to_string(i) + " of a record has " +
                        std::to_string(wanted[i].bytes) + " bytes, not " +
                        std::to_string(pieces[i].size()) + "; give the whole piece");
  }
}

}  // namespace

struct SpillFile::State {
  State(const std::string& directory, std::vector<RecordPiece> record, bool compress)
      : file(directory, std::move(record), compress) {}

  RecordFile file;   // used by the running job only
  std::mutex mutex;  // protects the next two
  std::deque<Slot> slots;
  std::uint64_t writings = 0;
  JobQueue jobs;  // destroyed first
};

SpillFile::SpillFile(const std::string& directory, std::vector<RecordPiece> record,
                     SpillOptions options)
    : state_(std::make_unique<State>(directory, std::move(record), options.compress)) {}

SpillFile::~SpillFile() = default;

void SpillFile::write(std::uint32_t slot, std::uint64_t step,
                      std::span<const std::span<const std::byte>> pieces) {
  State& state = *state_;
  check_sizes(state.file, pieces);
  RecordFile::Name name{.slot = slot, .step = step, .writing = 0};
  {
    const std::lock_guard lock(state.mutex);
    if (slot >= state.slots.size()) state.slots.resize(std::size_t{slot} + 1);
    name.writing = ++state.writings;
    state.slots[slot] = {.step = step, .writing = name.writing};
  }
  state.jobs.add(slot, [&file = state.file, name, own = std::vector(pieces.begin(), pieces.end())] {
    file.write(name, own);
  });
}

void SpillFile::prefetch(std::uint32_t slot, std::uint64_t step,
                         std::span<const std::span<std::byte>> pieces) {
  State& state = *state_;
  check_sizes(state.file, pieces);
  Slot held;
  {
    const std::lock_guard lock(state.mutex);
    if (slot < state.slots.size()) held = state.slots[slot];
  }
  if (held.writing == 0 || held.step != step) {
    throw ArgumentError("[spill] slot " + std::to_string(slot) + " holds " +
                        (held.writing == 0 ? "nothing" : "step " + std::to_string(held.step)) +
                        ", not step " + std::to_string(step) + "; write it first");
  }
  const RecordFile::Name name{.slot = slot, .step = step, .writing = held.writing};
  state.jobs.add(slot, [&file = state.file, name, own = std::vector(pieces.begin(), pieces.end())] {
    file.read(name, own);
  });
}

void SpillFile::wait(std::uint32_t slot) { state_->jobs.wait(slot); }

void SpillFile::finish() { state_->jobs.wait_all(); }

const std::string& SpillFile::path() const { return state_->file.path(); }

Bytes SpillFile::bytes_written() const { return state_->file.bytes_written(); }

Bytes SpillFile::bytes_read() const { return state_->file.bytes_read(); }

Bytes SpillFile::memory_bytes(std::size_t slots, std::span<const RecordPiece> record,
                              std::size_t under_way, SpillOptions options) {
  const std::size_t pieces = record.size();
  // The queue, names and similar.
  constexpr std::size_t fixed = 8 << 10;
  // Including the overhead of allocation.
  const std::size_t table = slots * (sizeof(Slot) + 1);
  const std::size_t layout = pieces * (sizeof(RecordPiece) + sizeof(iovec) + sizeof(DType));
  const std::size_t calls = under_way * (320 + 2 * pieces * sizeof(iovec));
  return static_cast<Bytes>(fixed + table + layout + calls) +
         (options.compress ? RecordFile::compression_bytes(record) : 0);
}

}  // namespace palimpsest
