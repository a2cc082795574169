#include "autodiff/trace.h"

#include <unordered_map>
#include <utility>

#include "autodiff/operations/leaf.h"
#include "autodiff/recording_guards.h"

namespace palimpsest {
namespace {

thread_local const ExtractedNodes* innermost_extraction = nullptr;

}  // namespace

ExtractedNodes::ExtractedNodes(Tape& tape)
    : tape_(tape), nodes_(tape), before_(innermost_extraction) {
  innermost_extraction = this;
}

ExtractedNodes::~ExtractedNodes() { innermost_extraction = before_; }

bool ExtractedNodes::are_on(const Tape& tape) {
  for (const ExtractedNodes* each = innermost_extraction; each != nullptr; each = each->before_) {
    if (&each->tape_ == &tape) return true;
  }
  return false;
}

/// Copies nodes from one tape to another, including scope, name, line and whether derivatives are
/// blocked.
class Trace::Copier {
 public:
  Copier(const Tape& from, Tape& to) : from_(from), to_(to), is_blocked_(to.context_.is_blocked) {}
  ~Copier() { to_.context_.is_blocked = is_blocked_; }
  Copier(const Copier&) = delete;
  Copier& operator=(const Copier&) = delete;

  void map(ValueId from, const Var& to) { mapped_[from] = to; }
  const Var& operator[](ValueId value) const { return mapped_.at(value); }
  bool knows(ValueId value) const { return mapped_.count(value) > 0; }

  void copy(NodeId node) {
    const Blame blame(to_, from_.where(node));
    const Tape::Scope scope(to_, from_, node);
    to_.context_.is_blocked = is_blocked_ || from_.is_blocked(node);
    const ValueId first = from_.first_output(node);
    if (from_.is_leaf(node)) {
      const ValueType type = from_.type(first);
      map(first,
          to_.constant(Tensor(from_.buffer(first), type.shape, type.dtype), {}, from_.where(node)));
    } else {
      std::vector<Var> inputs;
      for (const ValueId input : from_.inputs(node)) inputs.push_back((*this)[input]);
      std::vector<ValueType> types;
      const std::uint32_t outputs = from_.output_count(node);
      for (ValueId i = 0; i < outputs; ++i) types.push_back(from_.type(first + i));
      const Var made = to_.record(from_.operation(node), inputs, types, from_.attributes(node),
                                  from_.where(node));
      for (ValueId i = 0; i < outputs; ++i) map(first + i, made.output(i));
    }
    to_.context_.is_blocked = is_blocked_;
    if (!from_.name(node).empty()) to_.set_name((*this)[first].node(), from_.name(node));
  }

 private:
  const Tape& from_;
  Tape& to_;
  bool is_blocked_;
  std::unordered_map<ValueId, Var> mapped_;
};

namespace {

/// True if `node` converts floating numbers to a dtype that holds all of them.
bool is_widening(const Tape& tape, NodeId node) {
  if (&tape.operation(node) != &cast_operation) return false;
  const DType from = tape.dtype(tape.inputs(node)[0]);
  const DType to = tape.dtype(tape.first_output(node));
  return is_floating(from) && is_floating(to) && size_of(from) < size_of(to);
}

/// Marks the nodes from `first` on that `values` depend on.
std::vector<bool> needed_nodes(const Tape& tape, NodeId first, std::span<const Var> values) {
  std::vector<bool> needed(tape.node_count() - first);
  for (const Var& value : values) {
    if (value.node() >= first) needed[value.node() - first] = true;
  }
  for (NodeId node = tape.node_count(); node-- > first;) {
    if (!needed[node - first]) continue;
    for (const ValueId input : tape.inputs(node)) {
      const NodeId producer = tape.producer(input);
      if (producer >= first) needed[producer - first] = true;
    }
  }
  return needed;
}

}  // namespace

Trace::Trace(const Composition& f, std::span<const Var> inputs, Where where,
             std::string_view operation) {
  Tape& tape = common_tape(inputs, operation, where);
  const InUse::Use use(tape.in_use(), tape_use::inner_program, operation, &where);
  const ExtractedNodes region(tape);
  const ValueId first_value = tape.value_count();
  std::vector<Var> standins;
  for (const Var& input : inputs) standins.push_back(identity(input, where));
  const NodeId first_node = tape.node_count();

  std::vector<Var> results = f(standins);
  if (results.empty()) {
    throw ArgumentError(operation, "the function returned no value; return at least one", where);
  }
  for (const Var& result : results) {
    if (!result.defined()) {
      throw ArgumentError(operation,
                          "the function returned a Var without a value; return values of the tape",
                          where);
    }
  }
  for (Var& result : results) result = tape.here(result, operation, where);

  const auto program = std::make_shared<Tape>();
  Copier copier(tape, *program);
  const auto argument = [&](const Var& value) {
    copier.map(value.id(), program->placeholder(value.type(), where));
    ++arguments_;
  };
  const auto capture = [&](ValueId value) {
    if (value >= first_value || copier.knows(value)) return;
    captured_.push_back(tape.var(value));
    argument(captured_.back());
  };
  for (const Var& standin : standins) argument(standin);
  const std::vector<bool> needed = needed_nodes(tape, first_node, results);
  for (NodeId node = first_node; node < tape.node_count(); ++node) {
    if (!needed[node - first_node]) continue;
    if (tape.is_parameter(node)) {
      throw ArgumentError(
          operation,
          "the function records parameter " + tape.describe(node) +
              ", whose gradient would be lost; record it before the function, for an nn layer with "
              "parameters.record(tape), and capture it",
          tape.where(node));
    }
    for (const ValueId input : tape.inputs(node)) capture(input);
  }
  for (const Var& result : results) capture(result.id());
  for (NodeId node = first_node; node < tape.node_count(); ++node) {
    if (needed[node - first_node]) copier.copy(node);
  }
  InnerProgram inner{program, {}};
  for (const Var& result : results) inner.values.push_back(copier[result.id()].id());
  const InnerRewrite rewrite = inner_of(tape.evaluator());
  if (rewrite != nullptr) inner = rewrite(std::move(inner));
  program_ = std::move(inner.tape);
  outputs_ = std::move(inner.values);
}

std::vector<Var> Trace::replay(std::span<const Var> arguments, Where where) const {
  if (arguments.size() != arguments_) {
    throw ArgumentError("replay",
                        std::to_string(arguments.size()) + " arguments for a trace that takes " +
                            std::to_string(arguments_) +
                            "; give its inputs and its captured values",
                        where);
  }
  std::vector<ValueId> places;
  for (ValueId i = 0; i < arguments_; ++i) {
    places.push_back(i);
    if (arguments[i].type() != program_->type(i)) {
      throw ShapeError("replay",
                       "argument " + std::to_string(i) + " is " + to_string(arguments[i].type()) +
                           "; the trace was recorded with " + to_string(program_->type(i)) +
                           ", so give that type or trace again",
                       where);
    }
  }
  return copy(*program_, common_tape(arguments, "replay", where), places, arguments, outputs_);
}

Trace Trace::narrowed(std::span<const DType> arguments) const {
  struct Both {
    std::shared_ptr<const Tape> recorded;  // loops in the program refer to it
    Tape made;
  };
  const auto both = std::make_shared<Both>();
  both->recorded = program_;
  const Tape& from = *program_;
  Copier copier(from, both->made);
  std::vector<Var> leaves;
  for (ValueId i = 0; i < arguments_; ++i) {
    const ValueType type{from.shape(i), arguments[i]};
    leaves.push_back(both->made.placeholder(type, from.where(from.producer(i))));
    if (type.dtype == from.dtype(i)) copier.map(i, leaves.back());
  }
  std::vector<ValueId> outputs = outputs_;
  std::vector<Var> needed_for;
  for (ValueId& output : outputs) {
    const NodeId node = from.producer(output);
    const bool is_free = output >= arguments_ && !from.is_blocked(node);
    if (is_free && is_widening(from, node)) output = from.inputs(node)[0];
    needed_for.push_back(const_cast<Tape&>(from).var(output));
  }
  const std::vector<bool> needed = needed_nodes(from, 0, needed_for);
  const auto widen = [&](ValueId value) {
    if (copier.knows(value)) return;
    copier.map(value, cast(leaves[value], from.dtype(value), from.where(from.producer(value))));
  };
  for (NodeId node = 0; node < from.node_count(); ++node) {
    const ValueId first = from.first_output(node);
    if (!needed[node] || first < arguments_) continue;
    const auto inputs = from.inputs(node);
    // A blocked cast stops derivatives, so it stays.
    const bool narrows = &from.operation(node) == &cast_operation && !from.is_blocked(node) &&
                         inputs[0] < arguments_ && from.dtype(first) == arguments[inputs[0]];
    if (narrows) {
      copier.map(first, leaves[inputs[0]]);
      continue;
    }
    for (const ValueId input : inputs) {
      if (input < arguments_) widen(input);
    }
    copier.copy(node);
  }
  Trace made;
  made.captured_ = captured_;
  made.arguments_ = arguments_;
  for (const ValueId output : outputs) {
    if (output < arguments_) {
      made.outputs_.push_back(leaves[output].id());
    } else {
      made.outputs_.push_back(copier[output].id());
    }
  }
  made.program_ = {both, &both->made};
  return made;
}

std::vector<Var> Trace::copy(const Tape& program, Tape& to, std::span<const ValueId> arguments,
                             std::span<const Var> values, std::span<const ValueId> outputs) {
  Copier copier(program, to);
  for (std::size_t i = 0; i < values.size(); ++i) copier.map(arguments[i], values[i]);
  for (NodeId node = 0; node < program.node_count(); ++node) {
    if (!copier.knows(program.first_output(node))) copier.copy(node);
  }
  std::vector<Var> results;
  for (const ValueId output : outputs) results.push_back(copier[output]);
  return results;
}

}  // namespace palimpsest
