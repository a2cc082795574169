#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "autodiff/evaluator.h"
#include "autodiff/export.h"
#include "autodiff/in_use.h"
#include "autodiff/node_view.h"
#include "autodiff/operation.h"
#include "autodiff/outdated.h"
#include "autodiff/philox.h"
#include "autodiff/present_values.h"
#include "autodiff/recording_context.h"
#include "autodiff/tape_identity.h"
#include "autodiff/tensor.h"
#include "autodiff/wengert_list.h"

namespace palimpsest {

class LeafIndex;
enum class LeafKind : std::uint8_t;

}  // namespace palimpsest

namespace palimpsest PALIMPSEST_EXPORT {

class RedirectedRecording;
class Var;

/// A program, recorded while ordinary C++ runs, and its values.
///
/// A tape consists of three parts: its nodes (`WengertList`), the values that are present, and what
/// the nodes that are recorded next have in common. Its evaluator decides when values are computed.
///
/// Not copyable, since `Var`s refer to it. Tapes on different threads are independent; a tape may
/// be used by one thread at a time. Members that change a tape throw `TapeError` while another
/// thread changes or runs it. This helps to find the mistake; it does not make sharing safe.
///
/// They also throw it in functions that a run of the tape calls, such as the forward function of a
/// custom operation, a progress function or a planner. While derivatives, a loop or a checkpoint
/// are recorded, functions of the user may record and compute, and may not clear the tape or
/// replace its evaluator.
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
  /// tape even inside the body of a loop or a `checkpoint`.
  Var placeholder(const ValueType& type, const Where& where);

  /// The leaf that shares the tensor's storage and has its type, as a value of the tape that is
  /// being recorded. Inside the body of a loop or a `checkpoint`, leaves of the tape around it are
  /// found too. Prefers a parameter to a constant. Returns an empty handle when there is none.
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
  /// done in order, in f64. Throws `ShapeError` when the shapes differ. Throws `DTypeError` unless
  /// both dtypes are floating, or they are equal and the weight is 1.
  /// Throws `ArgumentError` for an undefined target and a weight outside [0, 1].
  void update_after_run(const Tensor& target, const Var& value, double weight = 1,
                        Where where = Where::current());
  /// Updates whose run is still to come.
  std::span<const Update> updates() const { return updates_; }
  /// Drops them, so that no run applies them.
  void forget_updates() {
    in_use_.require(InUse::Level::records, "Tape::forget_updates");
    updates_.clear();
  }

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
  /// Takes the seed and generation of a tape that this one translates. Both tapes draw from one
  /// sequence of random streams until this one is cleared.
  void share_streams(const Tape& other);
  /// True only if the nodes of this tape are a prefix of those of `other`. Names and source lines
  /// must match. Attributes must match as if both tapes had been cleared equally often.
  bool begins(const Tape& other) const;

  /// Sets the seed of the random operations recorded from now on. It is 0 at first.
  void set_seed(std::uint64_t seed) {
    in_use_.require(InUse::Level::records, "Tape::set_seed");
    context_.seed = seed;
  }
  std::uint64_t seed() const { return context_.seed; }
  /// Tells tapes apart that record the same program for parts of a computation, such as the
  /// micro-batches of a step. It is 0 at first, and `clear` keeps it. Loops on tapes with other
  /// numbers have their journals in other directories.
  void set_part(std::uint32_t part) {
    in_use_.require(InUse::Level::records, "Tape::set_part");
    context_.part = part;
  }
  std::uint32_t part() const { return context_.part; }
  /// Handles use this to check whether they are still valid.
  const TapeIdentity& identity() const { return handles_.identity(); }
  /// True when the value existed in `epoch` of the tape's identity and was not removed since.
  bool has_kept(ValueId value, std::uint32_t epoch) const {
    return handles_.has_kept(value, epoch);
  }
  /// Invalidates all handles of a tape that has nodes. Its nodes and values stay.
  void expire_handles() {
    const InUse::Use use(in_use_, tape_use::changing, "Tape::expire_handles");
    handles_.note_removed(0);
  }
  /// Number of calls of `clear`; part of the key of every random stream.
  std::uint32_t generation() const { return context_.generation; }
  /// Counts calls of `clear` from `generation` on. With the same seed, random operations then draw
  /// what they would draw on a tape that has been cleared so often. Throws `TapeError` unless the
  /// tape is empty.
  void set_generation(std::uint32_t generation, Where where = Where::current());
  /// The next unused random stream of this tape. Recording the same program again, checkpointed or
  /// not, assigns the same streams to its nodes.
  RandomStream fresh_stream() {
    Tape& tape = recording();
    tape.in_use_.require(InUse::Level::records, "Tape::fresh_stream");
    RecordingContext& context = tape.context_;
    return {context.seed, context.generation, (*context.streams())++};
  }

  /// While it exists, nodes are recorded under `name`. Scopes nest, as in "layer3/attention".
  class [[nodiscard]] Scope {
   public:
    Scope(Tape& tape, std::string_view name);
    /// Instead of the current scopes, those of a node of the same or another tape.
    Scope(Tape& tape, const Tape& from, NodeId node);
    ~Scope() { tape_.context_.scopes = outer_; }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Tape& tape_;
    RecordingContext::Scopes outer_;
  };
  Scope scope(std::string_view name) { return Scope(*this, name); }

  /// While it exists, nodes are recorded under the path of a module in its model, as in
  /// "encoder/0/attention". A begin of the path that the current scopes end with is not repeated,
  /// so the modules within a module nest. An empty path changes nothing. Unlike other scopes, those
  /// of modules end no stage of a `hybrid` tape.
  class [[nodiscard]] ModuleScope {
   public:
    ModuleScope(Tape& tape, std::string_view path);
    ~ModuleScope() { tape_.context_.scopes.path = outer_; }
    ModuleScope(const ModuleScope&) = delete;
    ModuleScope& operator=(const ModuleScope&) = delete;

   private:
    Tape& tape_;
    std::uint32_t outer_;
  };

  /// While it exists, no derivative flows through the nodes recorded.
  class [[nodiscard]] NoGradient {
   public:
    explicit NoGradient(Tape& tape) : tape_(tape.recording()), outer_(tape_.context_.is_blocked) {
      tape_.in_use_.require(InUse::Level::records, "Tape::no_gradient");
      tape_.context_.is_blocked = true;
    }
    ~NoGradient() { tape_.context_.is_blocked = outer_; }
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
    explicit WithGradient(Tape& tape) : tape_(tape.recording()), outer_(tape_.context_.is_blocked) {
      tape_.in_use_.require(InUse::Level::records, "Tape::with_gradient");
      tape_.context_.is_blocked = false;
    }
    ~WithGradient() { tape_.context_.is_blocked = outer_; }
    WithGradient(const WithGradient&) = delete;
    WithGradient& operator=(const WithGradient&) = delete;

   private:
    Tape& tape_;
    bool outer_;
  };

  /// True while a `Program` is recorded on the tape.
  bool is_program() const { return context_.is_program; }
  /// Throws `TapeError` naming `operation` if a `Program` is recorded on the tape and runs of it
  /// have other elements in this value. That is so if it depends on a leaf or on random numbers.
  /// `instead` says what to use.
  void require_fixed(ValueId value, std::string_view operation, std::string_view instead,
                     const Where& where) const;

  /// True while recorded nodes are `TemporaryNodes`.
  bool is_temporary() const { return context_.is_temporary; }

  /// The tape on which operations on this tape's values are recorded: this one, unless there is a
  /// `RedirectedRecording`.
  Tape& recording() { return redirections_.load(std::memory_order_relaxed) == 0 ? *this : inner(); }
  /// `value`, or its replacement on this tape. Throws `TapeError` naming `operation` when it
  /// belongs to an unrelated tape.
  inline Var here(const Var& value, std::string_view operation, const Where& where);

  // Recorded nodes and values ---------------------------------------------------------------------

  const WengertList& nodes() const { return nodes_; }
  std::uint32_t node_count() const { return nodes_.node_count(); }
  std::uint32_t value_count() const { return nodes_.value_count(); }
  const Operation& operation(NodeId node) const { return nodes_.operation(node); }
  const Attributes& attributes(NodeId node) const { return nodes_.attributes(node); }
  const Where& where(NodeId node) const { return nodes_.where(node); }
  std::span<const ValueId> inputs(NodeId node) const { return nodes_.inputs(node); }
  ValueId first_output(NodeId node) const { return nodes_.first_output(node); }
  std::uint32_t output_count(NodeId node) const { return nodes_.output_count(node); }
  /// True when no derivative flows through the node.
  bool is_blocked(NodeId node) const { return nodes_.labels(node).is_blocked; }
  /// True for parameters and constants, or for parameters only.
  bool is_leaf(NodeId node) const { return nodes_.is_leaf(node); }
  bool is_parameter(NodeId node) const { return nodes_.is_parameter(node); }
  /// Gets and sets the name that the user gave; empty for none.
  std::string_view name(NodeId node) const { return nodes_.name(node); }
  void set_name(NodeId node, std::string_view name) {
    in_use_.require(InUse::Level::records, "Tape::set_name");
    nodes_.set_name(node, name);
  }
  /// The scopes of the node, outermost first, joined by '/'. An adjoint that was recorded outside
  /// all scopes has those of the node that it differentiates.
  std::string_view scope_of(NodeId node) const { return nodes_.scope_of(node); }
  /// Likewise, without scopes of modules and of differentiated nodes.
  std::string_view stage_of(NodeId node) const { return nodes_.stage_of(node); }
  /// True for an adjoint that has the scopes of the node that it differentiates.
  bool inherits_scope(NodeId node) const { return nodes_.labels(node).inherits_scope; }
  /// A hash of scopes and name, equal for equal texts also on other tapes.
  std::size_t name_hash(NodeId node) const { return nodes_.name_hash(node); }
  /// Text for messages: scope, name, operation and id, as in `layer3/attention matmul #17`.
  std::string describe(NodeId node) const { return nodes_.describe(node); }

  NodeId producer(ValueId value) const { return nodes_.producer(value); }
  DType dtype(ValueId value) const { return nodes_.dtype(value); }
  Shape shape(ValueId value) const { return nodes_.shape(value); }
  /// True when both have the same shape.
  bool have_one_shape(ValueId a, ValueId b) const { return nodes_.have_one_shape(a, b); }
  /// Dtype and shape, and the bytes that the value takes.
  ValueType type(ValueId value) const { return nodes_.type(value); }
  Bytes bytes(ValueId value) const { return type(value).bytes(); }
  /// The handle of a value. Throws `ArgumentError` for a number that no value has.
  Var var(ValueId value, const Where& where = Where::current());

  /// Bytes of the tape itself, without attributes and values.
  Bytes metadata_bytes() const { return nodes_.metadata_bytes() + values_.metadata_bytes(); }

  // Which values are present --------------------------------------------------------------------

  bool has_value(ValueId value) const { return values_.has(value); }
  /// The value's storage; null when it is not present.
  const Buffer& buffer(ValueId value) const { return values_.buffer(value); }
  void set_buffer(ValueId value, Buffer buffer) {
    in_use_.require(InUse::Level::computes, "Tape::set_buffer");
    if (!outdated_.values.empty()) outdated_.values.erase(value);
    values_.set(value, std::move(buffer));
  }
  /// Releases a value that can be recomputed; has no effect on leaves.
  void drop(ValueId value);
  /// Drops the output and changes its shape to another one of the same rank. The node's operation
  /// must have `has_state_budget`.
  void resize(ValueId value, const Shape& shape);
  /// Counts changes to the set of present values, except leaves. A caller that counts its own
  /// changes can detect those of others.
  std::uint64_t changes() const { return values_.changes(); }
  /// The value. Computed by the evaluator if it is not present.
  Tensor value(ValueId value);
  /// The value, or inside a `RedirectedRecording` the value of its replacement. A value that is out
  /// of date is returned as it was, unless a budget forced it out. Throws as `require_fixed`.
  Tensor look(ValueId value);

  /// Takes values off the tape that are out of date since the library has written into leaves. A
  /// run and an evaluator call it before they ask which values are present.
  void notice_writes() {
    if (outdated_.version != latest_version()) find_outdated();
  }
  /// The values that are out of date, for a run that computes them again or moves them.
  std::map<ValueId, OutdatedValue>& outdated() { return outdated_.values; }
  /// Releases their memory, except that of scalars and the like. For runs that have a budget.
  void force_out_outdated();
  /// Throws `TapeError` if a run for these targets would compute a value that is out of date, and
  /// the evaluator keeps recorded values.
  void require_current(std::span<const ValueId> targets) const;

  const std::shared_ptr<Evaluator>& evaluator() const { return evaluator_; }
  void set_evaluator(std::shared_ptr<Evaluator> evaluator);
  /// For uses by functions of the library.
  InUse& in_use() { return in_use_; }

 private:
  friend class Blame;
  friend class ProgramRecording;
  friend class RedirectedRecording;
  friend class TemporaryNodes;
  friend class Trace;

  /// The line that a node is recorded with.
  const Where& blamed(const Where& where) const {
    return context_.blame != nullptr ? *context_.blame : where;
  }
  Var find_own_leaf(const Tensor& tensor, LeafKind kind);
  Var find_leaf(const Tensor& tensor, LeafKind kind, std::string_view name, const Where& where);
  Var leaf(const Operation& kind, Tensor value, std::string_view name, const Where& where);
  Var append(const Operation& operation, std::span<const Var> inputs,
             std::span<const ValueType> outputs, Attributes attributes, const Where& where);
  void find_outdated();
  [[noreturn]] void throw_outdated(ValueId value, const OutdatedValue& old) const;
  void remove_all();
  void replace_evaluator(std::shared_ptr<Evaluator> evaluator);
  void truncate(NodeId node);
  /// Removes the nodes from `node` on; waits while another thread uses the tape.
  void take_off(NodeId node);
  /// The innermost `RedirectedRecording` for this tape on this thread, or null.
  const RedirectedRecording* redirection();
  /// `here` for a value of another tape.
  Var stand_in_for(const Var& value, std::string_view operation, const Where& where);
  Tape& inner();

  WengertList nodes_;
  PresentValues values_;
  OutdatedValues outdated_;
  std::unique_ptr<LeafIndex> leaves_;
  RecordingContext context_;
  std::vector<Update> updates_;
  std::shared_ptr<Evaluator> evaluator_;
  std::atomic<std::uint32_t> redirections_ = 0;
  InUse in_use_{"tape"};
  HandleEpochs handles_;
};

}  // namespace palimpsest
