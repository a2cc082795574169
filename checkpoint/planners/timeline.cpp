#include "checkpoint/planners/timeline.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "checkpoint/layout.h"

namespace palimpsest {

Timeline::Timeline(const Graph& graph)
    : graph_(graph),
      outputs_(graph.node_count()),
      places_(graph.value_count()),
      bytes_(graph.value_count()),
      last_life_(graph.value_count(), none),
      holders_(graph.value_count()),
      gap_of_(graph.value_count(), none) {
  first_input_.push_back(0);
  std::vector<NodeId> reader(graph.value_count(), none);  // the last reader so far
  for (NodeId node = 0; node < graph.node_count(); ++node) {
    for (const ValueId input : graph.inputs(node)) {
      if (reader[input] != node && !graph.is_source_value(input)) inputs_.push_back(input);
      reader[input] = node;
    }
    first_input_.push_back(static_cast<std::uint32_t>(inputs_.size()));
    const ValueId first = graph.first_output(node);
    outputs_[node] = {first, first + graph.output_count(node), laid_out(graph.workspace(node))};
  }
  first_value_.assign(graph.value_count() + 1, 0);
  for (ValueId value = 0; value < graph.value_count(); ++value) {
    places_[value] = {graph.storage(value), graph.possible_donor(value)};
    bytes_[value] = laid_out(graph.bytes(value));
    ++first_value_[graph.storage(value) + 1];
  }
  for (ValueId root = 0; root < graph.value_count(); ++root) {
    first_value_[root + 1] += first_value_[root];
  }
  values_.resize(graph.value_count());
  std::vector<std::uint32_t> next = first_value_;
  for (ValueId value = 0; value < graph.value_count(); ++value) {
    values_[next[graph.storage(value)]++] = value;
  }
  for (ValueId value = 0; value < graph.value_count(); ++value) {
    if (graph.is_present(value)) begin_life(value, -1);
  }
}

void Timeline::read(std::span<const NodeId> order) {
  const auto same =
      static_cast<Position>(std::ranges::mismatch(order_, order).in1 - order_.begin());
  forget_from(same);
  first_changed_ = same;
  order_.assign(order.begin(), order.end());
  for (Position position = same; position < std::ssize(order); ++position) {
    const NodeId node = order[index(position)];
    for (const ValueId input : inputs(node)) read_value(input, position);
    const Outputs& outputs = outputs_[node];
    for (ValueId value = outputs.first; value < outputs.end; ++value) begin_life(value, position);
  }
  for (const ValueId target : graph_.targets()) {
    if (!graph_.is_source_value(target)) {
      read_value(target, static_cast<Position>(order.size()));
    }
  }
  for (const std::uint32_t life : cut_) {
    lives_[life].is_cut = false;
    first_changed_ = std::min(first_changed_, lives_[life].end);
  }
  measure(std::max<Position>(first_changed_, 0));
}

void Timeline::begin_life(ValueId value, Position position) {
  const auto life = static_cast<std::uint32_t>(lives_.size());
  lives_.push_back(
      {value, position, position, none, std::exchange(last_life_[value], life), false});
}

void Timeline::read_value(ValueId value, Position position) {
  internal_check(last_life_[value] != none, "a value is read before it is made");
  Life& life = lives_[last_life_[value]];
  const auto read = static_cast<std::uint32_t>(reads_.size());
  reads_.push_back({position, last_life_[value], std::exchange(life.last_read, read)});
  // Heights change where it was not live before.
  if (!life.is_cut) first_changed_ = std::min(first_changed_, life.end);
  life.end = position;
}

/// Removes reads and lives from `position` on.
void Timeline::forget_from(Position position) {
  cut_.clear();
  while (!reads_.empty() && reads_.back().position >= position) {
    const Read& read = reads_.back();
    Life& life = lives_[read.life];
    life.last_read = read.earlier;
    life.end = read.earlier == none ? life.begin : reads_[read.earlier].position;
    if (life.begin < position && !life.is_cut) {
      life.is_cut = true;
      cut_.push_back(read.life);
    }
    reads_.pop_back();
  }
  while (!lives_.empty() && lives_.back().begin >= position) {
    last_life_[lives_.back().value] = lives_.back().earlier;
    lives_.pop_back();
  }
}

/// Finds the heights from a position on.
void Timeline::measure(Position first) {
  std::fill(holders_.begin(), holders_.end(), 0);
  heights_.resize(order_.size());
  highest_until_.resize(order_.size());
  Position highest = first > 0 ? highest_until_[index(first - 1)] : 0;
  Bytes most = first > 0 ? heights_[index(highest)] : -1;
  Bytes bytes = 0;
  const auto begin = [&](ValueId value) {
    const ValueId root = places_[value].root;
    if (holders_[root]++ == 0) bytes += bytes_[root];
  };
  // Values that are live before the first position. Present values without readers are dropped
  // before step 0.
  std::size_t next_life = 0;
  for (; next_life < lives_.size() && lives_[next_life].begin < first; ++next_life) {
    if (lives_[next_life].end >= first) begin(lives_[next_life].value);
  }
  auto next_read = static_cast<std::size_t>(
      std::ranges::lower_bound(reads_, first, {}, &Read::position) - reads_.begin());
  for (Position position = first; position < std::ssize(order_); ++position) {
    const NodeId node = order_[index(position)];
    const Outputs& outputs = outputs_[node];
    candidates_.clear();
    for (ValueId output = outputs.first; output < outputs.end; ++output) {
      const ValueId taken = places_[output].possible_donor;
      if (taken != none && holders_[output] == 0) candidates_.push_back(taken);
      begin(output);
    }
    Bytes height = bytes + outputs.workspace;
    const auto end_here = [&](const Life& life) {
      if (life.end != position) return;
      const ValueId root = places_[life.value].root;
      if (--holders_[root] > 0) return;
      bytes -= bytes_[root];
      if (std::ranges::find(candidates_, root) != candidates_.end()) height -= bytes_[root];
    };
    // A life ends at a read, or where its value is made if it has no readers.
    const std::size_t reads_end = next_read + inputs(node).size();
    for (; next_read < reads_end; ++next_read) end_here(lives_[reads_[next_read].life]);
    const std::size_t lives_end = next_life + (outputs.end - outputs.first);
    for (; next_life < lives_end; ++next_life) end_here(lives_[next_life]);
    heights_[index(position)] = height;
    if (height > most) {
      most = height;
      highest = position;
    }
    highest_until_[index(position)] = highest;
  }
}

Bytes Timeline::least_peak() const {
  Bytes bytes = 0;
  std::vector<std::uint32_t> counted(graph_.value_count());  // by root, the round that counted it
  std::uint32_t round = 1;
  const auto take = [&](ValueId value) {
    const ValueId root = places_[value].root;
    if (std::exchange(counted[root], round) != round) bytes += bytes_[root];
  };
  for (const ValueId target : graph_.targets()) {
    if (!graph_.is_source_value(target)) take(target);
  }
  Bytes least = bytes;
  for (const NodeId node : graph_.needed_nodes()) {
    const Outputs& outputs = outputs_[node];
    bytes = outputs.workspace;
    ++round;
    // An output and the storage it may take over share their bytes.
    for (ValueId output = outputs.first; output < outputs.end; ++output) {
      const ValueId taken = places_[output].possible_donor;
      if (taken != none) counted[taken] = round;
    }
    for (const ValueId input : inputs(node)) take(input);
    for (ValueId output = outputs.first; output < outputs.end; ++output) take(output);
    least = std::max(least, bytes);
  }
  return least;
}

bool Timeline::is_live(ValueId value, Position position) const {
  std::uint32_t life = last_life_[value];
  while (life != none && lives_[life].begin >= position) life = lives_[life].earlier;
  return life != none && lives_[life].end >= position;
}

std::span<const Timeline::Gap> Timeline::gaps(Position position) {
  constexpr Position busy = -2;
  gaps_.clear();
  for (const Life& life : lives_) {
    if (life.begin > position || life.end < position) continue;
    const ValueId root = places_[life.value].root;
    if (gap_of_[root] == none) {
      gap_of_[root] = static_cast<std::uint32_t>(gaps_.size());
      gaps_.push_back({root, -1, std::numeric_limits<Position>::max()});
    }
    Gap& gap = gaps_[gap_of_[root]];
    if (gap.after == busy) continue;
    Position before = std::numeric_limits<Position>::max();
    std::uint32_t read = life.last_read;
    for (; read != none && reads_[read].position > position; read = reads_[read].earlier) {
      before = reads_[read].position;
    }
    const Position after = read == none ? life.begin : reads_[read].position;
    if (after == position) {
      gap.after = busy;
      continue;
    }
    gap.after = std::max(gap.after, after);
    gap.before = std::min(gap.before, before);
  }
  for (const Gap& gap : gaps_) gap_of_[gap.root] = none;
  std::erase_if(gaps_, [&](const Gap& gap) { return gap.after == busy || bytes_[gap.root] == 0; });
  return gaps_;
}

void Timeline::live_values(ValueId root, Position position, std::vector<ValueId>& values) const {
  values.clear();
  for (std::uint32_t i = first_value_[root]; i < first_value_[root + 1]; ++i) {
    // Live between two steps: made before this one and read after it.
    if (is_live(values_[i], position)) values.push_back(values_[i]);
  }
}

}  // namespace palimpsest
