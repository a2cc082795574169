#include "autodiff/tape.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "autodiff/execute.h"
#include "autodiff/interpreter.h"
#include "autodiff/number_text.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/recording_guards.h"
#include "autodiff/var.h"

namespace palimpsest {
namespace {

/// The innermost `RedirectedRecording` of this thread, or null.
thread_local const RedirectedRecording* innermost = nullptr;

}  // namespace

Tape::Tape(std::shared_ptr<Evaluator> evaluator) : evaluator_(std::move(evaluator)) {
  intern("");
  identity_ = &TapeIdentity::take(*this);
  first_epoch_ = identity_->epoch();
}

Tape::~Tape() {
  set_evaluator(nullptr);
  identity_->give_back();
}

void Tape::set_evaluator(std::shared_ptr<Evaluator> evaluator) {
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
  const Recording alone(*this, where);
  const Var var = append(kind, {}, {&type, 1}, {}, blame_ != nullptr ? *blame_ : where);
  if (!name.empty()) nodes_.back().name = intern(name);
  buffers_.back() = value.buffer();
  return var;
}

Var Tape::find_own_leaf(const Tensor& tensor, LeafKind kind) {
  const std::lock_guard lock(leaves_mutex_);
  for (; indexed_ < node_count(); ++indexed_) {
    if (!is_leaf(indexed_)) continue;
    const ValueId value = first_output(indexed_);
    const std::byte* const address = buffers_[value].get();
    if (address == nullptr) continue;
    // Leaves of several types may share an address. The first one of each type and kind is known.
    auto [known, end] = leaves_.equal_range(address);
    const auto is_replaced = [&](const auto& entry) {
      const ValueId other = entry.second;
      return other >= value_count() || buffers_[other].get() != address ||
             !is_leaf(producer(other));
    };
    const auto is_known = [&](const auto& entry) {
      const ValueId other = entry.second;
      return !is_replaced(entry) && type(other) == type(value) &&
             is_parameter(producer(other)) == is_parameter(indexed_);
    };
    if (std::any_of(known, end, is_known)) continue;
    known = std::find_if(known, end, is_replaced);
    if (known == end) {
      leaves_.emplace(address, value);
    } else {
      known->second = value;
    }
  }
  auto [known, end] = leaves_.equal_range(tensor.raw());
  Var constant;
  for (; known != end; ++known) {
    const ValueId value = known->second;
    const bool is_current = value < value_count() && buffers_[value] == tensor.buffer() &&
                            is_leaf(producer(value)) && type(value) == tensor.type();
    if (!is_current) continue;
    if (!is_parameter(producer(value))) {
      constant = var(value);
    } else if (kind != LeafKind::constant) {
      return var(value);
    }
  }
  return kind != LeafKind::parameter ? constant : Var();
}

Var Tape::find_leaf(const Tensor& tensor, LeafKind kind, std::string_view name,
                    const Where& where) {
  if (Tape& tape = recording(); &tape != this) {
    return tape.find_leaf(tensor, kind, name, where);
  }
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
  const LeafKind kind = trainable ? LeafKind::parameter : LeafKind::constant;
  if (const Var leaf = find_leaf(tensor, kind, name, where); leaf.defined()) return leaf;
  const Scopes scopes = std::exchange(scopes_, {});
  try {
    const Var made =
        leaf(trainable ? parameter_operation : constant_operation, tensor, name, where);
    scopes_ = scopes;
    return made;
  } catch (...) {
    scopes_ = scopes;
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
  updates_.push_back({target, own.id(), weight});
}

Var Tape::placeholder(const ValueType& type, const Where& where) {
  const Recording alone(*this, where);
  return append(constant_operation, {}, {&type, 1}, {}, where);
}

Var Tape::record(const Operation& operation, std::span<const Var> inputs,
                 std::span<const ValueType> outputs, Attributes attributes, const Where& where) {
  if (Tape& tape = recording(); &tape != this) {
    return tape.record(operation, inputs, outputs, std::move(attributes), where);
  }
  const Where& blame = blame_ != nullptr ? *blame_ : where;
  const auto is_here = [this](const Var& input) { return input.belongs_to(*this); };
  if (!std::ranges::all_of(inputs, is_here)) {
    std::vector<Var> own;
    for (const Var& input : inputs) own.push_back(here(input, operation.name, blame));
    return record(operation, own, outputs, std::move(attributes), where);
  }
  for (const ValueType& type : outputs) {
    if (type.shape.is_possible()) continue;
    throw ShapeError(operation.name,
                     "no memory can hold a result of shape " + to_string(type.shape) +
                         "; a tensor has at most 2⁴⁴ elements",
                     blame);
  }
  const Var first = [&] {
    const Recording alone(*this, blame);
    return append(operation, inputs, outputs, std::move(attributes), blame);
  }();
  if (evaluator_ != nullptr && !suspended_) {
    try {
      evaluator_->on_record(*this, first.node());
    } catch (...) {
      take_off(first.node());
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
    standing = own->stand_in_(standing);
  }
  return standing;
}

RedirectedRecording::RedirectedRecording(Tape& outer, Tape& inner, StandIn stand_in,
                                         StandIn original)
    : outer_(outer),
      inner_(inner),
      stand_in_(std::move(stand_in)),
      original_(std::move(original)),
      before_(innermost) {
  innermost = this;
  ++outer_.redirections_;
}

RedirectedRecording::~RedirectedRecording() {
  innermost = before_;
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
  // Reserved now, because `note_taken_off` must not allocate.
  if (taken_off_.size() == taken_off_.capacity()) taken_off_.reserve(2 * taken_off_.size() + 1);
  nodes_.push_back({&operation, std::move(attributes), where,
                    static_cast<std::uint32_t>(inputs_.size()), first, 0, scopes_.path,
                    scopes_.stage, blocked_, scopes_.is_inherited});
  try {
    for (const Var& input : inputs) inputs_.push_back(input.id());
    for (const ValueType& type : outputs) {
      // Most values have the shape of the previous one; they share its sizes unless those may
      // change.
      const bool alone = values_.empty() ||
                         nodes_[values_.back().node].operation->has_state_budget ||
                         operation.has_state_budget;
      if (alone || !std::ranges::equal(type.shape, sizes_of(values_.back()))) {
        sizes_.insert(sizes_.end(), type.shape.begin(), type.shape.end());
      }
      const auto rank = static_cast<std::uint8_t>(type.shape.rank());
      values_.push_back({node, static_cast<std::uint32_t>(sizes_.size() - rank), rank, type.dtype});
      buffers_.emplace_back();
    }
  } catch (...) {  // out of memory
    values_.resize(first);
    truncate(node);
    throw;
  }
  return Var(*this, first);
}

void Tape::truncate(NodeId node) {
  const ValueId first_value = nodes_[node].first_output;
  for (ValueId value = first_value; value < value_count(); ++value) drop(value);
  std::erase_if(updates_, [&](const Update& update) { return update.value >= first_value; });
  indexed_ = std::min(indexed_, node);
  inputs_.resize(nodes_[node].first_input);
  if (first_value < value_count()) note_taken_off(first_value);
  values_.resize(first_value);
  sizes_.resize(values_.empty() ? 0 : values_.back().first_size + values_.back().rank);
  buffers_.resize(first_value);
  nodes_.erase(nodes_.begin() + node, nodes_.end());
}

void Tape::take_off(NodeId node) {
  while (is_recording_.test_and_set(std::memory_order_acquire)) std::this_thread::yield();
  if (node < node_count()) truncate(node);
  is_recording_.clear(std::memory_order_release);
}

/// Invalidates existing handles of values from `first` on. `append` has reserved memory for the
/// entry.
void Tape::note_taken_off(ValueId first) {
  while (!taken_off_.empty() && taken_off_.back().first >= first) taken_off_.pop_back();
  taken_off_.push_back({identity_->epoch(), first});
  identity_->move_on();
}

bool Tape::has_kept(ValueId value, std::uint32_t epoch) const {
  if (epoch < first_epoch_) return false;  // the handle is of an earlier tape with this identity
  // Later entries remove fewer values, so the first one since `epoch` removes the most.
  const auto since = std::ranges::lower_bound(taken_off_, epoch, {}, &TakenOff::epoch);
  return since == taken_off_.end() || value < since->first;
}

void Tape::throw_recorded_twice(const Where& where) {
  throw TapeError("tape",
                  "two threads record on one tape at the same time; give each thread its own tape",
                  where);
}

void Tape::clear(Where where) {
  const Recording alone(*this, where);
  if (evaluator_ != nullptr) evaluator_->on_clear(*this);
  note_taken_off(0);
  nodes_.clear();
  inputs_.clear();
  values_.clear();
  sizes_.clear();
  buffers_.clear();
  leaves_.clear();
  indexed_ = 0;
  updates_.clear();
  ++generation_;
  ++changes_;
  streams_ = 0;
}

void Tape::set_generation(std::uint32_t generation, Where where) {
  const Recording alone(*this, where);
  if (!nodes_.empty()) {
    throw TapeError("set_generation",
                    "the tape has " + std::to_string(nodes_.size()) +
                        " nodes, whose random streams belong to generation " +
                        std::to_string(generation_) + "; clear it first",
                    where);
  }
  generation_ = generation;
  streams_ = 0;
}

void Tape::copy_nodes(const Tape& other) {
  clear();
  nodes_ = other.nodes_;
  inputs_ = other.inputs_;
  values_ = other.values_;
  sizes_ = other.sizes_;
  buffers_.resize(values_.size());
  names_ = other.names_;
  name_hashes_ = other.name_hashes_;
  name_ids_ = other.name_ids_;
  generation_ = other.generation_;
  part_ = other.part_;
}

void Tape::accompany(const Tape& other) {
  internal_check(nodes_.empty(), "a tape with nodes accompanies another tape");
  seed_ = other.seed_;
  generation_ = other.generation_;
}

bool Tape::Node::comes_again(const Node& later, std::uint32_t round) const {
  return operation == later.operation && first_input == later.first_input &&
         first_output == later.first_output && name == later.name && scope == later.scope &&
         stage == later.stage && blocked == later.blocked &&
         inherits_scope == later.inherits_scope && same_line(where, later.where) &&
         attributes.are_in_round(round, later.attributes);
}

bool Tape::begins(const Tape& other) const {
  const auto begin = [](const auto& part, const auto& whole) {
    return part.size() <= whole.size() && std::equal(part.begin(), part.end(), whole.begin());
  };
  if (node_count() > other.node_count() || !begin(inputs_, other.inputs_) ||
      !begin(sizes_, other.sizes_) || !begin(values_, other.values_)) {
    return false;
  }
  const std::uint32_t round = generation_ - other.generation_;
  for (NodeId node = 0; node < node_count(); ++node) {
    if (!other.nodes_[node].comes_again(nodes_[node], round)) return false;
  }
  if (!nodes_.empty()) {  // the next node determines where its inputs and outputs end
    const NodeId last = node_count() - 1;
    if (inputs(last).size() != other.inputs(last).size()) return false;
    if (output_count(last) != other.output_count(last)) return false;
  }
  return begin(names_, other.names_) || begin(other.names_, names_);
}

std::uint32_t Tape::intern(std::string_view name) {
  if (const auto known = name_ids_.find(name); known != name_ids_.end()) return known->second;
  const auto id = static_cast<std::uint32_t>(names_.size());
  const auto added = name_ids_.emplace(name, id).first;
  try {
    name_hashes_.push_back(NameHash()(name));
    names_.emplace_back(name);
  } catch (...) {  // out of memory
    name_hashes_.resize(id);
    name_ids_.erase(added);
    throw;
  }
  return id;
}

bool Tape::is_parameter(NodeId node) const {
  return nodes_[node].operation == &parameter_operation;
}

std::string Tape::describe(NodeId node) const {
  std::string text(scope_of(node));
  if (!text.empty()) text += '/';
  if (!name(node).empty()) text.append(name(node)).append(" ");
  return text.append(operation(node).name).append(" #").append(std::to_string(node));
}

void Tape::set_name(NodeId node, std::string_view name) { nodes_[node].name = intern(name); }

bool Tape::have_one_shape(ValueId a, ValueId b) const {
  const std::span<const std::int64_t> sizes = sizes_of(values_[a]);
  const std::span<const std::int64_t> others = sizes_of(values_[b]);
  return (sizes.data() == others.data() && sizes.size() == others.size()) ||
         std::ranges::equal(sizes, others);
}

Var Tape::var(ValueId value, const Where& where) {
  if (value < value_count()) return Var(*this, value);
  throw ArgumentError("tape",
                      "there is no value " + std::to_string(value) + "; the tape has " +
                          std::to_string(value_count()) + " values, numbered from 0",
                      where);
}

Bytes Tape::metadata_bytes() const {
  const std::size_t bytes = nodes_.size() * sizeof(Node) + inputs_.size() * sizeof(ValueId) +
                            values_.size() * (sizeof(Value) + sizeof(Buffer)) +
                            sizes_.size() * sizeof(std::int64_t);
  return static_cast<Bytes>(bytes);
}

void Tape::drop(ValueId value) {
  if (!has_value(value) || is_leaf(producer(value))) return;
  buffers_[value].reset();
  ++changes_;
}

void Tape::resize(ValueId value, const Shape& shape) {
  internal_check(operation(producer(value)).has_state_budget && values_[value].rank == shape.rank(),
                 "a value without a state budget is resized");
  drop(value);
  std::ranges::copy(shape, sizes_.begin() + values_[value].first_size);
}

Tensor Tape::look(ValueId value) {
  const RedirectedRecording* const own = redirection();
  return own != nullptr ? own->stand_in_(var(value)).value() : this->value(value);
}

Tensor Tape::value(ValueId value) {
  if (!has_value(value)) {
    if (const std::shared_ptr<Evaluator> kept = evaluator_) {  // it may be replaced meanwhile
      kept->compute(*this, value);
    } else {
      interpret(*this, value);
    }
  }
  return Tensor(buffers_[value], shape(value), dtype(value));
}

}  // namespace palimpsest
