// Defines a custom planner. Also writes and reads the files that palimpsest-plan works with.
#include <palimpsest.h>

#include <algorithm>
#include <iostream>
#include <memory>

using namespace palimpsest;

/// Recomputes the forward storages with the lowest cost per byte. Proposes 17 schedules: they
/// recompute none of the storages, the cheapest sixteenth, the cheapest two sixteenths, up to all.
class CheapestFirst final : public Planner {
 public:
  std::string name() const override { return "cheapest first"; }

  std::vector<Proposal> propose(const Graph& graph, Bytes) const override {
    std::vector<ValueId> storages;
    for (const NodeId node : forward_nodes(graph)) {
      for (std::uint32_t i = 0; i < graph.output_count(node); ++i) {
        const ValueId value = graph.first_output(node) + i;
        if (graph.bytes(value) > 0) storages.push_back(value);
      }
    }
    const auto price = [&](ValueId value) {
      return graph.cost(graph.producer(value)) / static_cast<double>(graph.bytes(value));
    };
    std::stable_sort(storages.begin(), storages.end(),
                     [&](ValueId a, ValueId b) { return price(a) < price(b); });

    constexpr std::size_t parts = 16;
    std::vector<Proposal> schedules;
    std::vector<bool> dropped(graph.value_count());
    std::size_t next = 0;
    for (std::size_t part = 0; part <= parts; ++part) {
      for (; next < storages.size() * part / parts; ++next) dropped[storages[next]] = true;
      schedules.push_back(drop_after_last_use(graph, rematerialize(graph, dropped)));
    }
    return schedules;
  }
};

/// Sixteen blocks of a residual network on 512 rows of 64 numbers.
Var record_step(Tape& tape) {
  Var x = tape.constant(Tensor::normal({512, 64}, /*seed=*/1), "input");
  for (std::uint64_t block = 0; block < 16; ++block) {
    const auto scope = tape.scope("block" + std::to_string(block));
    const Var up = tape.parameter(Tensor::normal({64, 256}, 2 * block + 2, 0.0, 0.1), "up");
    const Var down = tape.parameter(Tensor::normal({256, 64}, 2 * block + 3, 0.0, 0.05), "down");
    x = x + matmul(gelu(matmul(x, up)), down);
  }
  return mean(x * x);
}

int main(int argc, char** argv) {
  const std::string folder = argc > 1 ? argv[1] : ".";
  Tape tape;
  const Var loss = record_step(tape);
  write_graph(loss, folder + "/step.json");

  const Gradients all = backward(loss);
  const Bytes budget = all.report().keep_all_peak / 2;
  const Gradients mine =
      backward(loss, {.memory_budget = budget, .planner = std::make_shared<CheapestFirst>()});
  const Gradients best = backward(loss, {.memory_budget = budget, .planner = automatic()});

  const Plan plan = make_plan(read_graph(folder + "/step.json"), CheapestFirst(), budget);
  write_schedule(plan.schedule, folder + "/cheapest_first.json");
  const Gradients followed =
      backward(loss, {.planner = given(read_schedule(folder + "/cheapest_first.json"))});
  for (const auto* gradients : {&all, &mine, &best, &followed}) {
    std::cout << gradients->report().summary() << '\n';
    for (const Gradients::Entry& entry : *gradients) {
      if (!same_bits(entry.gradient, all[entry.parameter])) return 1;
    }
  }
}
