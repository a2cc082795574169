#pragma once

#include <optional>
#include <span>
#include <vector>

#include "checkpoint/eviction_queue.h"
#include "checkpoint/graph.h"

namespace palimpsest {

/// Keeps a program within a budget of bytes while it is still being recorded: when memory runs
/// short values are dropped, when they are read they are computed again with what they need (DTR,
/// Kirisame et al., 2021).
///
/// It decides; a `Host` carries out. Dropped first is the storage with the least
///
///     (seconds of the node that makes it + seconds of its neighbourhood) / (bytes × idle seconds)
///
/// among those that no step under way holds. Steps that wait for their inputs hold those that are
/// there; where this leaves too little for the step on top, they let go, four times at most, and
/// look again when it is their turn. The neighbourhood is what was dropped around it, as it would
/// have to be computed again with it or for it: the connected components, through inputs and
/// readers, of dropped storages, kept by union-find (DTR's e^eq).
///
/// Exact are the bytes, each storage as a layout rounds it, and what is computed again. Of the
/// score, three things are approximate. A storage made again takes its seconds out of its
/// component, which falls apart only when all components are found anew, after as many drops as
/// there are storages. A neighbourhood is looked up when a storage is used and before it is
/// dropped, where a risen score sends it back to the queue eight times at most, and reaches to
/// sixteen inputs and sixteen outputs of the latest readers. And scores are ordered to within 2^¼
/// (see `EvictionQueue`). So a decision takes amortised O(log n), but for the bands of the queue,
/// and nothing here recurses.
class OnlineEviction {
 public:
  class Host {
   public:
    virtual ~Host() = default;
    /// Runs a node whose inputs are live, into fresh memory; outputs that are live stay as they
    /// are. What it throws ends the call under way, with everything live that was.
    virtual void compute(NodeId node) = 0;
    /// Lets go of a live value.
    virtual void drop(ValueId value) = 0;
    /// True when dropping the `values` live values of a storage, `value` among them, frees nothing,
    /// because somebody else holds it too.
    virtual bool is_held_elsewhere(ValueId value, std::uint32_t values) {
      static_cast<void>(value), static_cast<void>(values);
      return false;
    }
    /// Makes the value live that a storage began with, all of which was dropped, if somebody else
    /// still holds it; it costs nothing then.
    virtual bool recover(ValueId root) {
      static_cast<void>(root);
      return false;
    }
  };

  /// A node that cannot run, and the bytes that it takes at once with what waits for it.
  struct Shortage {
    NodeId node;
    Bytes bytes;
  };

  /// The graph may grow while it is in use, but not change otherwise.
  OnlineEviction(const Graph& graph, Bytes budget, Host& host);

  /// Says, before anything is computed, that a value is there and within the budget.
  void set_live(ValueId value);
  /// Says that every other value in the graph so far was there once.
  void set_dropped();

  /// Runs a node, after what it reads. When the budget does not hold it, nothing of it has run.
  std::optional<Shortage> compute(NodeId node);
  /// Makes values live, all at once.
  std::optional<Shortage> require(std::span<const ValueId> values);
  /// Drops a storage that nobody is expected to read again, but to make others again; for its score
  /// it is idle from the beginning then.
  void release(ValueId root);

  bool is_live(ValueId value) const;
  /// Bytes of what is live, and the most there were, with what nodes take while they run.
  Bytes live_bytes() const { return bytes_; }
  Bytes peak() const { return peak_; }

 private:
  struct Storage {
    ValueId live = none;             ///< the latest made of its live values
    std::uint32_t holders = 0;       ///< their number
    std::uint32_t pins = 0;          ///< reads under way
    std::uint32_t component = none;  ///< while it is dropped: its place in `components_`
    std::uint32_t readers = none;    ///< the latest of `readers_`
    double last_use = 0;
    bool released = false;
    bool lent = false;  ///< somebody else's: live, but outside of the budget
  };
  struct Reader {
    NodeId node;
    std::uint32_t before;
  };
  struct Component {
    std::uint32_t parent;
    double seconds;
  };
  /// A node that waits for its inputs; or, without a node, values that are asked for.
  struct Frame {
    NodeId node;
    std::span<const ValueId> inputs;
    std::size_t first_pin;
    std::size_t at = 0;  ///< the input at hand; those before it are there
  };

  void learn(NodeId end);
  std::optional<Shortage> run(NodeId node, std::span<const ValueId> inputs);
  bool gather(Frame& frame);
  std::optional<Shortage> finish(const Frame& frame);
  std::optional<Shortage> take_over(const Frame& frame);
  void leave();
  void pin(ValueId value);
  void unpin_from(std::size_t first);
  bool make_room(Bytes extra);
  void lend_pinned();
  bool unpin_waiting();
  ValueId cheapest();
  void revive(ValueId value);
  bool recover(ValueId value);
  void evict(ValueId root);
  double price(ValueId root);
  void offer(ValueId root);
  void offer_neighbours(ValueId root);
  template <class F>
  void for_each_neighbour(ValueId root, F f) const;
  std::uint32_t find(std::uint32_t component);
  void join(ValueId root);
  void part(Storage& storage);
  void find_components();
  bool is_dropped(ValueId root) const;
  Bytes bytes(ValueId root) const;

  const Graph& graph_;
  Bytes budget_;
  Host& host_;
  NodeId known_ = 0;
  std::vector<bool> live_;
  std::vector<Storage> storages_;      // by root
  std::vector<ValueId> live_besides_;  // by live value: the one made before it in its storage
  std::vector<Reader> readers_;
  std::vector<Component> components_;
  std::vector<std::uint32_t> seen_;  // components met while looking up a price
  EvictionQueue queue_;
  std::vector<Frame> stack_;
  std::vector<ValueId> pins_;  // roots, by frame
  std::vector<ValueId> lent_;  // roots
  int unpinnings_ = 0;         // of what waits, since the call under way began
  double now_ = 0;
  Bytes bytes_ = 0;   // of live storages that are not lent
  Bytes pinned_ = 0;  // of those that are pinned
  Bytes peak_ = 0;
};

}  // namespace palimpsest
