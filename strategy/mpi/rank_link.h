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

/// Calls that all ranks make together.
enum class RankCall : std::uint64_t {
  leave,
  together,
  broadcast,
  verify,
  step,
  end_of_step,
  differ,
  reverse
};

/// Numbers that ranks exchange when they meet.
using RankWords = std::array<std::uint64_t, 11>;

/// True when this word is the same on all ranks.
bool say_same(const std::vector<RankWords>& all, std::size_t word);

/// Valid as long as the exception; allocates nothing.
const char* message_of(const std::exception_ptr& failure);

/// Throws `EnvironmentError` for an MPI call that failed.
void check_mpi(int code, const char* call);

/// A communicator, and the protocol by which ranks fail together. All member functions except
/// accessors wait for all ranks.
class RankLink {
 public:
  /// Duplicates `communicator`.
  explicit RankLink(MPI_Comm communicator);
  ~RankLink();
  RankLink(const RankLink&) = delete;
  RankLink& operator=(const RankLink&) = delete;

  MPI_Comm communicator() const { return communicator_; }
  int rank() const { return rank_; }
  int size() const { return size_; }
  int ranks_here() const { return ranks_here_; }
  /// Cores of this machine that this rank has for itself: see `share_of_cores`.
  int cores() const { return cores_; }
  std::optional<int> first_failed() const { return first_failed_; }

  /// Begins every call that all ranks make. This rank contributes `words` and, if it has failed,
  /// its `failure`. Returns the words of all ranks, valid until the next call. Throws `failure`;
  /// throws `RankError` when another rank failed, left, or is in another call. Allocates only to
  /// throw.
  const std::vector<RankWords>& meet(RankCall call, const RankWords& words,
                                     const std::exception_ptr& failure = nullptr);
  /// Waits for all ranks to leave, or tells the others that this one leaves.
  void leave() noexcept;

  void broadcast(std::span<std::byte> bytes, int from);
  /// Adds the numbers of each rank to `sums`, in the order of the ranks. All ranks have equally
  /// many. `received` is room for those of one rank. Allocates nothing.
  void add(std::span<const double> own, std::span<double> received, std::span<double> sums);
  /// Gathers the value of each rank into `all`, which has one element per rank.
  template <class T>
    requires std::is_trivially_copyable_v<T>
  void gather(const T& own, std::span<T> all) {
    internal_check(std::ssize(all) == size_, "the gathered data has another number of ranks");
    gather_bytes(&own, all.data(), sizeof own);
  }
  template <class T>
  std::vector<T> gather(const T& own) {
    std::vector<T> all(static_cast<std::size_t>(size_));
    gather(own, std::span(all));
    return all;
  }

  /// Throws a `RankError` that names the first rank whose lines differ from those of rank 0, and
  /// the first line that differs. Lines, and messages here and in `meet`, are cut after 4,000
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
  /// Allocates nothing. Returns the beginning of the text of rank `from`, valid until the next
  /// call.
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
  std::array<char, 4001> text_{};  // the text broadcast last
  std::optional<int> first_failed_;
  std::optional<int> left_;  // a rank that the others can no longer meet
};

}  // namespace palimpsest
