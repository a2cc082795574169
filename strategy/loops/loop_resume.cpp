#include "strategy/loops/loop_resume.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "strategy/loops/loop.h"

namespace palimpsest {
namespace {

/// One lock for all loops of this process that use a directory.
std::shared_ptr<DirectoryLock> lock_of(const char* operation, const std::string& directory) {
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<DirectoryLock>> locks;
  const std::lock_guard guard(mutex);
  std::erase_if(locks, [](const auto& each) { return each.second.expired(); });
  std::weak_ptr<DirectoryLock>& known = locks[directory];
  if (auto lock = known.lock()) return lock;
  make_directory(operation, directory);
  const auto lock = std::make_shared<DirectoryLock>(operation, directory, "palimpsest-loops.lock");
  known = lock;
  return lock;
}

std::string directory_of_part(const std::string& directory, std::uint32_t part) {
  const std::string whole = normal_path(directory);
  return part == 0 ? whole : whole + "/palimpsest-part-" + std::to_string(part);
}

}  // namespace

LoopResume::LoopResume(const LoopOptions& options, const StepBody& body, const LoopPlace& place)
    : directory_(directory_of_part(options.resume, place.part)),
      node_(place.node),
      lock_(lock_of(body.name(), directory_)) {
  const std::string begin = directory_of("");
  bool is_any_unfinished = false;  // of all loops of the directory: the earlier run has not ended
  std::error_code error;
  for (std::filesystem::directory_iterator entry(directory_, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string path = entry->path().native();
    const bool is_own = path.starts_with(begin);
    if (!path.starts_with(prefix_of_all()) || (!is_own && is_any_unfinished)) continue;
    const auto record = Journal::last_in({body.name(), loop_journal_mark}, path);
    if (!record) continue;
    is_any_unfinished = is_any_unfinished || !record->is_finished;
    if (!is_own) continue;
    const std::string part = path.substr(begin.size());
    const auto at = record->position_as<LoopPosition>();
    found_.emplace(part, at);
    if (!record->is_finished) unfinished_.insert(part);
    const bool is_better = !found_costs_ || !record->is_finished;
    if (at.write_cost >= 0 && is_better) found_costs_ = DiskCosts{at.write_cost, at.read_cost};
  }
  if (!is_any_unfinished) found_.clear();
}

std::string LoopResume::prefix_of_all() const { return directory_ + "/palimpsest-loop-"; }

std::string LoopResume::directory_of(const std::string& part) const {
  return prefix_of_all() + std::to_string(node_) + "-" + part;
}

void LoopResume::forget_gradient(std::uint32_t number) const {
  const std::string part = gradient(number);
  const std::lock_guard lock(mutex_);
  if (!unfinished_.contains(part) || !open_[part].journal.expired()) return;
  std::error_code error;  // one that stays is refused later
  std::filesystem::remove_all(directory_of(part), error);
}

std::shared_ptr<LoopJournal> LoopResume::open(const Loop& loop, const std::string& part,
                                              std::vector<std::string> identity,
                                              const RunScope* scope) const {
  const std::lock_guard lock(mutex_);
  Open& open = open_[part];
  std::shared_ptr<LoopJournal> known = open.journal.lock();
  if (known != nullptr && open.scope == scope) {
    if (!known->take()) return nullptr;
    known->begin_again();
    return known;
  }
  auto journal = std::make_shared<LoopJournal>(loop, directory_of(part), std::move(identity));
  open = {journal, scope};
  return journal;
}

std::uint32_t LoopResume::take_number() const {
  const std::lock_guard lock(mutex_);
  std::uint32_t number = 0;
  for (const std::uint32_t taken : numbers_) number += number == taken ? 1 : 0;
  numbers_.insert(number);
  return number;
}

void LoopResume::give_back_number(std::uint32_t number) const {
  const std::lock_guard lock(mutex_);
  numbers_.erase(number);
}

}  // namespace palimpsest
