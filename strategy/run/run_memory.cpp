#include "strategy/run/run_memory.h"

#include <algorithm>

namespace palimpsest {

Bytes RunMemory::peak_of(Executor& executor, const RunOptions& options) {
  const Bytes laid_out = executor.instructions().arena_size();
  if (options.memory != AllocationPolicy::pooled) return laid_out;
  // With this much, a run in schedule order returns no memory to make room.
  return std::min(std::max(laid_out, executor.pooled_bytes()), options.memory_budget);
}

Executor::Memory RunMemory::get(Executor& executor, const RunOptions& options) {
  const Instructions& instructions = executor.instructions();
  Executor::Memory memory{meter_};
  predicted_peak_ = peak_of(executor, options);
  const bool is_laid_out = options.memory == AllocationPolicy::minimal_peak ||
                           options.memory == AllocationPolicy::cached;
  if (is_laid_out && has_arena_) {
    pool_.reset();
    memory.arena = arena_.get(instructions, meter_);
    return memory;
  }
  arena_.give_up();
  if (options.memory != AllocationPolicy::pooled) {
    pool_.reset();
    return memory;
  }
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
