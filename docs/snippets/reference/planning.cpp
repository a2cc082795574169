// Examples of docs/reference/planning.md.
#include <palimpsest/autodiff/graph_view.h>

#include <boost/graph/topological_sort.hpp>
#include <boost/range/iterator_range.hpp>
#include <iterator>
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

EXAMPLE(BudgetError::own_limit) {
  try {
    make_plan(chain_graph(), *fraction(0.01));
  } catch (const BudgetError& error) {
    // No budget helps; the planner needs a larger fraction.
    print(error.own_limit(), error.budget() < error.smallest_feasible());  // → true true
  }
}

EXAMPLE(Graph::name, Graph::describe, Graph::view_of, Graph::source_bytes, Graph::is_source_value,
        Graph::is_serial, Graph::is_opaque, Graph::metadata_bytes) {
  Graph graph;
  const Graph::Output input[] = {{.bytes = 400}}, view[] = {{.view_of = 0}};
  const NodeId x = graph.add_node({}, input, {.source = true, .name = "x"});
  const ValueId read[] = {graph.first_output(x)};
  const NodeId reshaped = graph.add_node(read, view, {});
  print(graph.name(x), graph.describe(reshaped));                          // → x #1
  print(graph.source_bytes(0), graph.bytes(0), graph.is_source_value(0));  // → 400 0 true
  print(graph.view_of(1), graph.storage(1), graph.is_serial(reshaped), graph.is_opaque(reshaped));
  // → 0 0 false false
  print(graph.metadata_bytes() > 0);  // → true
}

EXAMPLE(Graph::takes_over, Graph::possible_donor) {
  Graph graph;
  const Graph::Output plain[] = {{.bytes = 400}}, in_place[] = {{.bytes = 400, .takes_over = 0}};
  const ValueId read[] = {graph.first_output(graph.add_node({}, plain, {}))};
  graph.add_node(read, in_place, {});                   // may write its output over input 0
  print(graph.takes_over(1), graph.possible_donor(1));  // → 0 0
  graph.add_target(1);
  const Schedule schedule = drop_after_last_use(graph, graph.needed_nodes());
  print(simulate(graph, schedule).peak);  // → 400
}

EXAMPLE(is_given_up) {
  Graph graph;
  const Graph::Output plain[] = {{.bytes = 400}};
  const ValueId read[] = {graph.first_output(graph.add_node({}, plain, {}))};
  graph.add_node(read, plain, {});
  const std::vector<Step> steps{Step::compute(0), Step::compute(1), Step::drop(0)};
  // Value 0, alone in its storage, is dropped after step 1 before anything else is computed.
  print(is_given_up(graph, steps, 1, 0, 1), is_given_up(graph, steps, 0, 0, 1));  // → true false
}

EXAMPLE(Graph::set_present, Graph::is_present, Graph::place_elsewhere, Graph::is_elsewhere) {
  Graph graph;
  const Graph::Output output[] = {{.bytes = 400}};
  graph.add_node({}, output, {});
  const ValueId read[] = {0};
  graph.add_node(read, output, {});
  graph.add_target(1);
  graph.set_present(0);      // computed before
  graph.place_elsewhere(1);  // in memory of the caller
  print(graph.is_present(0), graph.is_elsewhere(1), graph.needed_nodes().size());  // → true true 1
  print(make_plan(graph, *keep_all()).simulation.peak);                            // → 400
}

EXAMPLE(Graph::set_backward_begins, Graph::backward_begins, Graph::set_parallel,
        Graph::is_parallel) {
  Graph graph = chain_graph();
  print(graph.backward_begins().value(), graph.is_parallel());  // → 42 false
  graph.set_parallel();                                         // for several threads
  graph.set_backward_begins(10);
  print(graph.backward_begins().value(), graph.is_parallel());  // → 10 true
}

EXAMPLE(Graph::form, Graph::set_form, Graph::tape_nodes, GraphForm) {
  const Graph graph = chain_graph();                      // of a tape, fused
  print(graph.form()->fuse, graph.tape_nodes(1).size());  // → true 1
  Graph copy = graph;
  copy.set_form({.fuse = false});
  // Comparisons ignore the form.
  print(copy.form()->fuse, copy == graph);  // → false true
}

EXAMPLE(Graph::structure_hash, Graph::wiring_hash) {
  Graph graph = chain_graph(), other = chain_graph();
  other.set_cost(3, 1.0);
  // Other plans may be best, but each is a plan for both.
  print(graph.structure_hash() == other.structure_hash());  // → false
  print(graph.wiring_hash() == other.wiring_hash());        // → true
}

EXAMPLE(MissingNodes, MissingNodes::find) {
  const Graph graph = chain_graph();
  std::vector<bool> live(graph.value_count(), false);
  MissingNodes missing(graph);
  const ValueId last = graph.targets()[0];
  const std::size_t all = missing.find({&last, 1}, live).size();
  live[graph.first_output(graph.producer(last) - 1)] = true;
  print(all, missing.find({&last, 1}, live).size());  // → 41 1
}

EXAMPLE(print, without_useless) {
  Graph graph;
  const Graph::Output output[] = {{.bytes = 400}};
  graph.add_node({}, output, {.name = "input"});
  const ValueId read[] = {0};
  graph.add_node(read, output, {.name = "exp"});
  graph.add_target(1);
  std::ostringstream text;
  print(text, graph, drop_after_last_use(graph, graph.needed_nodes()));
  print(text.str());
  // → compute 0 (input)
  // → compute 1 (exp)
  // → drop 0
  // The second run of node 0 makes nothing that is read.
  const NodeId order[] = {0, 1, 0};
  print(without_useless(graph, order).size());  // → 2
}

EXAMPLE(append_node) {
  Tape tape;
  const Var x = tape.constant(Tensor::ones({100}));
  exp(x);
  Graph graph;
  append_node(graph, tape, /*threads=*/1);                        // x, a source
  append_node(graph, tape, 1);                                    // exp(x)
  print(graph.node_count(), graph.is_source(0), graph.bytes(1));  // → 2 true 400
}

EXAMPLE(measured_machine) {
  const Machine& machine = measured_machine();                    // measures once in a process
  print(machine.flops_per_second > 0, machine.products.f64 > 0);  // → true true
  // A file keeps it for other processes.
  print(measured_machine("this_machine.json") == machine);  // → true
}

EXAMPLE(TapeView, TapeView::tape, TapeView::node_count, TapeView::edge_count, TapeView::inputs,
        TapeView::in_edge, TapeView::edge, TapeView::first_out, boost::graph_traits,
        boost::property_map) {
  Tape tape;
  const Var x = tape.constant(Tensor::ones({2}));
  exp(x) * x;
  const TapeView view(tape);
  // Algorithms of Boost.Graph take the view.
  std::vector<NodeId> order;
  boost::topological_sort(view, std::back_inserter(order));
  print(order.front(), order.back(), view.node_count(), view.edge_count());  // → 2 0 3 3
  // The first node that reads x, and the producer of the product's second operand.
  print(view.edge(view.first_out(x.node())).target, view.in_edge(2, 1).source);  // → 1 0
  print(view.inputs(2).size(), &view.tape() == &tape);                           // → 2 true
}

EXAMPLE(vertices, edges, in_edges, out_edges, source, target, num_vertices, num_edges, in_degree,
        out_degree, degree, get) {
  Tape tape;
  const Var x = tape.constant(Tensor::ones({2}));
  exp(x) * x;
  const TapeView view(tape);
  print(num_vertices(view), num_edges(view), in_degree(2, view), out_degree(0, view));  // → 3 3 2 2
  print(degree(1, view), get(boost::vertex_index, view, 1));                            // → 2 1
  for (const TapeView::Edge& edge : boost::make_iterator_range(edges(view))) {
    print(source(edge, view), target(edge, view));
    // → 0 1
    // → 0 2
    // → 1 2
  }
  const auto [first, last] = in_edges(2, view);
  print(last - first, *vertices(view).first, (*out_edges(1, view).first).target);  // → 2 0 2
}

}  // namespace reference
