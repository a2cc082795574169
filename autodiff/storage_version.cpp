#include "autodiff/storage_version.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <unordered_map>

namespace palimpsest {
namespace {

std::atomic<std::uint64_t> latest = 0;

/// The versions of all storages that the library has written into. They cannot lie in the storages:
/// some lie in an arena or a mapped file, and others are the user's.
class Versions {
 public:
  void note(const Buffer& storage, const char* call) noexcept {
    const std::lock_guard lock(mutex_);
    const StorageVersion version{latest + 1, call};
    try {
      if (known_.size() >= limit_) forget_freed();
      // The address may have been that of another storage, whose version does not matter any more.
      known_[storage.get()] = {storage, version};
    } catch (...) {  // out of memory
      unknown_ = version;
    }
    ++latest;  // afterwards, so that a reader who sees it finds the version
  }

  StorageVersion find(const Buffer& storage) const {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(storage.get());
    if (found == known_.end() || found->second.version.number < unknown_.number) return unknown_;
    return found->second.version;
  }

 private:
  struct Known {
    std::weak_ptr<std::byte> storage;
    StorageVersion version;
  };

  void forget_freed() {
    std::erase_if(known_, [](const auto& each) { return each.second.storage.expired(); });
    limit_ = std::max(limit_, 2 * known_.size());
  }

  mutable std::mutex mutex_;
  std::unordered_map<const std::byte*, Known> known_;
  std::size_t limit_ = 1024;
  StorageVersion unknown_;  // of a storage that could not be noted, which may be any
};

Versions& versions() {
  static Versions all;
  return all;
}

}  // namespace

void note_write(const Tensor& tensor, const char* call) noexcept {
  if (tensor.defined() && tensor.bytes() > 0) versions().note(tensor.buffer(), call);
}

StorageVersion version_of(const Buffer& storage) { return versions().find(storage); }

std::uint64_t latest_version() { return latest.load(std::memory_order_acquire); }

}  // namespace palimpsest
