#include "strategy/execution/precision/translation.h"

#include <algorithm>

#include "autodiff/operations/leaf.h"
#include "autodiff/trace.h"

namespace palimpsest {

Translation::Translation(const Precision& precision, std::shared_ptr<Evaluator> evaluator)
    : wide_(precision.wide()),
      narrow_(precision.narrow()),
      tape_(std::make_shared<Tape>(std::move(evaluator))) {}

void Translation::follow(const Tape& from) {
  if (is_following_)
    return;  // a function of the user that records a node narrower asks for a value
  struct Following {
    explicit Following(bool& is) : is(is) { is = true; }
    ~Following() { is = false; }
    bool& is;
  } const following(is_following_);
  tape_->share_streams(from);
  for (auto node = static_cast<NodeId>(nodes_.size()); node < from.node_count(); ++node) {
    record(from, node);
  }
}

void Translation::follow_names(const Tape& from) {
  for (NodeId node = 0; node < nodes_.size(); ++node) {
    if (from.name(node) != tape_->name(nodes_[node]))
      tape_->set_name(nodes_[node], from.name(node));
  }
}

Var Translation::operator[](ValueId value) { return in_dtype(value, values_[value].dtype); }

Var Translation::in_dtype(ValueId value, DType dtype) {
  return cast(value, dtype, tape_->where(tape_->producer(values_[value].value)));
}

void Translation::clear() {
  tape_->clear();
  nodes_.clear();
  values_.clear();
}

void Translation::record(const Tape& from, NodeId node) {
  const Tape::Scope scope(*tape_, from, node);
  const Tape::WithGradient unless_blocked(*tape_);
  const CustomDefinition* const custom = CustomOperation::definition(NodeView(from.nodes(), node));
  if (custom != nullptr && custom->narrow != nullptr) return record_narrow(*custom, from, node);
  const Var first = from.is_leaf(node) ? leaf(from, node) : operation(from, node);
  nodes_.push_back(first.node());
  for (std::uint32_t i = 0; i < from.output_count(node); ++i) {
    const ValueId made = first.id() + i;
    values_.push_back({made, tape_->dtype(made)});
  }
}

void Translation::require_narrow(std::span<const Var> outputs, const Tape& from,
                                 NodeId node) const {
  const auto fail = [&](const std::string& problem) {
    throw ArgumentError(from.operation(node).name,
                        "CustomDefinition::narrow returns " + problem +
                            "; return the operation's outputs, recorded on the tape of the inputs",
                        from.where(node));
  };
  if (outputs.size() != from.output_count(node)) {
    fail(std::to_string(outputs.size()) + " values for an operation with " +
         std::to_string(from.output_count(node)) + " outputs");
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::string name = "output " + std::to_string(i);
    if (!outputs[i].belongs_to(*tape_)) fail(name + " undefined or on another tape");
    const ValueType recorded = from.type(from.first_output(node) + static_cast<ValueId>(i));
    const ValueType made = outputs[i].type();
    const bool is_narrower = is_floating(recorded.dtype) && is_floating(made.dtype) &&
                             size_of(made.dtype) <= size_of(recorded.dtype);
    if (made.shape == recorded.shape && (made.dtype == recorded.dtype || is_narrower)) continue;
    fail(name + " as " + to_string(made) + ", but it was recorded as " + to_string(recorded));
  }
}

void Translation::record_narrow(const CustomDefinition& definition, const Tape& from, NodeId node) {
  const Where where = from.where(node);
  std::vector<Var> inputs;
  for (const ValueId input : from.inputs(node)) {
    const Var computed = tape_->var(values_[input].value);
    const bool is_narrower =
        is_floating(computed.dtype()) && size_of(computed.dtype()) < size_of(from.dtype(input));
    inputs.push_back(is_narrower ? computed : cast(input, from.dtype(input), where));
  }
  std::optional<Tape::NoGradient> blocked;
  if (from.is_blocked(node)) blocked.emplace(*tape_);
  const std::vector<Var> outputs = definition.narrow(inputs, where);
  require_narrow(outputs, from, node);
  if (!from.name(node).empty()) tape_->set_name(outputs[0].node(), from.name(node));
  nodes_.push_back(outputs[0].node());
  for (std::uint32_t i = 0; i < from.output_count(node); ++i) {
    values_.push_back({outputs[i].id(), from.dtype(from.first_output(node) + i)});
  }
}

Var Translation::leaf(const Tape& from, NodeId node) {
  const ValueId value = from.first_output(node);
  if (from.buffer(value) == nullptr) return tape_->placeholder(from.type(value), from.where(node));
  const Tensor tensor(from.buffer(value), from.shape(value), from.dtype(value));
  return from.is_parameter(node) ? tape_->parameter(tensor, from.name(node), from.where(node))
                                 : tape_->constant(tensor, from.name(node), from.where(node));
}

bool Translation::is_narrow(ValueId value) const { return values_[value].dtype == narrow_; }

/// The floating dtype of the operation's first output.
DType Translation::dtype_made(const Tape& from, NodeId node) const {
  const auto inputs = from.inputs(node);
  const auto narrow = [&](ValueId input) { return is_narrow(input); };
  switch (from.operation(node).mixed) {
    case MixedPrecision::wide:
    case MixedPrecision::reads:
    case MixedPrecision::recorded:
      return wide_;
    case MixedPrecision::narrow:
      return narrow_;
    case MixedPrecision::first:
      return is_narrow(inputs[0]) ? narrow_ : wide_;
    case MixedPrecision::follows: {
      const auto other = [&](ValueId input) {
        return is_floating(from.dtype(input)) && !is_narrow(input);
      };
      const bool one = from.shape(from.first_output(node)).elements() == 1;
      const bool none_is = std::ranges::none_of(inputs, narrow);
      return none_is || (one && std::ranges::any_of(inputs, other)) ? wide_ : narrow_;
    }
  }
  throw InternalError("unknown place in mixed precision");
}

/// The dtype in which the operation reads input `i`, when its first output has dtype `made`.
DType Translation::dtype_read(const Tape& from, NodeId node, std::size_t i, DType made) const {
  const ValueId input = from.inputs(node)[i];
  const DType recorded = from.dtype(input);
  const MixedPrecision mixed = from.operation(node).mixed;
  if (&from.operation(node) == &cast_operation) return values_[input].dtype;
  if (!is_floating(recorded) || mixed == MixedPrecision::recorded) return recorded;
  if (mixed == MixedPrecision::reads) return is_narrow(input) ? narrow_ : wide_;
  return mixed == MixedPrecision::first && i > 0 ? wide_ : made;
}

Var Translation::operation(const Tape& from, NodeId node) {
  const Operation& operation = from.operation(node);
  const DType made = dtype_made(from, node);
  std::vector<Var> inputs;
  for (std::size_t i = 0; i < from.inputs(node).size(); ++i) {
    const DType read = dtype_read(from, node, i, made);
    inputs.push_back(cast(from.inputs(node)[i], read, from.where(node)));
  }
  std::vector<ValueType> types;
  for (ValueId i = 0; i < from.output_count(node); ++i) {
    types.push_back(from.type(from.first_output(node) + i));
    DType& dtype = types.back().dtype;
    // A cast from an integer dtype takes the computed precision.
    const bool number =
        &operation == &cast_operation && !is_floating(from.dtype(from.inputs(node)[0]));
    const bool as_recorded = operation.mixed == MixedPrecision::recorded && !number;
    if (!is_floating(dtype) || as_recorded) continue;
    const bool beside = operation.mixed == MixedPrecision::first && i > 0;
    dtype = beside ? compute_dtype(wide_) : made;
  }
  std::optional<Tape::NoGradient> blocked;
  if (from.is_blocked(node)) blocked.emplace(*tape_);
  const Var first =
      tape_->record(operation, inputs, types, from.attributes(node), from.where(node));
  if (!from.name(node).empty()) tape_->set_name(first.node(), from.name(node));
  return first;
}

Var Translation::cast(ValueId value, DType dtype, const Where& where) {
  const Var computed = tape_->var(values_[value].value);
  if (computed.dtype() == dtype) return computed;
  ValueId& form = values_[value].in[static_cast<std::size_t>(dtype)];
  if (form == none) {
    const Tape::WithGradient unless_blocked(*tape_);
    form = palimpsest::cast(computed, dtype, where).id();
  }
  return tape_->var(form);
}

Translation::Temporary::Temporary(Translation& translation)
    : translation_(translation),
      nodes_(translation.nodes_.size()),
      values_(translation.values_.size()),
      end_(translation.tape_->value_count()) {
  temporary_.emplace(*translation.tape_);
}

Translation::Temporary::~Temporary() {
  translation_.nodes_.resize(nodes_);
  translation_.values_.resize(values_);
  for (Forms& forms : translation_.values_) {
    for (ValueId& form : forms.in) {
      if (form != none && form >= end_) form = none;
    }
  }
}

InnerProgram in_precision(const Precision& precision, const Tape& program,
                          std::span<const ValueId> values) {
  Translation translation(precision, nullptr);
  translation.follow(program);
  translation.follow_names(program);
  InnerProgram made{translation.shared_tape(), {}};
  for (const ValueId value : values) {
    made.values.push_back(translation.in_dtype(value, program.dtype(value)).id());
  }
  return made;
}

InnerRewrite rewrite_in(const Precision& precision) {
  return [precision](const InnerProgram& recorded) {
    struct Both {
      std::shared_ptr<Tape> recorded;
      std::shared_ptr<Tape> made;
    };
    InnerProgram made = in_precision(precision, *recorded.tape, recorded.values);
    const auto both = std::make_shared<Both>(Both{recorded.tape, made.tape});
    made.tape = {both, both->made.get()};
    return made;
  };
}

std::vector<Var> record_again(const Precision& precision, Tape& tape, std::span<const Var> values) {
  std::vector<ValueId> ids;
  std::vector<Var> leaves;
  for (NodeId node = 0; node < tape.node_count(); ++node) {
    if (!tape.is_leaf(node)) continue;
    ids.push_back(tape.first_output(node));
    leaves.push_back(tape.var(ids.back()));
  }
  for (const Var& value : values) ids.push_back(value.id());
  const InnerProgram made = in_precision(precision, tape, ids);
  const std::span<const ValueId> all = made.values;
  return Trace::copy(*made.tape, tape, all.first(leaves.size()), leaves,
                     all.subspan(leaves.size()));
}

}  // namespace palimpsest
