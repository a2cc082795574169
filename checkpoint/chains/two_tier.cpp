#include "checkpoint/chains/two_tier.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "checkpoint/chains/periodic.h"

namespace palimpsest {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Forward steps to reverse 0, 1, …, n steps in memory: `binomial_forward_steps` for all of them.
std::vector<double> in_memory(std::uint32_t n, std::uint32_t snapshots) {
  std::vector<double> steps(n + 1);
  const std::uint64_t s = std::min(snapshots, n);
  std::uint64_t beta = 1;
  std::uint64_t r = 0;
  for (std::uint32_t l = 1; l <= n; ++l) {
    if (beta < l) ++r, beta = beta * (s + r) / r;
    steps[l] = steps[l - 1] + 1 + static_cast<double>(r);
  }
  return steps;
}

/// Pieces of each length whose first state is on disk and current: D(l) = min(P(l), x + P(l − x) +
/// read + D(x) over x < l), where P is the cost in memory.
///
/// P is convex: when x becomes a better first advance than a smaller one, it stays so for all
/// longer pieces. So the best values of x so far form a queue, each with the length from which it
/// is best.
class DiskPieces {
 public:
  DiskPieces(const std::vector<double>& in_memory, DiskCosts costs)
      : steps(in_memory),
        reads(in_memory.size()),
        advance(in_memory.size()),
        in_memory_(in_memory),
        read_(costs.read),
        access_(costs.write + costs.read) {
    struct Best {
      std::uint32_t x;
      std::uint32_t from;
    };
    std::vector<Best> queue;
    std::size_t head = 0;
    for (std::uint32_t l = 2; l < steps.size(); ++l) {
      std::uint32_t from = l;
      while (queue.size() > head) {
        from = overtakes(queue.back().x, l - 1);
        if (from > std::max(queue.back().from, l)) break;
        queue.pop_back();
        from = l;
      }
      if (from < steps.size()) queue.push_back({l - 1, from});
      while (head + 1 < queue.size() && queue[head + 1].from <= l) ++head;
      const std::uint32_t x = queue[head].x;
      if (with(x, l) < in_memory_[l]) {
        advance[l] = x;
        steps[l] = x + in_memory_[l - x] + steps[x];
        reads[l] = 1 + reads[x];
      }
    }
  }

  /// Cost of a piece that the first sweep makes: the advance over it, its write, its first read and
  /// its reversal.
  double cost(std::uint32_t l) const { return l + access_ + reversal(l); }

  /// False for a length whose cost lies on or above a line between those of shorter and longer
  /// ones.
  bool is_corner(std::uint32_t l) const {
    if (l == 1) return true;
    const auto bend = [l](const auto& f) {
      return (static_cast<double>(f[l + 1]) - f[l]) - (static_cast<double>(f[l]) - f[l - 1]);
    };
    return bend(steps) + read_ * bend(reads) >
           0;  // whole numbers are compared apart, so that straight lines are exact
  }

  /// The length of the pieces that a long chain is cut into.
  std::uint32_t cheapest_a_step() const {
    std::uint32_t best = 1;
    for (std::uint32_t l = 2; l < steps.size(); ++l) {
      if (cost(l) * best < cost(best) * l) best = l;
    }
    return best;
  }

  std::vector<double> steps;           ///< forward steps
  std::vector<std::uint32_t> reads;    ///< after the first
  std::vector<std::uint32_t> advance;  ///< the best x, or 0

 private:
  double reversal(std::uint32_t l) const { return steps[l] + read_ * reads[l]; }
  double with(std::uint32_t x, std::uint32_t l) const {
    return x + in_memory_[l - x] + read_ + reversal(x);
  }
  /// The least length for which `later` is better than `earlier`, or one too long.
  std::uint32_t overtakes(std::uint32_t earlier, std::uint32_t later) const {
    std::uint32_t low = later + 1;
    auto high = static_cast<std::uint32_t>(steps.size());
    while (low < high) {
      const std::uint32_t middle = low + (high - low) / 2;
      if (with(later, middle) <= with(earlier, middle)) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  }

  const std::vector<double>& in_memory_;
  double read_;
  double access_;
};

/// Finds the cheapest way to cut n steps into pieces on disk and a last one in memory.
///
/// Take two pieces whose lengths are both not corners of their cost. One can be made longer and the
/// other shorter without loss, in one direction or the other, until one length is a corner. So all
/// but one are corners.
class Cut {
 public:
  Cut(const std::vector<double>& in_memory, const DiskPieces& pieces)
      : disk_(in_memory.size(), infinity), all_(disk_) {
    const auto n = static_cast<std::uint32_t>(in_memory.size() - 1);
    disk_[0] = 0;
    for (std::uint32_t l = 1; l < n; ++l) {
      for (const Item& item : items_) {
        disk_[l] = std::min(disk_[l], item.cost + disk_[l - item.length]);
        all_[l] = std::min(all_[l], item.cost + all_[l - item.length]);
      }
      // The cost in memory has corners of its own, other than those of pieces.
      const bool corner =
          l == 1 || in_memory[l + 1] - in_memory[l] > in_memory[l] - in_memory[l - 1];
      if (corner) all_[l] = std::min(all_[l], in_memory[l]);
      if (pieces.is_corner(l) && pieces.cost(l) < disk_[l]) {
        items_.push_back({l, pieces.cost(l)});
        disk_[l] = pieces.cost(l);
      }
    }
    double best = in_memory[n];
    std::uint32_t odd = 0;  // the piece whose length is not a corner
    bool odd_on_disk = false;
    for (std::uint32_t l = 1; l < n; ++l) {
      const double last_odd = in_memory[l] + disk_[n - l];
      const double piece_odd = pieces.cost(l) + all_[n - l];
      if (std::min(last_odd, piece_odd) >= best) continue;
      best = std::min(last_odd, piece_odd);
      odd = l;
      odd_on_disk = piece_odd < last_odd;
    }
    if (odd == 0) return;
    if (odd_on_disk) lengths.push_back(odd);
    peel(odd_on_disk ? all_ : disk_, n - odd);
  }

  std::vector<std::uint32_t> lengths;  // of the pieces on disk

 private:
  struct Item {
    std::uint32_t length;
    double cost;
  };

  void peel(const std::vector<double>& costs, std::uint32_t l) {
    const auto fits = [&](const Item& item) {
      return item.length <= l && item.cost + costs[l - item.length] == costs[l];
    };
    for (;;) {
      const auto item = std::find_if(items_.begin(), items_.end(), fits);
      if (item == items_.end()) return;  // nothing is left, or only the last piece in memory
      lengths.push_back(item->length);
      l -= item->length;
    }
  }

  std::vector<Item> items_;   // pieces with corner lengths that no two others beat
  std::vector<double> disk_;  // cost of covering l steps by pieces at corners
  std::vector<double> all_;   // as `disk_`, with a last piece in memory
};

/// Number of steps that are planned exactly.
std::uint32_t planned(std::uint32_t steps, std::uint32_t snapshots, DiskCosts costs) {
  const std::uint64_t useful = std::max(snapshots, best_period(snapshots, costs));
  const std::uint64_t most = std::clamp<std::uint64_t>(4 * useful, 1 << 16, 1 << 18);
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(steps, most));
}

}  // namespace

TwoTierSchedule::TwoTierSchedule(std::uint32_t steps, std::uint32_t snapshots, DiskCosts costs)
    : steps_(steps), snapshots_(snapshots), in_memory_(0, snapshots) {
  require_valid(costs);
  std::vector<double> memory = in_memory(planned(steps, snapshots, costs), snapshots);
  const DiskPieces pieces(memory, costs);
  std::uint32_t first = 0;
  std::uint32_t longest = 0;
  const auto add = [&](std::uint32_t length) {
    pieces_.push_back({first, first + length});
    first += length;
    longest = std::max(longest, length);
    forward_steps_ += length + static_cast<std::uint64_t>(pieces.steps[length]);
    ++writes_;
    reads_ += 1 + pieces.reads[length];
  };
  if (steps >= memory.size()) {
    const std::uint32_t period = pieces.cheapest_a_step();
    while (steps - first >= memory.size()) add(period);
    memory.resize(steps - first + 1);
  }
  for (const std::uint32_t length : Cut(memory, pieces).lengths) add(length);
  forward_steps_ += static_cast<std::uint64_t>(memory[steps - first]);
  advances_.assign(pieces.advance.begin(), pieces.advance.begin() + longest + 1);
  if (pieces_.empty()) in_memory_ = BinomialSchedule(steps, snapshots);
}

std::optional<ChainAction> TwoTierSchedule::next() {
  using Kind = ChainAction::Kind;
  constexpr auto disk = ChainAction::Tier::disk;
  if (then_) return std::exchange(then_, std::nullopt);
  if (const std::optional<ChainAction> action = in_memory_.next()) return action;
  if (written_ < pieces_.size()) {
    const Piece& piece = pieces_[written_];
    then_ = ChainAction{Kind::advance, piece.last};
    const ChainAction write{Kind::store, piece.first, written_, disk};
    if (++written_ == pieces_.size()) {
      in_memory_ = BinomialSchedule(steps_ - piece.last, snapshots_, piece.last);
    }
    return write;
  }
  const std::optional<ChainAction> read = next_read();
  if (!read) return {};
  Piece& piece = pieces_.back();
  const std::uint32_t advance = advances_[piece.last - piece.first];
  const std::uint32_t middle = piece.first + advance;
  in_memory_ = BinomialSchedule(piece.last - middle, snapshots_, middle);
  if (advance > 0) {
    then_ = ChainAction{Kind::advance, middle};
    piece.last = middle;
  } else {
    pieces_.pop_back();
  }
  return read;
}

std::optional<ChainAction> TwoTierSchedule::next_read() const {
  if (pieces_.empty() || written_ < writes_) return {};
  const auto slot = static_cast<std::uint32_t>(pieces_.size() - 1);
  return ChainAction{ChainAction::Kind::restore, pieces_.back().first, slot,
                     ChainAction::Tier::disk};
}

}  // namespace palimpsest
