#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "autodiff/export.h"
#include "autodiff/var.h"

namespace palimpsest PALIMPSEST_EXPORT {  // for palimpsest-mpi

/// `total` / `count`, where `count` is a number of the whole batch, such as the number of targets
/// that are not ignored. Both have one element and one floating dtype. While the thread records a
/// part of a batch (`CountedMeans::Recording`), the divisor is the part's share of the whole count.
Var divide_by_count(const Var& total, const Var& count, const Where& where);

/// The divisor of a mean: the count of what was recorded, or a share of the count of a whole
/// batch.
enum class CountMark : std::uint32_t { own = 1, share = 2 };
/// The mark of a node whose output is a divisor of `divide_by_count`; nothing for other nodes.
std::optional<CountMark> count_mark(const Tape& tape, NodeId node);
/// Marks a value as such a divisor, and returns the marked value.
Var marked(const Var& divisor, CountMark mark, const Where& where);

/// By node of their tape: whether one of the values depends on it.
std::vector<bool> nodes_behind(std::span<const Var> values);

/// The means of one recorded part of a batch that divide by a count, in the order in which they
/// were recorded. The count of a part is known when the part is recorded. What its mean has to
/// divide by is known when the counts of all parts are. Until then a mean divides by its own count.
class CountedMeans {
 public:
  CountedMeans() = default;
  CountedMeans(const CountedMeans&) = delete;
  CountedMeans& operator=(const CountedMeans&) = delete;
  CountedMeans(CountedMeans&&) noexcept = default;
  CountedMeans& operator=(CountedMeans&&) noexcept = default;
  ~CountedMeans() = default;

  /// While it exists, its thread records a part of a batch on `tape`, and `means` gets the counted
  /// means.
  class [[nodiscard]] Recording {
   public:
    Recording(Tape& tape, CountedMeans& means);
    ~Recording();
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;

   private:
    friend Var divide_by_count(const Var& total, const Var& count, const Where& where);

    /// The innermost one for the tape that a value is recorded on; null without any.
    static Recording* of(Tape& tape);
    Var divisor_of(const Var& count, const Where& where) const {
      return means_.divisor_of(count, where);
    }

    Tape& tape_;
    CountedMeans& means_;
    Recording* before_;  // on this thread
  };

  /// Forgets all means. Those recorded next divide by `divisors`, if given, one for each.
  void begin(std::optional<std::vector<double>> divisors = {});
  /// Notes which means the loss depends on, and which ones it or another of the values depends on.
  /// Nothing computes the rest. Means in bodies of checkpoints and loops count as needed.
  void note_needs(const Var& loss, std::span<const Var> values);
  bool is_needed(std::size_t mean) const { return means_[mean].is_needed; }
  bool is_in_loss(std::size_t mean) const { return means_[mean].is_in_loss; }
  std::size_t size() const { return means_.size(); }
  bool empty() const { return means_.empty(); }

  /// The nodes that make the counts, copied to a tape of their own, and the counts there. Throws
  /// `ArgumentError` for a mean in a body of a loop, whose count is not known before it runs.
  const std::shared_ptr<Tape>& tape() const { return tape_; }
  std::vector<Var> counts() const;
  /// Sets what the recorded means divide by, one number for each; the count of the part where it is
  /// negative. Call before they are computed.
  void divide_by(std::span<const double> divisors) const;
  /// Releases what `counts` needs.
  void forget_counts();

 private:
  struct Mean {
    Var count;       // on `tape_`; undefined in the body of a loop
    Tensor divisor;  // negative: the count of the part
    Var given;       // the divisor on the tape of the part
    Where where;
    bool is_needed = true;
    bool is_in_loss = true;
  };

  /// Notes a mean, and returns what it divides by.
  Var divisor_of(const Var& count, const Where& where);

  std::vector<Mean> means_;
  std::optional<std::vector<double>> known_;  // what means divide by
  std::shared_ptr<Tape> tape_;
};

}  // namespace palimpsest
