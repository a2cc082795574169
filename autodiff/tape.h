#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "autodiff/evaluator.h"
#include "autodiff/export.h"
#include "autodiff/operation.h"
#include "autodiff/philox.h"
#include "autodiff/tape_identity.h"
#include "autodiff/tensor.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// Position of a node on its tape.
using NodeId = std::uint32_t;
/// Position of a value on its tape. Values are numbered over the outputs of all nodes, in order.
using ValueId = std::uint32_t;
inline constexpr std::uint32_t none = 0xffffffffu;

class RedirectedRecording;
class Var;

/// An append-only program in single-assignment form, recorded while ordinary C++ runs.
///
/// A node is an operation, the values it reads and the types of the values it makes. Nodes only
/// read earlier values, so the recording order is a topological order. Every algorithm here is a
/// loop over ids; none recurses. The tape knows what was recorded and which values are present. Its
/// evaluator decides when values are computed.
///
/// Not copyable, since `Var`s refer to it. Tapes on different threads are independent; a tape may
/// be used by one thread at a time. If two threads add to it or clear it at the same moment, one of
/// them gets a `TapeError`. This helps to find the mistake; it does not make sharing safe.
class Tape {
 public:
  /// Without an evaluator, requested values are computed node by node on one thread.
  explicit Tape(std::shared_ptr<Evaluator> evaluator = nullptr);
  ~Tape();
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  /// A leaf for which `backward` returns a gradient. Shares the tensor's storage. Throws
  /// `ArgumentError` for an undefined tensor, `DTypeError` when the dtype is not floating.
  Var parameter(Tensor value, std::string_view name = {}, Where where = Where::current());
  /// A leaf without a gradient, of any dtype. Otherwise like `parameter`.
  Var constant(Tensor value, std::string_view name = {}, Where where = Where::current());

  /// A leaf without a value; the caller supplies it when the tape is run. It is recorded on this
  /// tape even inside a `RedirectedRecording`.
  Var placeholder(const ValueType& type, const Where& where);

  /// The leaf that shares the tensor's storage and has its type, as a value of the tape that is
  /// being recorded. Leaves outside a `RedirectedRecording` are found too. Prefers a parameter to a
  /// constant. Returns an empty handle when there is none.
  Var find_leaf(const Tensor& tensor, Where where = Where::current());
  /// Likewise, for one parameter of a model. Records it, outside of all scopes, where it is not
  /// found. A trainable one is a parameter of the tape, and another one is a constant, whatever
  /// other leaves share the tensor. A leaf without a name gets `name`.
  Var find_or_record(const Tensor& tensor, bool trainable, std::string_view name,
                     Where where = Where::current());

  /// A change of a tensor outside the tape, such as a running mean, after the next run that
  /// computes gradients. The target becomes (1 − weight)·target + weight·value.
  struct Update {
    Tensor target;
    ValueId value;
    double weight;
  };
  /// Registers an update. `backward`, a `Runner`, an `Execution`, also over several processes, or a
  /// `LayerCheckpointer` computes the value in its run, within the same budget. It changes the
  /// target once, however often the forward part is recomputed. Several updates of one target are
  /// done in order, in f64. Throws `ShapeError` when the shapes differ. Throws `DTypeError` when
  /// the dtypes differ, unless both are floating, and unless both are for a weight other than 1.
  /// Throws `ArgumentError` for an undefined target and a weight outside [0, 1].
  void update_after_run(const Tensor& target, const Var& value, double weight = 1,
                        Where where = Where::current());
  /// Updates whose run is still to come.
  std::span<const Update> updates() const { return updates_; }
  void forget_updates() { updates_.clear(); }

  /// Appends a node and returns its first output; call `output(i)` on it for output i. Throws
  /// `TapeError` when an input belongs to another tape, `ShapeError` for an output that no memory
  /// can hold.
  Var record(const Operation& operation, std::span<const Var> inputs,
             std::span<const ValueType> outputs, Attributes attributes, const Where& where);

  /// Removes all nodes and values; earlier `Var`s become invalid. Keeps allocations and the
  /// evaluator. Random operations recorded from now on use fresh streams.
  void clear(Where where = Where::current());

  /// Replaces the content by a copy of the nodes of `other`, without values. `Var`s still refer to
  /// `other`.
  void copy_nodes(const Tape& other);
  /// Copies the seed, generation and part of a tape whose nodes will be recorded here too. This
  /// tape must be empty.
  void accompany(const Tape& other);
  /// True only if the nodes of this tape are a prefix of those of `other`. Names and source lines
  /// must match. Attributes must match as if both tapes had been cleared equally often.
  bool begins(const Tape& other) const;

  /// Sets the seed of the random operations recorded from now on. It is 0 at first.
  void set_seed(std::uint64_t seed) { seed_ = seed; }
  std::uint64_t seed() const { return seed_; }
  /// Tells tapes apart that record the same program for parts of a computation, such as the
  /// micro-batches of a step. It is 0 at first, and `clear` keeps it. Loops on tapes with other
  /// numbers have their journals in other directories.
  void set_part(std::uint32_t part) { part_ = part; }
  std::uint32_t part() const { return part_; }
  /// Handles use this to check whether they are still valid.
  const TapeIdentity& identity() const { return *identity_; }
  /// True when the value existed in `epoch` of the tape's identity and was not removed since.
  bool has_kept(ValueId value, std::uint32_t epoch) const;
  /// Invalidates all handles of a tape that has nodes. Its nodes and values stay.
  void expire_handles() { note_taken_off(0); }
  /// Number of calls of `clear`; part of the key of every random stream.
  std::uint32_t generation() const { return generation_; }
  /// Counts calls of `clear` from `generation` on. With the same seed, random operations then draw
  /// what they would draw on a tape that has been cleared so often. Throws `TapeError` unless the
  /// tape is empty.
  void set_generation(std::uint32_t generation, Where where = Where::current());
  /// The next unused random stream of this tape. Recording the same program again, checkpointed or
  /// not, assigns the same streams to its nodes.
  RandomStream fresh_stream() {
    Tape& tape = recording();
    return {tape.seed_, tape.generation_, tape.streams_++};
  }

 private:
  /// The scopes of nodes to be recorded, as indices of names.
  struct Scopes {
    std::uint32_t path = 0;   // all, joined by '/'
    std::uint32_t stage = 0;  // without those of modules and of differentiated nodes
    bool is_inherited = false;
  };

 public:
  /// While it exists, nodes are recorded under `name`. Scopes nest, as in "layer3/attention".
  class [[nodiscard]] Scope {
   public:
    Scope(Tape& tape, std::string_view name);
    /// Instead of the current scopes, those of a node of the same or another tape.
    Scope(Tape& tape, const Tape& from, NodeId node);
    ~Scope() { tape_.scopes_ = outer_; }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Tape& tape_;
    Scopes outer_;
  };
  Scope scope(std::string_view name) { return Scope(*this, name); }

  /// While it exists, nodes are recorded under the path of a module in its model, as in
  /// "encoder/0/attention". A begin of the path that the current scopes end with is not repeated,
  /// so the modules within a module nest. An empty path changes nothing. Unlike other scopes, those
  /// of modules end no stage of a `hybrid` tape.
  class [[nodiscard]] ModuleScope {
   public:
    ModuleScope(Tape& tape, std::string_view path);
    ~ModuleScope() { tape_.scopes_.path = outer_; }
    ModuleScope(const ModuleScope&) = delete;
    ModuleScope& operator=(const ModuleScope&) = delete;

   private:
    Tape& tape_;
    std::uint32_t outer_;
  };

  /// While it exists, no derivative flows through the nodes recorded.
  class [[nodiscard]] NoGradient {
   public:
    explicit NoGradient(Tape& tape) : tape_(tape.recording()), outer_(tape_.blocked_) {
      tape_.blocked_ = true;
    }
    ~NoGradient() { tape_.blocked_ = outer_; }
    NoGradient(const NoGradient&) = delete;
    NoGradient& operator=(const NoGradient&) = delete;

   private:
    Tape& tape_;
    bool outer_;
  };
  NoGradient no_gradient() { return NoGradient(*this); }

  /// While it exists, derivatives flow through the nodes recorded, even inside `no_gradient`. For
  /// code that records nodes in order to differentiate them itself.
  class [[nodiscard]] WithGradient {
   public:
    explicit WithGradient(Tape& tape) : tape_(tape.recording()), outer_(tape_.blocked_) {
      tape_.blocked_ = false;
    }
    ~WithGradient() { tape_.blocked_ = outer_; }
    WithGradient(const WithGradient&) = delete;
    WithGradient& operator=(const WithGradient&) = delete;

   private:
    Tape& tape_;
    bool outer_;
  };

  /// True while recorded nodes are `TemporaryNodes`.
  bool is_temporary() const { return suspended_; }

  /// The tape on which operations on this tape's values are recorded: this one, unless there is a
  /// `RedirectedRecording`.
  Tape& recording() { return redirections_.load(std::memory_order_relaxed) == 0 ? *this : inner(); }
  /// `value`, or its replacement on this tape. Throws `TapeError` naming `operation` when it
  /// belongs to an unrelated tape.
  inline Var here(const Var& value, std::string_view operation, const Where& where);

  // Recorded nodes and values ---------------------------------------------------------------------

  std::uint32_t node_count() const { return static_cast<std::uint32_t>(nodes_.size()); }
  std::uint32_t value_count() const { return static_cast<std::uint32_t>(values_.size()); }
  const Operation& operation(NodeId node) const { return *nodes_[node].operation; }
  const Attributes& attributes(NodeId node) const { return nodes_[node].attributes; }
  const Where& where(NodeId node) const { return nodes_[node].where; }
  std::span<const ValueId> inputs(NodeId node) const {
    const std::size_t first = nodes_[node].first_input;
    const bool is_last = node + 1 == nodes_.size();
    const std::size_t last = is_last ? inputs_.size() : nodes_[node + 1].first_input;
    return {inputs_.data() + first, last - first};
  }
  ValueId first_output(NodeId node) const { return nodes_[node].first_output; }
  std::uint32_t output_count(NodeId node) const {
    const bool is_last = node + 1 == nodes_.size();
    return (is_last ? value_count() : nodes_[node + 1].first_output) - nodes_[node].first_output;
  }
  /// True when no derivative flows through the node.
  bool is_blocked(NodeId node) const { return nodes_[node].blocked; }
  bool is_leaf(NodeId node) const { return operation(node).leaf; }
  bool is_parameter(NodeId node) const;
  /// The name that the user gave, or empty.
  std::string_view name(NodeId node) const { return names_[nodes_[node].name]; }
  /// The scopes of the node, outermost first, joined by '/'. An adjoint that was recorded outside
  /// all scopes has those of the node that it differentiates.
  std::string_view scope_of(NodeId node) const { return names_[nodes_[node].scope]; }
  /// Likewise, without scopes of modules and of differentiated nodes.
  std::string_view stage_of(NodeId node) const { return names_[nodes_[node].stage]; }
  /// True for an adjoint that has the scopes of the node that it differentiates.
  bool inherits_scope(NodeId node) const { return nodes_[node].inherits_scope; }
  /// A hash of scopes and name, equal for equal texts also on other tapes.
  std::size_t name_hash(NodeId node) const {
    return 31 * name_hashes_[nodes_[node].scope] + name_hashes_[nodes_[node].name];
  }
  /// Text for messages: scope, name, operation and id, as in `layer3/attention matmul #17`.
  std::string describe(NodeId node) const;
  void set_name(NodeId node, std::string_view name);

  NodeId producer(ValueId value) const { return values_[value].node; }
  DType dtype(ValueId value) const { return values_[value].dtype; }
  Shape shape(ValueId value) const {
    const Value& entry = values_[value];
    return Shape(std::span(sizes_.data() + entry.first_size, entry.rank));
  }
  /// True when both have the same shape.
  bool have_one_shape(ValueId a, ValueId b) const;
  ValueType type(ValueId value) const { return {shape(value), dtype(value)}; }
  Bytes bytes(ValueId value) const { return type(value).bytes(); }
  /// The handle of a value. Throws `ArgumentError` for a number that no value has.
  Var var(ValueId value, const Where& where = Where::current());

  /// Bytes of the tape itself, without attributes and values.
  Bytes metadata_bytes() const;

  // Which values are present --------------------------------------------------------------------

  bool has_value(ValueId value) const { return buffers_[value] != nullptr; }
  /// The value's storage; null when it is not present.
  const Buffer& buffer(ValueId value) const { return buffers_[value]; }
  void set_buffer(ValueId value, Buffer buffer) {
    buffers_[value] = std::move(buffer);
    ++changes_;
  }
  /// Releases a value that can be recomputed; has no effect on leaves.
  void drop(ValueId value);
  /// Drops the output and changes its shape to another one of the same rank. The node's operation
  /// must have `has_state_budget`.
  void resize(ValueId value, const Shape& shape);
  /// Counts changes to the set of present values, except leaves. A caller that counts its own
  /// changes can detect those of others.
  std::uint64_t changes() const { return changes_; }
  /// The value. Computed by the evaluator if it is not present.
  Tensor value(ValueId value);
  /// The value, or inside a `RedirectedRecording` the value of its replacement.
  Tensor look(ValueId value);

  const std::shared_ptr<Evaluator>& evaluator() const { return evaluator_; }
  void set_evaluator(std::shared_ptr<Evaluator> evaluator);

 private:
  struct Node {
    const Operation* operation;
    Attributes attributes;
    Where where;
    std::uint32_t first_input;
    ValueId first_output;
    std::uint32_t name;
    std::uint32_t scope;
    std::uint32_t stage;
    bool blocked;
    bool inherits_scope;

    /// True when `later` does the same on a tape that was cleared `round` more times.
    bool comes_again(const Node& later, std::uint32_t round) const;
  };
  struct Value {
    NodeId node;
    std::uint32_t first_size;
    std::uint8_t rank;
    DType dtype;

    bool operator==(const Value&) const = default;
  };

  friend class Blame;
  friend class RedirectedRecording;
  friend class TemporaryNodes;
  friend class Trace;

  std::span<const std::int64_t> sizes_of(const Value& value) const {
    return {sizes_.data() + value.first_size, value.rank};
  }

  /// While it exists, no other thread can change the tape's nodes. Throws `TapeError` if one is
  /// doing so.
  class Recording {
   public:
    Recording(Tape& tape, const Where& where) : tape_(tape) {
      if (tape.is_recording_.test_and_set(std::memory_order_acquire)) throw_recorded_twice(where);
    }
    ~Recording() { tape_.is_recording_.clear(std::memory_order_release); }
    Recording(const Recording&) = delete;
    Recording& operator=(const Recording&) = delete;

   private:
    Tape& tape_;
  };
  [[noreturn]] static void throw_recorded_twice(const Where& where);

  enum class LeafKind : std::uint8_t { any, parameter, constant };
  Var find_own_leaf(const Tensor& tensor, LeafKind kind);
  Var find_leaf(const Tensor& tensor, LeafKind kind, std::string_view name, const Where& where);
  Var leaf(const Operation& kind, Tensor value, std::string_view name, const Where& where);
  Var append(const Operation& operation, std::span<const Var> inputs,
             std::span<const ValueType> outputs, Attributes attributes, const Where& where);
  void truncate(NodeId node);
  /// Removes the nodes from `node` on; waits while another thread records.
  void take_off(NodeId node);
  void note_taken_off(ValueId first);
  /// The innermost `RedirectedRecording` for this tape on this thread, or null.
  const RedirectedRecording* redirection();
  /// `here` for a value of another tape.
  Var stand_in_for(const Var& value, std::string_view operation, const Where& where);
  Tape& inner();
  std::uint32_t intern(std::string_view name);

  /// Values from `first` on were removed from the tape when its epoch was `epoch`.
  struct TakenOff {
    std::uint32_t epoch;
    ValueId first;
  };

  TapeIdentity* identity_;
  std::uint32_t first_epoch_;
  std::vector<TakenOff> taken_off_;  // in order; each removes fewer values than those before
  std::vector<Node> nodes_;
  std::vector<ValueId> inputs_;
  std::vector<Value> values_;
  std::vector<std::int64_t> sizes_;
  std::vector<Buffer> buffers_;
  std::vector<std::string> names_;
  std::vector<std::size_t> name_hashes_;
  struct NameHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view name) const {
      return std::hash<std::string_view>()(name);
    }
  };
  std::unordered_map<std::string, std::uint32_t, NameHash, std::equal_to<>> name_ids_;
  /// Leaves by the address of their elements, among the first `indexed_` nodes; see `find_leaf`.
  /// Bodies of loops may look for leaves on several threads.
  std::mutex leaves_mutex_;
  std::unordered_multimap<const std::byte*, ValueId> leaves_;  // one of each type and kind
  NodeId indexed_ = 0;
  std::vector<Update> updates_;
  std::shared_ptr<Evaluator> evaluator_;
  std::uint64_t seed_ = 0;
  std::uint32_t generation_ = 0;
  std::uint32_t streams_ = 0;
  std::uint32_t part_ = 0;
  std::uint64_t changes_ = 0;
  Scopes scopes_;
  bool blocked_ = false;
  bool suspended_ = false;  // a trace is being recorded; the evaluator is not notified
  std::atomic<std::uint32_t> redirections_ = 0;
  std::atomic_flag is_recording_;
  const Where* blame_ = nullptr;  // recorded instead of the caller's line while not null
};

/// One node of a tape, as passed to the cost, workspace and message functions of its operation.
class NodeView {
 public:
  NodeView(const Tape& tape, NodeId node) : tape_(&tape), node_(node) {}

  const Tape& tape() const { return *tape_; }
  NodeId id() const { return node_; }
  const Operation& operation() const { return tape_->operation(node_); }
  const Attributes& attributes() const { return tape_->attributes(node_); }
  std::size_t input_count() const { return tape_->inputs(node_).size(); }
  std::size_t output_count() const { return tape_->output_count(node_); }
  ValueType input(std::size_t i) const { return tape_->type(tape_->inputs(node_)[i]); }
  ValueType output(std::size_t i = 0) const {
    return tape_->type(tape_->first_output(node_) + static_cast<ValueId>(i));
  }

 private:
  const Tape* tape_;
  NodeId node_;
};

/// Bytes of all inputs and outputs.
double bytes_moved(const NodeView& node);

/// Cost estimate of the node, by its operation's cost function.
Cost cost_of(const NodeView& node);

/// Bytes of scratch for running the node with up to `threads` threads, including widened copies.
Bytes workspace_of(const NodeView& node, int threads);

}  // namespace palimpsest
