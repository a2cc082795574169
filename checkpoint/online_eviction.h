#pragma once

#include <optional>
#include <span>
#include <vector>

#include "checkpoint/eviction_queue.h"
#include "checkpoint/graph.h"

namespace palimpsest {

/// Keeps a program within a budget of bytes while it is still being recorded. Values are dropped
/// when memory runs short. When they are read, they are recomputed with everything they need (DTR,
/// Kirisame et al., 2021).
///
/// This class decides; a `Host` executes. The first storage to be dropped is the one with the least
///
///     (seconds of the node that makes it + seconds of its neighbourhood) / (bytes × idle seconds)
///
/// among those not held by a step in progress. Steps that wait for their inputs hold the inputs
/// that are live. When this leaves too little memory for the current step, the waiting steps
/// release them, at most four times, and look again when their turn comes. The neighbourhood is
/// what would have to be recomputed together with the storage or for it: the connected components,
/// through inputs and readers, of dropped storages. They are kept by union-find (DTR's e^eq).
///
/// Bytes are exact, each storage rounded as in a layout, and so are the nodes to recompute. The
/// score is approximate in three ways:
///
/// - A storage that is made again takes its seconds out of its component. The component is split
///   only when all components are rebuilt, which happens after as many drops as there are storages.
/// - A neighbourhood is looked up when a storage is used and before it is dropped. A risen score
///   sends the storage back to the queue, at most eight times. The neighbourhood includes at most
///   sixteen inputs, and sixteen outputs of the latest readers.
/// - Scores are ordered to within a factor of 2^¼ (see `EvictionQueue`).
///
/// So a decision takes amortised O(log n), apart from the bands of the queue. Nothing here
/// recurses.
class OnlineEviction {
 public:
  class Host {
   public:
    virtual ~Host() = default;
    /// Runs a node whose inputs are live, into fresh memory. Outputs that are live stay as they
    /// are. An exception ends the current call; everything that was live stays live.
    virtual void compute(NodeId node) = 0;
    /// Drops a live value.
    virtual void drop(ValueId value) = 0;
    /// True when dropping all `values` live values of a storage, one of which is `value`, frees
    /// nothing because another holder shares it.
    virtual bool is_held_elsewhere(ValueId value, std::uint32_t values) {
      static_cast<void>(value), static_cast<void>(values);
      return false;
    }
    /// Revives the root value of a storage whose values were all dropped, if another holder still
    /// has it. This costs nothing. Returns false otherwise.
    virtual bool recover(ValueId root) {
      static_cast<void>(root);
      return false;
    }
  };

  /// A node that cannot run, and the bytes that it needs at once, including what waits for it.
  struct Shortage {
    NodeId node;
    Bytes bytes;
  };

  /// The graph may grow while it is in use, but must not change otherwise.
  OnlineEviction(const Graph& graph, Bytes budget, Host& host);

  /// Declares, before anything is computed, that a value is live and counts in the budget.
  void set_live(ValueId value);
  /// Declares that every other value in the graph so far was live once and has been dropped.
  void set_dropped();

  /// Runs a node, after recomputing what it reads. When the budget does not suffice, the node has
  /// not run.
  std::optional<Shortage> compute(NodeId node);
  /// Makes values live, all at once.
  std::optional<Shortage> require(std::span<const ValueId> values);
  /// Drops a storage that is not expected to be read again, except to recompute others. From then
  /// on its score treats it as idle since the beginning.
  void release(ValueId root);

  bool is_live(ValueId value) const;
  /// Bytes of live storages, and the most there were, including nodes' temporary bytes while they
  /// run.
  Bytes live_bytes() const { return bytes_; }
  Bytes peak() const { return peak_; }

 private:
  struct Storage {
    ValueId live = none;             ///< the most recently made of its live values
    std::uint32_t holders = 0;       ///< number of its live values
    std::uint32_t pins = 0;          ///< reads in progress
    std::uint32_t component = none;  ///< while it is dropped: its index in `components_`
    std::uint32_t readers = none;    ///< index of its latest entry in `readers_`
    double last_use = 0;
    bool released = false;
    bool lent = false;  ///< held elsewhere too: live, but outside the budget
  };
  struct Reader {
    NodeId node;
    std::uint32_t before;
  };
  struct Component {
    std::uint32_t parent;
    double seconds;
  };
  /// A node that waits for its inputs; without a node, values that are requested.
  struct Frame {
    NodeId node;
    std::span<const ValueId> inputs;
    std::size_t first_pin;
    std::size_t at = 0;  ///< the current input; those before it are live
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
  std::vector<std::uint32_t> seen_;  // components visited while computing a price
  EvictionQueue queue_;
  std::vector<Frame> stack_;
  std::vector<ValueId> pins_;  // roots, by frame
  std::vector<ValueId> lent_;  // roots
  int unpinnings_ = 0;         // of waiting steps, since the current call began
  double now_ = 0;
  Bytes bytes_ = 0;   // of live storages that are not lent
  Bytes pinned_ = 0;  // of those that are pinned
  Bytes peak_ = 0;
};

}  // namespace palimpsest
