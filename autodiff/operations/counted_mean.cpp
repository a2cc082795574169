#include "autodiff/operations/counted_mean.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "autodiff/operations/binary.h"
#include "autodiff/operations/elementwise.h"
#include "autodiff/operations/leaf.h"

namespace palimpsest {
namespace {

/// The attributes of an identity that marks its input as a divisor. Other identities have none.
struct CountAttributes {
  CountMark mark;

  bool operator==(const CountAttributes&) const = default;
};

/// Records the nodes that `value` depends on again. Returns the copy of `value`, or an empty handle
/// where one of them is a leaf without a value, as in the body of a loop.
Var copy_to(Tape& to, const Var& value) {
  const Tape& from = value.tape();
  const std::vector<bool> behind = nodes_behind({&value, 1});
  for (NodeId node = 0; node < from.node_count(); ++node) {
    if (behind[node] && from.is_leaf(node) && !from.has_value(from.first_output(node))) return {};
  }
  std::map<ValueId, Var> copies;
  const auto map = [&](ValueId original, const Var& copy) { copies.insert({original, copy}); };
  for (NodeId node = 0; node < from.node_count(); ++node) {
    if (!behind[node]) continue;
    const ValueId first = from.first_output(node);
    if (from.is_leaf(node)) {
      const ValueType type = from.type(first);
      map(first, to.constant({from.buffer(first), type.shape, type.dtype}, {}, from.where(node)));
      continue;
    }
    std::vector<Var> inputs;
    for (const ValueId input : from.inputs(node)) inputs.push_back(copies.at(input));
    std::vector<ValueType> types;
    for (ValueId i = 0; i < from.output_count(node); ++i) types.push_back(from.type(first + i));
    const Var made =
        to.record(from.operation(node), inputs, types, from.attributes(node), from.where(node));
    for (ValueId i = 0; i < from.output_count(node); ++i) map(first + i, made.output(i));
  }
  return copies.at(value.id());
}

void set(const Tensor& divisor, double number) {
  visit(divisor.dtype(),
        [&]<class T>(T) { divisor.data<T>().front() = convert_element<T>(number); });
}

thread_local CountedMeans::Recording* innermost = nullptr;

}  // namespace

std::optional<CountMark> count_mark(const Tape& tape, NodeId node) {
  if (&tape.operation(node) != &identity_operation || tape.attributes(node).empty()) return {};
  return tape.attributes(node).as<CountAttributes>().mark;
}

Var marked(const Var& divisor, CountMark mark, const Where& where) {
  const ValueType type = divisor.type();
  return divisor.tape().record(identity_operation, {&divisor, 1}, {&type, 1}, CountAttributes{mark},
                               where);
}

Var divide_by_count(const Var& total, const Var& count, const Where& where) {
  const CountedMeans::Recording* const part = CountedMeans::Recording::of(count.tape());
  const Var divisor = part != nullptr
                          ? marked(part->divisor_of(count, where), CountMark::share, where)
                          : marked(count, CountMark::own, where);
  return divide(total, divisor, where);
}

std::vector<bool> nodes_behind(std::span<const Var> values) {
  const Tape& tape = values.front().tape();
  std::vector<bool> behind(tape.node_count());
  for (const Var& value : values) behind[value.node()] = true;
  for (NodeId node = tape.node_count(); node-- > 0;) {
    if (!behind[node]) continue;
    for (const ValueId input : tape.inputs(node)) behind[tape.producer(input)] = true;
  }
  return behind;
}

CountedMeans::Recording::Recording(Tape& tape, CountedMeans& means)
    : tape_(tape), means_(means), before_(innermost) {
  innermost = this;
}

CountedMeans::Recording::~Recording() { innermost = before_; }

CountedMeans::Recording* CountedMeans::Recording::of(Tape& tape) {
  // A model may record programs of its own on other tapes.
  Recording* each = innermost;
  while (each != nullptr && &each->tape_ != &tape && &each->tape_.recording() != &tape) {
    each = each->before_;
  }
  return each;
}

void CountedMeans::begin(std::optional<std::vector<double>> divisors) {
  means_.clear();
  known_ = std::move(divisors);
  tape_.reset();
}

Var CountedMeans::divisor_of(const Var& count, const Where& where) {
  const std::size_t index = means_.size();
  const bool is_known = known_ && index < known_->size();
  const Tensor divisor =
      Tensor::full(count.shape(), is_known ? (*known_)[index] : -1, count.dtype());
  Var copy;
  if (!known_) {
    if (tape_ == nullptr) tape_ = std::make_shared<Tape>();
    copy = copy_to(*tape_, count);
  }
  const Var given = count.tape().constant(divisor, {}, where);
  means_.push_back({copy, divisor, given, where});
  return palimpsest::where(greater_equal(given, 0, where), given, count, where);
}

void CountedMeans::note_needs(const Var& loss, std::span<const Var> values) {
  if (means_.empty()) return;
  const std::vector<bool> behind_loss = nodes_behind({&loss, 1});
  std::vector<Var> all(values.begin(), values.end());
  all.push_back(loss);
  const std::vector<bool> behind_all = nodes_behind(all);
  for (Mean& mean : means_) {
    if (!mean.given.belongs_to(loss.tape())) continue;  // of a body
    mean.is_in_loss = behind_loss[mean.given.node()];
    mean.is_needed = behind_all[mean.given.node()];
  }
}

std::vector<Var> CountedMeans::counts() const {
  std::vector<Var> counts;
  for (const Mean& mean : means_) {
    if (!mean.count.defined()) {
      throw ArgumentError(
          "execution",
          "a mean over counted targets in the body of a loop cannot be computed for parts of a "
          "batch, since its count is not known before the loop runs; sum the losses and the "
          "targets in the loop, and return weighted_mean(sum, count) after it",
          mean.where);
    }
    counts.push_back(mean.count);
  }
  return counts;
}

void CountedMeans::divide_by(std::span<const double> divisors) const {
  for (std::size_t i = 0; i < means_.size(); ++i) set(means_[i].divisor, divisors[i]);
}

void CountedMeans::forget_counts() {
  for (Mean& mean : means_) mean.count = {};
  tape_.reset();
}

}  // namespace palimpsest
