// Examples of docs/reference/planning.md.
#include <sstream>

#include "docs/snippets/reference/example.h"

namespace reference {
namespace {

/// The graph of a chain of twenty functions.
Graph chain_graph() {
  Tape tape;
  Var x = tape.parameter(Tensor::ones({1000}));
  for (int i = 0; i < 20; ++i) x = cumsum(sin(x), 0) * 0.1;
  write_graph(sum(x), "chain.json");
  return read_graph("chain.json");
}

}  // namespace

EXAMPLE(make_plan, Plan, find_plan, smallest_budget) {
  const Graph graph = chain_graph();
  const Plan everything = make_plan(graph, *keep_all());
  const Plan half = make_plan(graph, *automatic(), everything.predicted_peak() / 2);
  print(half.predicted_peak() <= everything.predicted_peak() / 2, half.bytes_saved() > 0);
  // → true true
  // No exception where nothing fits.
  print(find_plan(graph, *automatic(), 10).has_value());                          // → false
  print(smallest_budget(graph, *automatic()) < everything.predicted_peak() / 2);  // → true
}

EXAMPLE(BudgetError) {
  Tape tape;
  const Var loss = sum(exp(tape.parameter(Tensor::ones({1000}))));
  try {
    backward(loss, {.memory_budget = 100});
  } catch (const BudgetError& error) {
    print(error.budget(), error.smallest_feasible());  // → 100 4096
  }
}

EXAMPLE(keep_all, square_root, uniform, Uniform, min_cut, greedy, quick) {
  Tape tape;
  Var x = tape.parameter(Tensor::ones({1000}), "x");
  const Var first = x;
  for (int i = 0; i < 20; ++i) x = cumsum(sin(x), 0) * 0.1;
  const Gradients all = backward(sum(x), {.planner = keep_all()});
  for (const PlannerPtr& planner :
       {square_root(), uniform({.segments = 4}), min_cut(), greedy(), quick()}) {
    print(planner->name(), same_bits(backward(sum(x), {.planner = planner})[first], all[first]));
    // → square root true
    // → uniform, 4 segments true
    // → min cut true
    // → greedy true
    // → quick true
  }
}

EXAMPLE(automatic, search, SearchSettings, exact, ExactSettings, chain, ChainSettings) {
  print(automatic()->name(), search({.seconds = 0.1})->name());  // → auto search
  print(exact()->name(), chain({.slots = 100})->name());         // → exact chain
}

EXAMPLE(binomial, BinomialSettings, fraction, online, selected, Segment, reordered) {
  print(binomial({.snapshots = 5})->name(), fraction(0.5)->name());
  // → binomial, 5 snapshots fraction 0.5
  print(online()->name(), selected({{.first = 1, .last = 8}})->name(), reordered()->name());
  // → online eviction selected segments reordered
}

EXAMPLE(planner_named, named_planners, named_planner, NamedPlanner, PlannerSettings) {
  print(planner_named("uniform:8")->name());  // → uniform, 8 segments
  print(named_planners().size() > 5, named_planner("auto").summary);
  // → true the cheapest plan of the other planners within the budget, improved
}

EXAMPLE(given, read_schedule, write_schedule, Schedule) {
  Tape tape;
  const Var loss = sum(exp(tape.parameter(Tensor::ones({1000}))));
  const Plan plan = plan_backward(loss);
  write_schedule(plan.schedule, "plan.json");
  print(backward(loss, {.planner = given(read_schedule("plan.json"))}).loss());  // → 2718
}

EXAMPLE(simulate, Simulation, drop_after_last_use, rematerialize, forward_nodes, order_of) {
  const Graph graph = chain_graph();
  std::vector<bool> dropped(graph.value_count());
  for (const NodeId node : forward_nodes(graph)) dropped[graph.first_output(node)] = true;
  const Schedule schedule = drop_after_last_use(graph, rematerialize(graph, dropped));
  print(simulate(graph, schedule).cost_ratio() > 1);  // → true
}

EXAMPLE(recompute_segments, equal_segments, inside, all_but_last) {
  const Graph graph = chain_graph();
  const std::vector<Segment> segments = equal_segments(graph, 4);
  const Schedule schedule = recompute_segments(graph, all_but_last(segments));
  print(segments.size(), simulate(graph, schedule).cost_ratio() > 1);  // → 4 true
}

EXAMPLE(read_graph, write_graph, Graph) {
  const Graph graph = chain_graph();
  write_graph(graph, "copy.json");
  print(read_graph("copy.json") == graph, graph.targets().size());              // → true 2
  print(graph.node_count() > 20, graph.one_pass_cost() > 0, graph.resident());  // → true true 4000
}

EXAMPLE(Machine, read_machine, write_machine, seconds_of) {
  const Machine machine{.flops_per_second = 1e12};
  write_machine(machine, "machine.json");
  print(read_machine("machine.json") == machine);  // → true
  print(seconds_of({.flops = 1e9, .bytes = 0}, machine) < seconds_of({.flops = 1e9, .bytes = 0}));
  // → true
}

EXAMPLE(Planner, Proposal) {
  struct Everything final : Planner {
    std::string name() const override { return "everything"; }
    std::vector<Proposal> propose(const Graph& graph, Bytes) const override {
      return {drop_after_last_use(graph, graph.needed_nodes())};
    }
  };
  Tape tape;
  const Var loss = sum(exp(tape.parameter(Tensor::ones({10}))));
  print(backward(loss, {.planner = std::make_shared<Everything>()}).report().planner);
  // → everything
}

EXAMPLE(Graph::add_node, Graph::add_target, Graph::set_cost) {
  Graph graph;  // a program of your own, in bytes and seconds
  const Graph::Output output[] = {{.bytes = 4096}};
  const NodeId first = graph.add_node({}, output, {});
  const ValueId read[] = {graph.first_output(first)};
  const NodeId second = graph.add_node(read, output, {});
  graph.set_cost(second, 1e-3);
  graph.add_target(graph.first_output(second));
  print(graph.node_count(), graph.value_count(), graph.cost(second));  // → 2 2 0.001
  print(graph.inputs(second).size(), graph.output_count(second), graph.bytes(read[0]));
  // → 1 1 4096
  print(graph.producer(read[0]), graph.is_target(1), graph.is_source(first));     // → 0 true false
  print(graph.needed_nodes().size(), graph.workspace(second), graph.storage(1));  // → 2 0 1
}

EXAMPLE(graph_of, segments_in_scope, write_dot) {
  Tape tape;
  const Var x = tape.parameter(Tensor::ones({100}));
  const Var y = [&] {
    const auto scope = tape.scope("layer1");
    return exp(sin(x));
  }();
  const ValueId target = y.id();
  const Graph graph = graph_of(tape, {&target, 1});
  print(graph.node_count(), segments_in_scope(tape, "layer1").size());  // → 3 1
  std::ostringstream drawing;
  write_dot(drawing, tape, drop_after_last_use(graph, graph.needed_nodes()));
  print(drawing.str().substr(0, 7));  // → digraph
}

EXAMPLE(lay_out, lay_out_quickly, lay_out_apart, laid_out, Layout) {
  const Graph graph = chain_graph();
  const Schedule schedule = drop_after_last_use(graph, graph.needed_nodes());
  const Layout layout = lay_out(graph, schedule);
  print(layout.size >= simulate(graph, schedule).peak, laid_out(1));       // → true 64
  print(lay_out_quickly(graph, schedule, unlimited).size >= layout.size);  // → true
}

EXAMPLE(summarize, bytes_per_second, flops_per_second) {
  print(summarize("mine", 1_MiB, 4_MiB, 30, 10, 0.25));
  // → mine: peak 1.00 MiB (25.0 % of keep-all), 10 of 30 steps recompute, 25.0 % extra work
  print(bytes_per_second(1e6, Machine{}), flops_per_second({}, DType::f32, Machine{}));
  // → 1e+10 5e+10
}

}  // namespace reference
