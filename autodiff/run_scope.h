#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

namespace palimpsest {

class RunControl;

/// State that kernels of a run leave for later kernels of the same run, apart from their outputs;
/// for example a file. It is destroyed when the run ends, also by an exception. Members are
/// thread-safe.
class RunScope {
 public:
  struct Item {
    virtual ~Item() = default;
  };

  /// Whose kernels share it.
  enum class Of : std::uint8_t {
    run,
    step,        ///< of a loop; its progress is not reported
    checkpoint,  ///< likewise; kernels leave no state for later ones
  };

  explicit RunScope(RunControl* run_control = nullptr, Of what = Of::run,
                    std::uint8_t native_code = 0, bool looks_for_anomalies = false)
      : control(run_control), of(what), native(native_code), anomaly(looks_for_anomalies) {}
  /// Of a part of a run, whose scope gets the notes.
  RunScope(RunScope& run, Of part)
      : control(run.control), of(part), native(run.native), anomaly(run.anomaly), outer_(&run) {}

  /// Stops and observes the run; null if it cannot be stopped and is not watched.
  RunControl* const control;
  const Of of;
  /// The strategy's choice of machine code, for kernels that run programs of their own; 0 for none.
  const std::uint8_t native;
  /// Kernels that run programs of their own throw `AnomalyError` for the first NaN or infinity in
  /// these.
  const bool anomaly;

  /// Keeps an item. Returns its key, a number unique in the process.
  std::uint64_t keep(std::shared_ptr<Item> item) {
    static std::atomic<std::uint64_t> last = 0;
    const std::uint64_t number = ++last;
    const std::lock_guard lock(mutex_);
    items_.emplace(number, std::move(item));
    return number;
  }

  void drop(std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    items_.erase(number);
  }

  /// Null when this run has no such item.
  std::shared_ptr<Item> find(std::uint64_t number) const {
    const std::lock_guard lock(mutex_);
    const auto item = items_.find(number);
    return item != items_.end() ? item->second : nullptr;
  }

  /// The reports of a run about itself, by subject; read after the run.
  using Notes = std::map<const void*, std::shared_ptr<Item>>;

  /// The note about `subject`, created with `facts` on first use.
  template <class T, class... Facts>
  T& note(const void* subject, const Facts&... facts) {
    if (outer_ != nullptr) return outer_->note<T>(subject, facts...);
    const std::lock_guard lock(mutex_);
    std::shared_ptr<Item>& item = notes_[subject];
    if (item == nullptr) item = std::make_shared<T>(facts...);
    return static_cast<T&>(*item);
  }

  /// Moves all notes out.
  Notes take_notes() {
    const std::lock_guard lock(mutex_);
    return std::exchange(notes_, {});
  }

 private:
  RunScope* outer_ = nullptr;  // where notes go, if not here
  mutable std::mutex mutex_;
  std::map<std::uint64_t, std::shared_ptr<Item>> items_;
  Notes notes_;
};

}  // namespace palimpsest
