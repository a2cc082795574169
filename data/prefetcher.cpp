#include "data/prefetcher.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "autodiff/in_use.h"
#include "autodiff/shape.h"

namespace palimpsest {
namespace {

/// The one that makes a batch on this thread, or null.
thread_local const Prefetcher* prefetcher_here = nullptr;

}  // namespace

Prefetcher::~Prefetcher() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Batch Prefetcher::take(const DataLoaderPosition& position) {
  if (!thread_.joinable()) {
    try {
      thread_ = std::thread([this] { run(); });
    } catch (const std::system_error&) {
      throw EnvironmentError(
          "[data_loader] the system gives no thread that makes batches; set prefetch to 0");
    }
  }
  std::unique_lock lock(mutex_);
  if (!std::exchange(is_started_, true)) next_ = position;
  is_awaited_ = true;
  changed_.notify_all();
  changed_.wait(lock, [&] { return !finished_.empty(); });
  is_awaited_ = false;
  Finished first = std::move(finished_.front());
  finished_.pop_front();
  held_ -= first.bytes;
  lock.unlock();
  changed_.notify_all();
  if (first.failure != nullptr) std::rethrow_exception(first.failure);
  return std::move(first.batch);
}

void Prefetcher::restart() {
  const std::lock_guard lock(mutex_);
  ++round_;
  finished_.clear();
  held_ = 0;
  is_started_ = false;
  is_paused_ = false;
}

void Prefetcher::require_other_thread(std::string_view function) const {
  constexpr InUse::Purpose making{InUse::Level::alone, "it makes a batch"};
  if (prefetcher_here == this) InUse("DataLoader").refuse(making, function);
}

Bytes Prefetcher::peak() const {
  const std::lock_guard lock(mutex_);
  return peak_;
}

void Prefetcher::run() {
  prefetcher_here = this;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stops_ || may_make(); });
    if (stops_) return;
    const DataLoaderPosition position = next_;
    const std::uint64_t round = round_;
    lock.unlock();
    Finished finished = make(position);
    lock.lock();
    if (round == round_) keep(std::move(finished));
    changed_.notify_all();
  }
}

bool Prefetcher::may_make() const {
  if (!is_started_) return false;
  if (is_awaited_ && finished_.empty()) return true;
  // More small batches would only take time at the beginning, and memory besides their tensors.
  constexpr std::size_t most_batches = 64;
  return !is_paused_ && finished_.size() < most_batches &&
         add_sizes(held_, expected_bytes(next_.batch)) <= maker_.options().prefetch;
}

Prefetcher::Finished Prefetcher::make(const DataLoaderPosition& position) {
  Finished finished;
  try {
    finished.batch = maker_.make(position);
    finished.bytes = finished.batch.bytes();
  } catch (...) {
    finished.failure = std::current_exception();
  }
  return finished;
}

/// Keeps the batch at `next_`, unless it is larger than expected and does not fit. Then it is made
/// again, when there is room for its bytes or when it is awaited.
void Prefetcher::keep(Finished finished) {
  if (finished.failure != nullptr) {
    is_paused_ = true;
    finished_.push_back(std::move(finished));
    return;
  }
  if (largest_examples_ == 0 || finished.bytes > expected_bytes(next_.batch)) {
    largest_bytes_ = finished.bytes;
    largest_examples_ = maker_.size_of(next_.batch);
  }
  if (is_awaited_ && finished_.empty()) {
    finished.bytes = 0;  // it is handed out at once
  } else if (add_sizes(held_, finished.bytes) > maker_.options().prefetch) {
    return;
  }
  is_paused_ = false;
  held_ += finished.bytes;
  peak_ = std::max(peak_, held_);
  next_ = maker_.after(next_);
  finished_.push_back(std::move(finished));
}

Bytes Prefetcher::expected_bytes(std::int64_t batch) const {
  if (largest_examples_ == 0) return maker_.untransformed_bytes(batch);
  const std::int64_t examples = maker_.size_of(batch);
  if (examples == largest_examples_) return largest_bytes_;
  return multiply_sizes(largest_bytes_, examples) / largest_examples_ + 1;
}

}  // namespace palimpsest
