#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "strategy/mpi/rank_error.h"

namespace palimpsest {

/// Calls that all ranks make.
enum class RankCall : std::uint64_t {
  leave,
  together,
  broadcast,
  verify,
  step,
  end_of_step,
  differ
};

/// Numbers that ranks tell each other when they meet.
using RankWords = std::array<std::uint64_t, 9>;

/// True when all ranks say the same there.
bool say_same(const std::vector<RankWords>& all, std::size_t word);

/// Throws `EnvironmentError` for a call of MPI that failed.
void check_mpi(int code, const char* call);

/// A communicator, and the protocol by which ranks fail together. All member functions but
/// accessors wait for all ranks.
class RankLink {
 public:
  /// A copy of `communicator`.
  explicit RankLink(MPI_Comm communicator);
  ~RankLink();
  RankLink(const RankLink&) = delete;
  RankLink& operator=(const RankLink&) = delete;

  MPI_Comm communicator() const { return communicator_; }
  int rank() const { return rank_; }
  int size() const { return size_; }
  int ranks_here() const { return ranks_here_; }
  /// Of this machine, that this rank has for itself: see `share_of_cores`.
  int cores() const { return cores_; }
  std::optional<int> first_failed() const { return first_failed_; }

  /// Every call that all ranks make begins here, with what this rank says and how it failed so far,
  /// if it did. Gives what all ranks say, until the next call. Throws `failure`, and `RankError`
  /// when another rank failed, left, or is in another call. Takes no memory but to throw.
  const std::vector<RankWords>& meet(RankCall call, const RankWords& words,
                                     const std::exception_ptr& failure = nullptr);
  /// Waits for all ranks to leave, or tells the others that this one does.
  void leave() noexcept;

  void broadcast(std::span<std::byte> bytes, int from);
  /// That of each rank, into as many.
  template <class T>
    requires std::is_trivially_copyable_v<T>
  void gather(const T& own, std::span<T> all) {
    internal_check(std::ssize(all) == size_, "something of another number of ranks is gathered");
    gather_bytes(&own, all.data(), sizeof own);
  }
  template <class T>
  std::vector<T> gather(const T& own) {
    std::vector<T> all(static_cast<std::size_t>(size_));
    gather(own, std::span(all));
    return all;
  }

  /// Throws a `RankError` that names the first rank whose lines are not those of rank 0, and the
  /// first line that differs; of lines, and of messages here and in `meet`, the first 4,000
  /// characters. `lines()` makes them, and may throw on some ranks. `advice` says what to do.
  template <class F>
  [[noreturn]] void differ(F lines, const char* advice) {
    std::vector<std::string> own;
    std::exception_ptr failure;
    try {
      own = lines();
    } catch (...) {
      failure = std::current_exception();
    }
    compare(own, failure, advice);
  }

 private:
  struct Notice {
    RankCall call;
    std::uint64_t failed;
    RankWords words;
  };

  void gather_bytes(const void* own, void* all, std::size_t bytes);
  /// Takes no memory: gives the begin of the text of rank `from`, until the next call.
  std::string_view broadcast_text(std::string_view text, int from);
  [[noreturn]] void compare(std::span<const std::string> lines, const std::exception_ptr& failure,
                            const char* advice);
  [[noreturn]] void blame(const std::string& message, int rank);

  MPI_Comm communicator_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 1;
  int ranks_here_ = 1;
  int cores_ = 1;
  std::vector<Notice> notices_;    // of a meeting, by rank
  std::vector<RankWords> said_;    // likewise
  std::array<char, 4001> text_{};  // that was broadcast
  std::optional<int> first_failed_;
  std::optional<int> left_;  // a rank that the others cannot meet any more
};

}  // namespace palimpsest
