#include "strategy/compile/fusion/access_maps.h"

#include <algorithm>
#include <utility>

#include "autodiff/operations/shape.h"

namespace palimpsest {
namespace {

bool takes_pointwise(const Tape& tape, NodeId node) {
  const Operation& operation = tape.operation(node);
  if (operation.pointwise == nullptr) return false;
  const NodeView view(tape.nodes(), node);
  return view.output().shape.elements() > 0 && operation.pointwise(view).run != nullptr;
}

bool takes_pieces(const Tape& tape, NodeId node) {
  const Operation& operation = tape.operation(node);
  if (operation.fold == nullptr) return false;
  const NodeView view(tape.nodes(), node);
  return view.input(0).shape.elements() > 0 && operation.fold(view).add != nullptr;
}

/// The access map of consecutive elements, beginning with element `from`.
Gather row(std::int64_t elements, std::int64_t from = 0) {
  return Gather(Shape{elements}, Access{{1}, from});
}

}  // namespace

AccessMaps::AccessMaps(const Tape& tape, std::vector<bool> needed, const std::vector<bool>& wanted,
                       std::vector<bool> present, bool stores_slices)
    : tape_(tape),
      stores_slices_(stores_slices),
      needed_(std::move(needed)),
      present_(std::move(present)),
      pointwise_(tape.node_count()),
      fold_(tape.node_count()),
      accumulation_(tape.node_count(), none),
      epilogue_(tape.node_count(), none),
      moved_of_(tape.node_count(), none),
      read_whole_(wanted),
      reads_(tape.value_count(), 0) {
  for (NodeId node = 0; node < tape.node_count(); ++node) {
    if (!needed_[node]) continue;
    // Several nodes may read what a view or another movement makes, or may look through it.
    const Operation& operation = tape.operation(node);
    const bool moves =
        operation.view || operation.access != nullptr || operation.stretches != nullptr;
    const std::uint8_t reads = moves ? 2 : 1;
    for (const ValueId input : tape.inputs(node)) {
      reads_[input] = static_cast<std::uint8_t>(std::min(reads_[input] + reads, 2));
    }
  }
  for (NodeId node = tape.node_count(); node-- > 0;) {
    if (!needed_[node]) continue;
    const ValueId output = tape.first_output(node);
    pointwise_[node] = !present_[output] && takes_pointwise(tape, node);
    fold_[node] = !present_[output] && takes_pieces(tape, node);
    if (pointwise_[node]) continue;
    if (only_moves(node) && !read_whole_[output]) {
      looks_through_slices_ = looks_through_slices_ || is_slice(node);
      continue;
    }
    for (const ValueId input : tape.inputs(node)) read_whole_[input] = true;
  }
  accumulate();
  finish();
  if (!stores_slices_) find_moved();
  first_link_.reserve(tape.node_count() + 1);
  for (NodeId node = 0; node < tape.node_count(); ++node) {
    first_link_.push_back(static_cast<std::uint32_t>(links_.size()));
    if (needed_[node]) link(node);
  }
  first_link_.push_back(static_cast<std::uint32_t>(links_.size()));
}

FoldShape AccessMaps::fold_shape(NodeId node) const {
  if (!fold_[node]) return {};
  const FoldKernel kernel = tape_.operation(node).fold(NodeView(tape_.nodes(), node));
  return {kernel.elements, kernel.columns, kernel.segment};
}

void AccessMaps::accumulate() {
  accumulations_ = find_accumulations(tape_, {needed_, pointwise_, present_, read_whole_});
  for (std::uint32_t i = 0; i < accumulations_.size(); ++i) {
    const auto& [sum, product, addend] = accumulations_[i];
    accumulation_[sum] = i;
    pointwise_[sum] = false;
    for (ValueId value : tape_.inputs(sum)) {
      if (value == addend) continue;
      while (tape_.producer(value) != product) {
        needed_[tape_.producer(value)] = false;
        value = tape_.inputs(tape_.producer(value))[0];
      }
    }
    needed_[product] = false;
    read_from_memory(addend);
  }
}

void AccessMaps::finish() {
  epilogues_ = find_epilogues(tape_, {needed_, pointwise_, present_, read_whole_});
  for (std::uint32_t i = 0; i < epilogues_.size(); ++i) {
    const auto& [node, maker, made] = epilogues_[i];
    epilogue_[node] = i;
    pointwise_[node] = false;
    needed_[maker] = false;
    for (std::uint32_t k = 0; k < tape_.inputs(node).size(); ++k) {
      if (k != made) read_from_memory(tape_.inputs(node)[k]);
    }
  }
}

void AccessMaps::read_from_memory(ValueId value) {
  const ValueId base = behind_views(value);
  for (; value != base; value = tape_.inputs(tape_.producer(value))[0]) read_whole_[value] = true;
  read_whole_[base] = true;
}

void AccessMaps::link(NodeId node) {
  if (const GemmAccumulation* made = accumulation(node)) {
    for (const ValueId input : tape_.inputs(made->product)) links_.push_back({input, false});
    links_.push_back({made->addend, false});
    return;
  }
  if (const Epilogue* finished = epilogue(node)) {
    for (const ValueId input : tape_.inputs(finished->maker)) links_.push_back({input, false});
    for (std::size_t i = 0; i < tape_.inputs(node).size(); ++i) {
      if (i != finished->made) links_.push_back({tape_.inputs(node)[i], false});
    }
    return;
  }
  for (std::size_t i = 0; i < tape_.inputs(node).size(); ++i) {
    if (fold_[node]) {
      links_.push_back({tape_.inputs(node)[i], true});
      continue;
    }
    if (!pointwise_[node]) {
      links_.push_back({tape_.inputs(node)[i], false});
      continue;
    }
    if (const MovedProducers* made = moved_producers(tape_.inputs(node)[i])) {
      for (const ValueId read : made->read) links_.push_back({read, false});
      continue;
    }
    const AccessMap reading = of(node, i);
    for (const ReadPart& part : reading.parts) {
      if (part.value == none || is_number(part.value)) continue;
      links_.push_back({part.value, reading.in_order});
    }
  }
}

bool AccessMaps::is_number(ValueId value) const {
  if (value == none) return false;
  const NodeId node = tape_.producer(value);
  return pointwise_[node] && tape_.inputs(node).empty();
}

/// True for a movement of some of its input's elements.
bool AccessMaps::is_slice(NodeId node) const {
  const auto inputs = tape_.inputs(node);
  return inputs.size() == 1 && !tape_.operation(node).view &&
         tape_.bytes(tape_.first_output(node)) < tape_.bytes(inputs[0]);
}

bool AccessMaps::only_moves(NodeId node) const {
  const Operation& operation = tape_.operation(node);
  const ValueId output = tape_.first_output(node);
  if (present_[output] || (stores_slices_ && is_slice(node))) return false;
  const NodeView view(tape_.nodes(), node);
  if (operation.access != nullptr) {
    // Long rows cost little more than contiguous memory, however often they are read. Moving short
    // ones takes as long in the only reader as before it.
    constexpr std::int64_t long_row = 16;
    const bool is_read_once = reads_[output] == 1;
    return Gather(view.output().shape, operation.access(view))
        .has_rows(is_read_once ? 1 : long_row);
  }
  return operation.view || (operation.stretches != nullptr && !operation.stretches(view).empty());
}

/// Whether readers should look through the node and read its input directly.
bool AccessMaps::is_transparent(ValueId value) const {
  const NodeId node = tape_.producer(value);
  if (present_[value] || !needed_[node] || tape_.operation(node).view || !only_moves(node)) {
    return false;
  }
  if (!read_whole_[value]) return true;
  const auto inputs = tape_.inputs(node);
  return inputs.size() == 1 && tape_.shape(inputs[0]).elements() < tape_.shape(value).elements() &&
         tape_.operation(node).access != nullptr;
}

ValueId AccessMaps::behind_views(ValueId value) const {
  return palimpsest::behind_views(tape_, present_, value);
}

/// A range of a value's elements, consecutive from element `first` on. If the range is the whole
/// value and the value only moves elements, they are read from its input directly.
ReadPart AccessMaps::part(std::int64_t begin, std::int64_t end, ValueId value,
                          std::int64_t first) const {
  value = behind_views(value);
  const NodeId node = tape_.producer(value);
  const Operation& operation = tape_.operation(node);
  const bool whole = end - begin == tape_.shape(value).elements();
  if (!whole || operation.access == nullptr || !is_transparent(value)) {
    return {begin, end, value, row(end - begin, first)};
  }
  const Gather from(tape_.shape(value), operation.access(NodeView(tape_.nodes(), node)));
  return {begin, end, behind_views(tape_.inputs(node)[0]), from};
}

AccessMap AccessMaps::of(NodeId node, std::size_t i) const {
  const Shape shape = tape_.shape(tape_.first_output(node));
  const std::int64_t elements = shape.elements();
  const ValueId value = tape_.inputs(node)[i];
  const Shape own = tape_.shape(value);
  if (own.elements() != elements) {
    return {{{0, elements, behind_views(value), Gather(shape, broadcast_access(own, shape))}},
            false};
  }
  const ValueId base = behind_views(value);
  if (!is_transparent(base)) return {{{0, elements, base, row(elements)}}, true};
  const NodeId mover = tape_.producer(base);
  const Operation& operation = tape_.operation(mover);
  if (operation.access != nullptr) return {{part(0, elements, base)}, false};
  AccessMap reading{{}, false};
  const std::vector<Stretch> stretches = operation.stretches(NodeView(tape_.nodes(), mover));
  if (stretches.back().end < elements) reading.period = stretches.back().end;
  for (const Stretch& stretch : stretches) {
    if (stretch.begin == stretch.end) continue;
    if (stretch.input >= 0) {
      const ValueId input = tape_.inputs(mover)[static_cast<std::size_t>(stretch.input)];
      reading.parts.push_back(part(stretch.begin, stretch.end, input, stretch.from));
    } else {
      reading.parts.push_back(
          {stretch.begin, stretch.end, none, row(stretch.end - stretch.begin), stretch.number});
    }
  }
  return reading;
}

}  // namespace palimpsest
