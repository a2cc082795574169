#include "strategy/run_memory.h"

#include <algorithm>

namespace palimpsest {

Executor::Memory RunMemory::get(Executor& executor, const RunOptions& options) {
  const Instructions& instructions = executor.instructions();
  Executor::Memory memory{meter_};
  predicted_peak_ = instructions.arena_size();
  if (options.memory == MemoryHandling::minimal_peak || options.memory == MemoryHandling::cached) {
    pool_.reset();
    memory.arena = arena_.get(instructions, meter_);
    return memory;
  }
  arena_.give_up();
  if (options.memory == MemoryHandling::standard) {
    pool_.reset();
    return memory;
  }
  // In the order of the schedule nothing is given back for want of room then.
  const Bytes wanted = std::max(predicted_peak_, executor.pooled_bytes());
  predicted_peak_ = std::min(wanted, options.memory_budget);
  if (pool_ == nullptr) pool_ = std::make_unique<BufferPool>(meter_);
  pool_->begin(predicted_peak_, instructions.present_bytes());
  memory.pool = pool_.get();
  return memory;
}

void RunMemory::give_up() {
  arena_.give_up();
  pool_.reset();
}

}  // namespace palimpsest
