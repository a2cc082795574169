#include "strategy/mpi/rank_link.h"

#include <algorithm>
#include <cstdio>

#include "strategy/mpi/core_share.h"

namespace palimpsest {
namespace {

std::string_view name_of(RankCall call) {
  static constexpr std::array<std::string_view, 8> names{"the end",
                                                         "together()",
                                                         "broadcast()",
                                                         "verify()",
                                                         "gradients() of a step",
                                                         "the end of a step",
                                                         "a comparison",
                                                         "a run of ReverseDriver"};
  return names[static_cast<std::size_t>(call)];
}

std::string named(int rank) { return "rank " + std::to_string(rank); }

/// The first rank for which `holds` is true, or −1.
template <class T, class F>
int first_rank(const std::vector<T>& all, F holds) {
  const auto found = std::find_if(all.begin(), all.end(), holds);
  return found == all.end() ? -1 : static_cast<int>(found - all.begin());
}

constexpr std::size_t most_at_once = std::size_t{1} << 30;  // MPI counts in int

}  // namespace

bool say_same(const std::vector<RankWords>& all, std::size_t word) {
  return std::all_of(all.begin(), all.end(),
                     [&](const RankWords& words) { return words[word] == all[0][word]; });
}

const char* message_of(const std::exception_ptr& failure) {
  if (failure == nullptr) return "";
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& error) {
    return *error.what() != '\0' ? error.what() : "an exception without a message";
  } catch (...) {
    return "an exception of unknown type";
  }
}

void check_mpi(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw EnvironmentError("[ranks] " + std::string(call) +
                         " failed: " + std::string(text.data(), static_cast<std::size_t>(length)));
}

RankLink::RankLink(MPI_Comm communicator) {
  check_mpi(MPI_Comm_dup(communicator, &communicator_), "MPI_Comm_dup");
  MPI_Comm_set_errhandler(communicator_, MPI_ERRORS_RETURN);
  MPI_Comm_rank(communicator_, &rank_);
  MPI_Comm_size(communicator_, &size_);
  MPI_Comm here = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(communicator_, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &here),
            "MPI_Comm_split_type");
  MPI_Comm_size(here, &ranks_here_);
  int rank_here = 0;
  MPI_Comm_rank(here, &rank_here);
  const CoreSet own = usable_cores();
  std::vector<CoreSet> sets(static_cast<std::size_t>(ranks_here_));
  check_mpi(MPI_Allgather(&own, sizeof own, MPI_BYTE, sets.data(), sizeof own, MPI_BYTE, here),
            "MPI_Allgather");
  cores_ = share_of_cores(sets, static_cast<std::size_t>(rank_here));
  MPI_Comm_free(&here);
  notices_.resize(static_cast<std::size_t>(size_));
  said_.resize(notices_.size());
}

RankLink::~RankLink() { MPI_Comm_free(&communicator_); }

void RankLink::gather_bytes(const void* own, void* all, std::size_t bytes) {
  const int count = static_cast<int>(bytes);
  check_mpi(MPI_Allgather(own, count, MPI_BYTE, all, count, MPI_BYTE, communicator_),
            "MPI_Allgather");
}

void RankLink::broadcast(std::span<std::byte> bytes, int from) {
  while (!bytes.empty()) {
    const std::span<std::byte> part = bytes.first(std::min(bytes.size(), most_at_once));
    check_mpi(MPI_Bcast(part.data(), static_cast<int>(part.size()), MPI_BYTE, from, communicator_),
              "MPI_Bcast");
    bytes = bytes.subspan(part.size());
  }
}

void RankLink::add(std::span<const double> own, std::span<double> received,
                   std::span<double> sums) {
  for (int rank = 0; rank < size_ && !own.empty(); ++rank) {
    if (rank == rank_) std::ranges::copy(own, received.begin());
    broadcast(std::as_writable_bytes(received), rank);
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += received[i];
  }
}

std::string_view RankLink::broadcast_text(std::string_view text, int from) {
  std::size_t size = rank_ == from ? text.copy(text_.data(), text_.size() - 1) : 0;
  broadcast(std::as_writable_bytes(std::span(&size, 1)), from);
  broadcast(std::as_writable_bytes(std::span(text_.data(), size)), from);
  text_[size] = '\0';
  return text_.data();
}

void RankLink::blame(const std::string& message, int rank) {
  first_failed_ = rank;
  throw RankError("[ranks] " + message, rank);
}

const std::vector<RankWords>& RankLink::meet(RankCall call, const RankWords& words,
                                             const std::exception_ptr& failure) {
  if (left_ && failure != nullptr) std::rethrow_exception(failure);
  if (left_)
    blame(
        named(*left_) + " has left; ranks can no longer exchange data, so start the program again",
        *left_);
  gather(Notice{call, failure != nullptr ? 1u : 0u, words}, std::span(notices_));
  const std::vector<Notice>& all = notices_;
  const auto leaves = [](const Notice& notice) { return notice.call == RankCall::leave; };
  const int leaver = first_rank(all, leaves);
  if (leaver >= 0) {
    left_ = leaver;
    first_failed_ = leaver;
    if (failure != nullptr) std::rethrow_exception(failure);
    if (call != RankCall::leave) {
      blame(named(leaver) + " has left, while " + named(rank_) + " is in " +
                std::string(name_of(call)) +
                ": an error elsewhere ended it, which it reports itself, or it makes fewer calls",
            leaver);
    }
    return said_;
  }
  const int failed = first_rank(all, [](const Notice& notice) { return notice.failed != 0; });
  if (failed >= 0) {
    const std::string_view message = broadcast_text(message_of(failure), failed);
    first_failed_ = failed;
    if (failure != nullptr) std::rethrow_exception(failure);
    blame(named(failed) + " failed: " + std::string(message), failed);
  }
  const int other = first_rank(all, [&](const Notice& n) { return n.call != all[0].call; });
  if (other >= 0) {
    blame(named(other) + " is in " +
              std::string(name_of(all[static_cast<std::size_t>(other)].call)) + ", rank 0 in " +
              std::string(name_of(all[0].call)) +
              "; make the same calls in the same order on all ranks",
          other);
  }
  first_failed_.reset();
  std::transform(all.begin(), all.end(), said_.begin(),
                 [](const Notice& notice) { return notice.words; });
  return said_;
}

void RankLink::leave() noexcept {
  if (left_) return;
  try {
    meet(RankCall::leave, {});
  } catch (...) {
    left_ = rank_;  // a rank that leaves reports no errors
  }
}

void RankLink::compare(std::span<const std::string> lines, const std::exception_ptr& failure,
                       const char* advice) {
  meet(RankCall::differ, {}, failure);
  std::size_t count = lines.size();
  broadcast(std::as_writable_bytes(std::span(&count, 1)), 0);
  const char* const none = "nothing more";
  std::array<char, 4001> message{};
  for (std::size_t i = 0; i < std::max(count, lines.size()); ++i) {
    const char* const here = i < lines.size() ? lines[i].c_str() : none;
    const std::string_view there = i < count ? broadcast_text(here, 0) : none;
    const bool is_same = std::string_view(here).substr(0, text_.size() - 1) == there;
    if (is_same || message[0] != '\0') continue;
    const auto most = static_cast<int>(message.size() / 2 - 32);
    std::snprintf(message.data(), message.size(), "has %.*s, rank 0 has %.*s", most, here, most,
                  there.data());
  }
  const RankWords differs{message[0] != '\0' ? 1u : 0u};
  const int rank = first_rank(meet(RankCall::differ, differs),
                              [](const RankWords& words) { return words[0] != 0; });
  if (rank < 0) throw InternalError("ranks that differ have the same lines");
  const std::string_view text = broadcast_text(message.data(), rank);
  blame(named(rank) + " " + std::string(text) + "; " + advice, rank);
}

}  // namespace palimpsest
