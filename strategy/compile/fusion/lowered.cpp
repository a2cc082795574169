#include "strategy/compile/fusion/lowered.h"

#include <algorithm>
#include <ranges>
#include <string>

#include "checkpoint/node_seconds.h"
#include "strategy/compile/fusion/column_reductions.h"
#include "strategy/compile/fusion/group_kernel.h"
#include "strategy/compile/fusion/group_splitting.h"
#include "strategy/compile/fusion/producer_duplication.h"
#include "strategy/compile/fusion/sibling_fusion.h"

namespace palimpsest {

class Lowered::Builder {
 public:
  Builder(Lowered& lowered, const Tape& tape, std::span<const ValueId> targets, int threads,
          NodeId boundary, std::span<const NodeId> supplied, bool afresh, const Machine& machine)
      : lowered_(lowered),
        tape_(tape),
        threads_(threads),
        machine_(machine),
        boundary_(boundary),
        supplied_(supplied),
        afresh_(afresh),
        needs_(tape, targets, supplied, afresh),
        wanted_(needs_.wanted),
        present_(needs_.present),
        sources_(needs_.sources),
        place_(tape.value_count(), none) {}

  void build(std::span<const ValueId> targets) {
    if (fuse(targets, false)) return;
    clear();
    fuse(targets, true);
  }

  /// The number of a value in the graph.
  ValueId place(ValueId value) const { return place_[value]; }

 private:
  /// Makes the graph. Returns false if it would take less memory with other access maps.
  bool fuse(std::span<const ValueId> targets, bool stores_slices) {
    const AccessMaps access_maps(tape_, needs_.needed, wanted_, present_, stores_slices);
    Units units = Groups(tape_, access_maps, boundary_).in_order();
    duplicate_producers(tape_, access_maps, boundary_, held(), units);
    fuse_siblings(tape_, access_maps, boundary_, kept(), units);
    join_column_reductions(tape_, access_maps, boundary_, units);
    emit(units, access_maps, targets);
    return split_groups(units, access_maps, targets);
  }

  /// Makes the graph of the units.
  void emit(const Units& units, const AccessMaps& access_maps, std::span<const ValueId> targets) {
    const std::vector<bool> runs = find_read(units, access_maps);
    bool backward = false;
    for (std::size_t i = 0; i < units.size(); ++i) {
      if (!runs[i]) continue;
      const NodeId first = units[i].own[0];
      if (!backward && units[i].own.back() >= boundary_) {
        backward = true;
        lowered_.graph_.set_backward_begins(lowered_.graph_.node_count());
      }
      position_.push_back(i);
      if (access_maps.may_be_in_group(first)) {
        add_group(units[i], i, access_maps);
      } else if (const GemmAccumulation* made = access_maps.accumulation(first)) {
        add_accumulation(*made);
      } else if (const Epilogue* epilogue = access_maps.epilogue(first)) {
        add_epilogue(*epilogue);
      } else {
        add_single(first);
      }
    }
    for (ValueId value = 0; value < tape_.value_count(); ++value) {
      if (present_[value] && place_[value] != none) lowered_.graph_.set_present(place_[value]);
    }
    for (const ValueId target : targets) lowered_.graph_.add_target(placed(target));
    if (threads_ > 1) lowered_.graph_.set_parallel();
    if (!backward) lowered_.graph_.set_backward_begins(lowered_.graph_.node_count());
  }

  void clear() {
    lowered_.graph_ = Graph();
    lowered_.units_.clear();
    lowered_.recorded_.clear();
    lowered_.programs_.clear();
    lowered_.epilogues_.clear();
    place_.assign(place_.size(), none);
    position_.clear();
  }

  /// Splits groups until a run takes no more memory than without fusion, apart from scratch.
  /// Returns false if that is not enough.
  bool split_groups(Units& units, const AccessMaps& access_maps, std::span<const ValueId> targets) {
    // These rounds split some groups. Two more split all: into nodes with their reductions, and
    // then into single nodes. The latter is last, because a single reduction reads a stored value.
    constexpr int most_rounds = 32;
    const std::vector<bool> kept = this->kept();
    GroupSplitting splitting(tape_, access_maps, boundary_, kept, present_, units);
    if (!access_maps.looks_through_slices() && !splitting.may_split()) return true;
    const Bytes unfused = std::ranges::max(
        held_by(graph_of(tape_, targets, threads_, boundary_, machine_, supplied_, afresh_)));
    for (int round = 0; round <= most_rounds + 2; ++round) {
      const std::vector<Bytes> held = held_by(lowered_.graph_);
      const auto peak = static_cast<std::size_t>(std::ranges::max_element(held) - held.begin());
      const Bytes allowed = unfused + scratch();
      std::vector<std::size_t> over;
      for (std::size_t node = 0; node < held.size(); ++node) {
        if (held[node] > allowed) over.push_back(position_[node]);
      }
      if (over.empty()) return true;
      if (round > most_rounds + 1) break;
      if (round >= most_rounds || !splitting.lower(position_[peak], over)) {
        splitting.split_all(round > most_rounds);
        round = std::max(round, most_rounds);
      }
      clear();
      emit(units, access_maps, targets);
    }
    return false;
  }

  /// By node: the bytes that a run holds while the node runs, if it recomputes nothing.
  static std::vector<Bytes> held_by(const Graph& graph) {
    const Schedule schedule = drop_after_last_use(graph, graph.needed_nodes());
    const Simulation simulation = simulate(graph, schedule);
    std::vector<Bytes> held(graph.node_count());
    for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
      const auto [kind, id] = schedule.steps[i];
      if (kind == Step::Kind::compute) held[id] = simulation.timeline[i];
    }
    return held;
  }

  /// The most scratch of a group.
  Bytes scratch() const {
    Bytes scratch = 0;
    for (NodeId node = 0; node < lowered_.graph_.node_count(); ++node) {
      if (lowered_.program(node) != nullptr) {
        scratch = std::max(scratch, lowered_.graph_.workspace(node));
      }
    }
    return scratch;
  }

  /// Values that are in memory whether or not they are read.
  std::vector<bool> held() const {
    std::vector<bool> held = kept();
    for (ValueId value = 0; value < tape_.value_count(); ++value) {
      if (present_[value]) held[value] = true;
    }
    return held;
  }

  /// Values that are in memory from when they are made until the end.
  std::vector<bool> kept() const {
    std::vector<bool> kept = wanted_;
    for (ValueId value = 0; value < tape_.value_count(); ++value) {
      if (sources_[tape_.producer(value)]) kept[value] = true;
    }
    return kept;
  }

  /// Marks in `read_` the values that units read. Returns which units have to run.
  std::vector<bool> find_read(const Units& units, const AccessMaps& access_maps) {
    read_ = wanted_;
    last_reader_.assign(tape_.value_count(), 0);
    for (ValueId value = 0; value < tape_.value_count(); ++value) {
      if (wanted_[value]) last_reader_[value] = units.size();
    }
    std::vector<bool> runs(units.size());
    for (std::size_t i = units.size(); i-- > 0;) {
      const Unit& unit = units[i];
      runs[i] =
          std::any_of(unit.own.begin(), unit.own.end(), [&](NodeId node) { return is_read(node); });
      if (!runs[i] || sources_[unit.own[0]]) continue;
      for (const NodeId node : unit.nodes()) {
        const bool view = tape_.operation(node).view;
        const std::size_t last = view ? std::max(i, last_reader_[tape_.first_output(node)]) : i;
        for (const auto& [value, in_order] : access_maps.links(node)) {
          if (in_order && unit.makes(tape_.producer(value))) continue;
          read_[value] = true;
          last_reader_[value] = std::max(last_reader_[value], last);
        }
      }
    }
    return runs;
  }

  /// The number in the graph of a value that a unit reads. An earlier unit must have made it.
  ValueId placed(ValueId value) const {
    if (place_[value] == none) {
      throw InternalError("no unit makes value " + std::to_string(value) + ", an output of '" +
                          std::string(tape_.operation(tape_.producer(value)).name) +
                          "', before it is read");
    }
    return place_[value];
  }

  bool is_read(NodeId node) const {
    for (ValueId i = 0; i < tape_.output_count(node); ++i) {
      const ValueId output = tape_.first_output(node) + i;
      if (read_[output] || present_[output]) return true;
    }
    return false;
  }

  void add_single(NodeId node) {
    std::vector<ValueId> inputs;
    if (!sources_[node]) {
      for (const ValueId input : tape_.inputs(node)) inputs.push_back(placed(input));
    }
    append_node(lowered_.graph_, tape_, node, inputs, threads_, machine_, sources_[node]);
    lowered_.units_.push_back({node});
    for (ValueId i = 0; i < tape_.output_count(node); ++i) add_value(tape_.first_output(node) + i);
  }

  void add_accumulation(const GemmAccumulation& made) {
    const NodeView product(tape_.nodes(), made.product);
    const NodeView sum(tape_.nodes(), made.sum);
    std::vector<ValueId> inputs;
    for (const ValueId input : tape_.inputs(made.product)) inputs.push_back(placed(input));
    inputs.push_back(placed(made.addend));
    const Cost multiplied = cost_of(product);
    const auto added = static_cast<double>(sum.output().shape.elements());
    Graph::Traits traits;
    const Cost cost{multiplied.flops + added,
                    multiplied.bytes + static_cast<double>(sum.output().bytes())};
    traits.cost = seconds_of(product, cost, machine_);
    traits.workspace = workspace_of(product, threads_);
    const NodeId members[] = {made.product, made.sum};
    traits.name = name_of_group(members);
    traits.tape_nodes = members;
    const auto in_place = tape_.operation(made.product).accumulates_in_place;
    Graph::Output output{sum.output().bytes()};
    if (in_place != nullptr && in_place(product)) {
      output.takes_over = static_cast<int>(inputs.size()) - 1;
    }
    lowered_.graph_.add_node(inputs, {&output, 1}, std::move(traits));
    lowered_.units_.push_back({made.product, none, true, none, cost});
    add_value(tape_.first_output(made.sum));
  }

  void add_epilogue(const Epilogue& epilogue) {
    const NodeView maker(tape_.nodes(), epilogue.maker);
    const NodeView node(tape_.nodes(), epilogue.node);
    std::vector<ValueId> inputs;
    for (const ValueId input : tape_.inputs(epilogue.maker)) inputs.push_back(placed(input));
    Cost cost = cost_of(maker);
    cost.flops += cost_of(node).flops;
    for (std::uint32_t i = 0; i < node.input_count(); ++i) {
      if (i == epilogue.made) continue;
      inputs.push_back(placed(tape_.inputs(epilogue.node)[i]));
      cost.bytes += static_cast<double>(node.input(i).bytes());
    }
    Graph::Traits traits;
    traits.cost = seconds_of(maker, cost, machine_);
    traits.workspace = workspace_of(maker, threads_);
    const NodeId members[] = {epilogue.maker, epilogue.node};
    traits.name = name_of_group(members);
    traits.tape_nodes = members;
    const Graph::Output output{node.output().bytes()};
    lowered_.graph_.add_node(inputs, {&output, 1}, std::move(traits));
    lowered_.units_.push_back({epilogue.maker, none, false,
                               static_cast<std::uint32_t>(lowered_.epilogues_.size()), cost});
    lowered_.epilogues_.push_back(epilogue);
    add_value(tape_.first_output(epilogue.node));
  }

  void add_value(ValueId recorded) {
    place_[recorded] = static_cast<ValueId>(lowered_.recorded_.size());
    lowered_.recorded_.push_back(recorded);
  }

  /// Buffer donation. For each output of a group: the index of the input whose memory it may reuse,
  /// or −1. Preferably an input that is not read later in recorded order. Later outputs may reuse
  /// all inputs that earlier ones may, so a greedy choice is enough.
  std::vector<int> overwritten(const GroupKernel& group, std::size_t unit) const {
    std::vector<int> chosen;
    const auto is_possible = [&](std::uint32_t output, std::size_t input) {
      const ValueId from = group.inputs[input];
      return tape_.type(from).dtype == tape_.type(group.outputs[output]).dtype &&
             graph_bytes(from) == tape_.bytes(group.outputs[output]) &&
             std::ranges::find(chosen, static_cast<int>(input)) == chosen.end() &&
             group.program.may_write_over(output, static_cast<std::uint32_t>(input));
    };
    for (std::uint32_t output = 0; output < group.outputs.size(); ++output) {
      int best = -1;
      for (std::size_t input = 0; input < group.inputs.size(); ++input) {
        const bool dies = last_reader_[group.inputs[input]] == unit;
        if ((best >= 0 && !dies) || !is_possible(output, input)) continue;
        best = static_cast<int>(input);
        if (dies) break;
      }
      chosen.push_back(best);
    }
    return chosen;
  }

  /// Bytes of the storage of a value; 0 for a source.
  Bytes graph_bytes(ValueId recorded) const {
    return lowered_.graph_.bytes(lowered_.graph_.storage(place_[recorded]));
  }

  void add_group(const Unit& unit, std::size_t index, const AccessMaps& access_maps) {
    GroupKernel group = program_of(tape_, access_maps, unit, read_);
    std::vector<ValueId> inputs;
    for (const ValueId input : group.inputs) inputs.push_back(placed(input));
    std::vector<Graph::Output> outputs;
    const std::vector<int> places = overwritten(group, index);
    for (std::size_t i = 0; i < group.outputs.size(); ++i) {
      outputs.push_back({tape_.bytes(group.outputs[i]), -1, places[i]});
      add_value(group.outputs[i]);
    }
    Graph::Traits traits;
    traits.cost = seconds_of(tape_, group.computed, group.cost.bytes, machine_);
    traits.workspace = group.program.workspace(threads_);
    traits.name = name_of_group(unit.own);
    traits.tape_nodes = group.computed;
    lowered_.graph_.add_node(inputs, outputs, std::move(traits));
    // The last nodes of a unit may have become useless, where other nodes replace them.
    const auto last = std::ranges::find_if(std::views::reverse(unit.own), [&](NodeId node) {
      return std::ranges::find(group.computed, node) != group.computed.end();
    });
    internal_check(last != unit.own.rend(), "a fused unit computes none of its nodes");
    lowered_.units_.push_back(
        {*last, static_cast<std::uint32_t>(lowered_.programs_.size()), false, none, group.cost});
    group.program.give([&](NodeId node) { return lowered_.folded_constant(node); });
    lowered_.programs_.push_back(std::move(group.program));
  }

  std::string name_of_group(std::span<const NodeId> members) const {
    std::string name;
    for (const NodeId member : members) {
      if (!name.empty()) name += '+';
      name += tape_.operation(member).name;
    }
    return name;
  }

  Lowered& lowered_;
  const Tape& tape_;
  int threads_;
  const Machine& machine_;
  NodeId boundary_;
  std::span<const NodeId> supplied_;
  bool afresh_;
  Needs needs_;
  const std::vector<bool>& wanted_;
  const std::vector<bool>& present_;
  const std::vector<bool>& sources_;
  std::vector<bool> read_;                // by value: a target, or read by another unit
  std::vector<std::size_t> last_reader_;  // by value: the last such unit, also through views
  std::vector<ValueId> place_;            // by value: its number in the graph
  std::vector<std::size_t> position_;     // by node of the graph: its place in the units
};

namespace {

/// The tape to lower, and the requested values.
struct Input {
  Input(const Tape& recorded, std::span<const ValueId> asked, const Simplification& simplification)
      : own(simplified(recorded, simplification)), tape(own != nullptr ? *own : recorded) {
    for (const ValueId target : asked) {
      const bool known = target < recorded.value_count();
      targets.push_back(known ? simplification.replacement(target) : target);
    }
  }

  std::unique_ptr<Tape> own;
  const Tape& tape;
  std::vector<ValueId> targets;
};

}  // namespace

Lowered Lowered::fused(const Tape& tape, std::span<const ValueId> targets, int threads,
                       NodeId backward_begins, std::span<const NodeId> supplied,
                       const Simplification& simplification, bool afresh, const Machine& machine) {
  const Input input(tape, targets, simplification);
  Lowered lowered(simplification);
  Builder builder(lowered, input.tape, input.targets, threads, backward_begins, supplied, afresh,
                  machine);
  builder.build(input.targets);
  lowered.graph_.set_form({true, !simplification.empty()});
  lowered.finish(targets, [&](ValueId target) { return builder.place(target); }, simplification);
  return lowered;
}

Lowered Lowered::unfused(const Tape& tape, std::span<const ValueId> targets, int threads,
                         NodeId backward_begins, std::span<const NodeId> supplied,
                         const Simplification& simplification, bool afresh,
                         const Machine& machine) {
  const Input input(tape, targets, simplification);
  Lowered lowered(simplification);
  lowered.graph_ =
      graph_of(input.tape, input.targets, threads, backward_begins, machine, supplied, afresh);
  lowered.graph_.set_form({false, !simplification.empty()});
  for (NodeId node = 0; node < tape.node_count(); ++node) lowered.units_.push_back({node});
  for (ValueId value = 0; value < tape.value_count(); ++value) lowered.recorded_.push_back(value);
  lowered.finish(targets, [](ValueId target) { return target; }, simplification);
  return lowered;
}

void Lowered::take_costs(const std::function<std::optional<double>(NodeId unit)>& known) {
  for (NodeId unit = 0; unit < graph_.node_count(); ++unit) {
    if (graph_.cost(unit) == 0) continue;  // sources and views
    if (const std::optional<double> seconds = known(unit)) graph_.set_cost(unit, *seconds);
  }
  one_pass_cost_ = graph_.one_pass_cost();
}

Bytes Lowered::bytes() const {
  // Estimates that include edges and names and, for a group, instructions, slots and numbers.
  constexpr Bytes bytes_of_unit = 256;
  constexpr Bytes bytes_of_value = 64;
  constexpr Bytes bytes_of_group = 2'048;
  return bytes_of_unit * std::ssize(units_) + bytes_of_value * std::ssize(recorded_) +
         bytes_of_group * std::ssize(programs_);
}

void Lowered::place_results_elsewhere(std::span<const Donation> donations) {
  for (const auto& [recorded, value] : results_) {
    const ValueId root = graph_.storage(value);
    if (graph_.is_source_value(root)) continue;
    if (!graph_.is_elsewhere(root)) graph_.place_elsewhere(root);
    for (const auto& [argument, result] : donations) {
      if (result == recorded) donated_[root].push_back(argument);
    }
  }
}

Lowered::Lowered(const Simplification& simplification)
    : folded_constants_(simplification.folded_constants()),
      common_subexpressions_(simplification.common_subexpressions()) {}

std::vector<std::uint32_t> Lowered::runs(const Schedule& schedule, std::uint32_t node_count) const {
  std::vector<std::uint32_t> runs(node_count);
  for (const Step& step : schedule.steps) {
    if (step.kind != Step::Kind::compute) continue;
    for (const NodeId node : members(step.id)) ++runs[node];
  }
  return runs;
}

template <class Place>
void Lowered::finish(std::span<const ValueId> targets, Place place,
                     const Simplification& simplification) {
  std::vector<ValueId> asked(targets.begin(), targets.end());
  std::sort(asked.begin(), asked.end());
  asked.erase(std::unique(asked.begin(), asked.end()), asked.end());
  for (const ValueId target : asked) {
    results_.push_back({target, place(simplification.replacement(target))});
  }
  one_pass_cost_ = graph_.one_pass_cost();
  const bool complete =
      units_.size() == graph_.node_count() && recorded_.size() == graph_.value_count() &&
      std::ranges::all_of(results_, [&](const Result& result) {
        return result.value < graph_.value_count() && graph_.is_target(result.value);
      });
  internal_check(complete, "a lowered graph has no place for a target");
}

const Attributes* Lowered::folded_constant(NodeId node) const {
  const auto found =
      std::lower_bound(folded_constants_.begin(), folded_constants_.end(), node,
                       [](const auto& entry, NodeId id) { return entry.first < id; });
  return found != folded_constants_.end() && found->first == node ? &found->second : nullptr;
}

}  // namespace palimpsest
