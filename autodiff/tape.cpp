#include "autodiff/tape.h"

#include <algorithm>
#include <utility>

#include "autodiff/enumerators.h"
#include "autodiff/execute.h"
#include "autodiff/interpreter.h"
#include "autodiff/leaf_index.h"
#include "autodiff/number_text.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/recording_guards.h"
#include "autodiff/var.h"

namespace palimpsest {
namespace {

/// The innermost `RedirectedRecording` of this thread, or null.
thread_local const RedirectedRecording* innermost = nullptr;
thread_local bool is_in_run = false;  // this thread records a step for a run

}  // namespace

Tape::Tape(std::shared_ptr<Evaluator> evaluator)
    : leaves_(std::make_unique<LeafIndex>()), evaluator_(std::move(evaluator)), handles_(*this) {}

Tape::~Tape() { replace_evaluator(nullptr); }

void Tape::set_evaluator(std::shared_ptr<Evaluator> evaluator) {
  // Functions that need an evaluator may set the first one while derivatives are recorded.
  const bool is_first = evaluator_ == nullptr;
  const InUse::Use use(in_use_, is_first ? tape_use::recording : tape_use::changing,
                       "Tape::set_evaluator");
  replace_evaluator(std::move(evaluator));
}

void Tape::replace_evaluator(std::shared_ptr<Evaluator> evaluator) {
  if (evaluator_ != nullptr) evaluator_->on_clear(*this);
  evaluator_ = std::move(evaluator);
}

Var Tape::parameter(Tensor value, std::string_view name, Where where) {
  return leaf(parameter_operation, std::move(value), name, where);
}

Var Tape::constant(Tensor value, std::string_view name, Where where) {
  return leaf(constant_operation, std::move(value), name, where);
}

Var Tape::leaf(const Operation& kind, Tensor value, std::string_view name, const Where& where) {
  if (Tape& tape = recording(); &tape != this) {
    return tape.leaf(kind, std::move(value), name, where);
  }
  if (!value.defined())
    throw ArgumentError(kind.name, "the tensor is empty; assign a tensor first", where);
  const ValueType type = value.type();
  if (&kind == &parameter_operation && !is_floating(type.dtype)) {
    throw DTypeError(kind.name,
                     "the tensor is " + to_string(type) +
                         ", and only floating dtypes have gradients; convert it with to(), or "
                         "record it with constant()",
                     where);
  }
  const InUse::Use use(in_use_, tape_use::recording, kind.name, &where);
  const Var var = append(kind, {}, {&type, 1}, {}, blamed(where));
  if (!name.empty()) nodes_.set_name(node_count() - 1, name);
  values_.set_leaf(var.id(), value.buffer());
  return var;
}

Var Tape::find_own_leaf(const Tensor& tensor, LeafKind kind) {
  const ValueId leaf = leaves_->find(nodes_, values_, tensor, kind);
  return leaf != none ? var(leaf) : Var();
}

Var Tape::find_leaf(const Tensor& tensor, LeafKind kind, std::string_view name,
                    const Where& where) {
  if (Tape& tape = recording(); &tape != this) {
    return tape.find_leaf(tensor, kind, name, where);
  }
  in_use_.require(InUse::Level::records, "Tape::find_leaf", &where);
  const auto named = [&](const Var& leaf) {
    if (!name.empty() && leaf.tape().name(leaf.node()).empty()) leaf.named(name);
    return leaf;
  };
  if (const Var own = find_own_leaf(tensor, kind); own.defined()) return named(own);
  for (const RedirectedRecording* outward = innermost; outward != nullptr;
       outward = outward->before_) {
    if (&outward->outer_.recording() != this) continue;
    const Var outer = outward->outer_.find_own_leaf(tensor, kind);
    if (outer.defined()) return here(named(outer), "parameter", where);
  }
  return {};
}

Var Tape::find_leaf(const Tensor& tensor, Where where) {
  return find_leaf(tensor, LeafKind::any, {}, where);
}

Var Tape::find_or_record(const Tensor& tensor, bool trainable, std::string_view name, Where where) {
  if (Tape& tape = recording(); &tape != this) {
    return tape.find_or_record(tensor, trainable, name, where);
  }
  in_use_.require(InUse::Level::records, "Tape::find_or_record", &where);
  const LeafKind kind = trainable ? LeafKind::parameter : LeafKind::constant;
  if (const Var leaf = find_leaf(tensor, kind, name, where); leaf.defined()) return leaf;
  const RecordingContext::Scopes scopes = std::exchange(context_.scopes, {});
  try {
    const Var made =
        leaf(trainable ? parameter_operation : constant_operation, tensor, name, where);
    context_.scopes = scopes;
    return made;
  } catch (...) {
    context_.scopes = scopes;
    throw;
  }
}

void Tape::update_after_run(const Tensor& target, const Var& value, double weight, Where where) {
  if (Tape& tape = recording(); &tape != this) {
    return tape.update_after_run(target, value, weight, where);
  }
  if (!target.defined()) {
    throw ArgumentError("update", "the target is an empty tensor; assign a tensor first", where);
  }
  if (!(weight >= 0 && weight <= 1)) {
    throw ArgumentError(
        "update",
        "the weight is " + number_text(weight) + "; give that of the new value, from 0 to 1",
        where);
  }
  const Var own = here(value, "update", where);
  const std::string types = "a tensor of " + to_string(target.type()) + " cannot take a value of " +
                            to_string(own.type());
  if (own.shape() != target.shape()) {
    throw ShapeError("update", types + "; reshape the value", where);
  }
  const bool are_floating = is_floating(own.dtype()) && is_floating(target.dtype());
  if (!are_floating && (own.dtype() != target.dtype() || weight != 1)) {
    throw DTypeError("update", types + "; cast the value, or use floating dtypes", where);
  }
  in_use_.require(InUse::Level::records, "Tape::update_after_run", &where);
  updates_.push_back({target, own.id(), weight});
}

Var Tape::placeholder(const ValueType& type, const Where& where) {
  const InUse::Use use(in_use_, tape_use::recording, "Tape::placeholder", &where);
  return append(constant_operation, {}, {&type, 1}, {}, where);
}

Var Tape::record(const Operation& operation, std::span<const Var> inputs,
                 std::span<const ValueType> outputs, Attributes attributes, const Where& where) {
  if (Tape& tape = recording(); &tape != this) {
    return tape.record(operation, inputs, outputs, std::move(attributes), where);
  }
  const Where& blame = blamed(where);
  const auto is_here = [this](const Var& input) { return input.belongs_to(*this); };
  if (!std::ranges::all_of(inputs, is_here)) {
    std::vector<Var> own;
    for (const Var& input : inputs) own.push_back(here(input, operation.name, blame));
    return record(operation, own, outputs, std::move(attributes), where);
  }
  for (const ValueType& type : outputs) {
    require_enumerator(type.dtype, enumerators<DType>, operation.name, "the dtype", blame);
    if (type.shape.is_possible()) continue;
    throw ShapeError(operation.name,
                     "no memory can hold a result of shape " + to_string(type.shape) +
                         "; a tensor has at most 2⁴⁴ elements",
                     blame);
  }
  const InUse::Use use(in_use_, tape_use::recording, operation.name, &blame);
  const Var first = append(operation, inputs, outputs, std::move(attributes), blame);
  if (evaluator_ != nullptr && !context_.is_temporary) {
    try {
      evaluator_->on_record(*this, first.node());
    } catch (...) {
      truncate(first.node());
      throw;
    }
  }
  return first;
}

Var Tape::stand_in_for(const Var& value, std::string_view operation, const Where& where) {
  Var standing = value;
  while (!standing.belongs_to(*this)) {
    require_value(standing, operation, where);
    const RedirectedRecording* const own = standing.tape().redirection();
    if (own == nullptr) throw_foreign(value, operation, where);
    if (!(standing == value)) own->from_further_ = value;
    standing = own->stand_in_(standing);
  }
  return standing;
}

RecordingInRun::RecordingInRun() : outer_(std::exchange(is_in_run, true)) {}
RecordingInRun::~RecordingInRun() { is_in_run = outer_; }

RedirectedRecording::RedirectedRecording(Tape& outer, Tape& inner, StandIn stand_in,
                                         StandIn original)
    : use_of_inner_(inner.in_use_, tape_use::inner_program, "loop"),
      outer_(outer),
      inner_(inner),
      stand_in_(std::move(stand_in)),
      original_(std::move(original)),
      before_(innermost) {
  // A run may record steps of several loops at once. The first one keeps the tape for all of them.
  const bool is_first = outer_.redirections_++ == 0;
  const auto kept = is_in_run ? InUse::Level::open : InUse::Level::computes;
  if (is_first && !outer.in_use_.is_at_least(kept)) {
    try {
      use_of_outer_.emplace(outer.in_use_, tape_use::inner_program, "loop");
    } catch (...) {
      --outer_.redirections_;
      throw;
    }
  }
  innermost = this;
}

RedirectedRecording::~RedirectedRecording() {
  innermost = before_;
  use_of_outer_.reset();  // before another one can be the first
  --outer_.redirections_;
}

Var RedirectedRecording::original_of(const Var& value) {
  for (const RedirectedRecording* own = innermost; own != nullptr; own = own->before_) {
    if (own->original_ != nullptr && value.belongs_to(own->inner_)) return own->original_(value);
  }
  return {};
}

const RedirectedRecording* Tape::redirection() {
  const RedirectedRecording* own = innermost;
  while (own != nullptr && &own->outer_ != this) own = own->before_;
  return own;
}

Tape& Tape::inner() {
  const RedirectedRecording* const own = redirection();
  return own != nullptr ? own->inner_.recording() : *this;
}

Var Tape::append(const Operation& operation, std::span<const Var> inputs,
                 std::span<const ValueType> outputs, Attributes attributes, const Where& where) {
  const NodeId node = node_count();
  const ValueId first = value_count();
  handles_.prepare_for_removal();
  const RecordingContext::Scopes& scopes = context_.scopes;
  nodes_.append(operation, std::move(attributes), where,
                {scopes.path, scopes.stage, scopes.is_inherited, context_.is_blocked});
  try {
    for (const Var& input : inputs) nodes_.append_input(input.id());
    for (const ValueType& type : outputs) {
      nodes_.append_output(type);
      values_.append();
    }
  } catch (...) {  // out of memory
    nodes_.truncate(node);
    values_.resize(first);
    handles_.note_removed(first);  // the other nodes may have moved
    throw;
  }
  return Var(*this, first);
}

void Tape::truncate(NodeId node) {
  const ValueId first = first_output(node);
  for (ValueId value = first; value < value_count(); ++value) drop(value);
  outdated_.values.erase(outdated_.values.lower_bound(first), outdated_.values.end());
  std::erase_if(updates_, [&](const Update& update) { return update.value >= first; });
  leaves_->truncate(node);
  if (node < node_count()) handles_.note_removed(first);
  nodes_.truncate(node);
  values_.resize(first);
}

void Tape::take_off(NodeId node) {
  const InUse::Use use(in_use_, tape_use::recording);
  if (node < node_count()) truncate(node);
}

void Tape::clear(Where where) {
  const InUse::Use use(in_use_, tape_use::changing, "Tape::clear", &where);
  remove_all();
}

void Tape::remove_all() {
  if (evaluator_ != nullptr) evaluator_->on_clear(*this);
  handles_.note_removed(0);
  nodes_.clear();
  values_.clear();
  outdated_ = {};
  leaves_->clear();
  updates_.clear();
  ++context_.generation;
  context_.reset_streams();
}

void Tape::set_generation(std::uint32_t generation, Where where) {
  const InUse::Use use(in_use_, tape_use::changing, "Tape::set_generation", &where);
  if (node_count() > 0) {
    throw TapeError("set_generation",
                    "the tape has " + std::to_string(node_count()) +
                        " nodes, whose random streams belong to generation " +
                        std::to_string(context_.generation) + "; clear it first",
                    where);
  }
  context_.generation = generation;
  context_.reset_streams();
}

void Tape::copy_nodes(const Tape& other) {
  const InUse::Use use(in_use_, tape_use::changing, "Tape::copy_nodes");
  remove_all();
  nodes_ = other.nodes_;
  values_.resize(value_count());
  context_.generation = other.context_.generation;
  context_.part = other.context_.part;
  *context_.streams() = *other.context_.streams();
}

void Tape::accompany(const Tape& other) {
  in_use_.require(InUse::Level::alone, "Tape::accompany");
  internal_check(node_count() == 0, "a tape with nodes accompanies another tape");
  context_.seed = other.context_.seed;
  context_.generation = other.context_.generation;
}

void Tape::share_streams(const Tape& other) {
  context_.seed = other.context_.seed;
  context_.generation = other.context_.generation;
  context_.shared_streams = other.context_.streams();
}

bool Tape::begins(const Tape& other) const {
  return nodes_.begins(other.nodes_, context_.generation - other.context_.generation);
}

Var Tape::var(ValueId value, const Where& where) {
  if (value < value_count()) return Var(*this, value);
  throw ArgumentError("tape",
                      "there is no value " + std::to_string(value) + "; the tape has " +
                          std::to_string(value_count()) + " values, numbered from 0",
                      where);
}

void Tape::drop(ValueId value) {
  in_use_.require(InUse::Level::computes, "Tape::drop");
  if (has_value(value) && !is_leaf(producer(value))) values_.drop(value);
}

void Tape::resize(ValueId value, const Shape& shape) {
  in_use_.require(InUse::Level::computes, "Tape::resize");
  nodes_.resize(value, shape);
  drop(value);
}

Tensor Tape::look(ValueId value) {
  if (Tape& recorded = recording(); &recorded != this) {
    return recorded.stand_in_for(var(value), "value", where(producer(value))).value();
  }
  require_fixed(value, "value",
                "return it from the recorded function and ask the Runner for it, use shape() for "
                "sizes, and where() or while_loop() for decisions",
                where(producer(value)));
  const auto old = outdated_.values.find(value);
  if (old != outdated_.values.end() && old->second.buffer != nullptr) {
    return {old->second.buffer, shape(value), dtype(value)};
  }
  return this->value(value);
}

void Tape::require_fixed(ValueId value, std::string_view operation, std::string_view instead,
                         const Where& where) const {
  if (!context_.is_program) return;
  std::vector<bool> is_needed(value_count());
  is_needed[value] = true;
  for (NodeId node = producer(value) + 1; node-- > 0;) {
    const auto first = is_needed.begin() + first_output(node);
    if (std::find(first, first + output_count(node), true) == first + output_count(node)) continue;
    const Attributes& own = attributes(node);
    if (is_leaf(node) || !own.are_in_round(1, own)) {
      throw TapeError(operation,
                      "a Program is being recorded, and the result depends on " + describe(node) +
                          ", which differs from run to run; " + std::string(instead),
                      where);
    }
    for (const ValueId input : inputs(node)) is_needed[input] = true;
  }
}

Tensor Tape::value(ValueId value) {
  if (!has_value(value)) {
    const InUse::Use use(in_use_, tape_use::computing, "Tape::value");
    if (evaluator_ != nullptr) {
      evaluator_->compute(*this, {&value, 1});
    } else {
      interpret(*this, value);
    }
  }
  return Tensor(values_.buffer(value), shape(value), dtype(value));
}

}  // namespace palimpsest
