#include "strategy/mpi/reverse_ranks.h"

#include <algorithm>
#include <bit>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "checkpoint/stores/hash.h"
#include "strategy/mpi/rank_link.h"

namespace palimpsest {
namespace {

using Patience = std::chrono::duration<double>;

/// Ends this process if it is not destroyed within a time.
class LastResort {
 public:
  LastResort(Patience patience, std::string message)
      : thread_([=](const std::stop_token& stop) {
          std::mutex mutex;
          std::unique_lock lock(mutex);
          std::condition_variable_any condition;
          condition.wait_for(lock, stop, patience, [] { return false; });
          if (stop.stop_requested()) return;
          std::fprintf(stderr, "%s\n", message.c_str());
          std::_Exit(EXIT_FAILURE);
        }) {}

 private:
  std::jthread thread_;
};

class ReverseRanks final : public ReverseGroup {
 public:
  ReverseRanks(RankWorld& world, Patience patience) : world_(world), patience_(patience) {}

  int rank() const override { return world_.rank(); }
  int size() const override { return world_.size(); }
  void least(std::span<std::int64_t> numbers) override { take_least(numbers); }
  void least(std::span<double> numbers) override { take_least(numbers); }

  void require_same(std::span<const std::string> lines) override {
    std::uint64_t digest = lines.size();
    for (const std::string& line : lines) {
      digest = hash_bytes(std::as_bytes(std::span(line)), digest);
    }
    fail_together([&] {
      if (say_same(world_.link().meet(RankCall::reverse, {digest}), 0)) return;
      world_.link().differ([&] { return std::vector(lines.begin(), lines.end()); },
                           "give all ranks the same options");
    });
  }

  void end(const std::exception_ptr& failure) override {
    // The others know already.
    if (std::exchange(has_met_failure_, false)) std::rethrow_exception(failure);
    std::optional<LastResort> last_resort;
    if (failure != nullptr && size() > 1) {
      last_resort.emplace(patience_, "[ranks] rank " + std::to_string(rank()) +
                                         " failed: " + message_of(failure) +
                                         "\n[ranks] other ranks do not answer, so the program "
                                         "ends; a journal continues it");
    }
    world_.link().meet(RankCall::reverse, {}, failure);
  }

 private:
  template <class F>
  void fail_together(F f) {
    try {
      f();
    } catch (...) {
      has_met_failure_ = true;
      throw;
    }
  }

  template <class T>
  void take_least(std::span<T> numbers) {
    RankWords words{};
    internal_check(numbers.size() < words.size(), "too many numbers for a meeting of ranks");
    words[0] = numbers.size() + 1;
    std::ranges::transform(numbers, words.begin() + 1,
                           [](T number) { return std::bit_cast<std::uint64_t>(number); });
    fail_together([&] {
      const std::vector<RankWords>& all = world_.link().meet(RankCall::reverse, words);
      if (!say_same(all, 0)) {
        world_.link().differ(
            [&] {
              return std::vector{"a decision with " + std::to_string(words[0] - 1) + " numbers"};
            },
            "call run and forecast on all ranks alike, with the same number of steps");
      }
      for (const RankWords& of_rank : all) {
        for (std::size_t i = 0; i < numbers.size(); ++i) {
          numbers[i] = std::min(numbers[i], std::bit_cast<T>(of_rank[i + 1]));
        }
      }
    });
  }

  RankWorld& world_;
  Patience patience_;
  bool has_met_failure_ = false;  // in a call before `end`
};

}  // namespace

std::shared_ptr<ReverseGroup> reverse_ranks(RankWorld& world,
                                            std::chrono::duration<double> patience, Where where) {
  if (patience.count() <= 0) {
    throw ArgumentError("ranks", "the patience is not positive; give a time", where);
  }
  return std::make_shared<ReverseRanks>(world, patience);
}

}  // namespace palimpsest
