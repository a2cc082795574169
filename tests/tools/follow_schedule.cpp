// `follow_schedule GRAPH.json` writes the graph of a small program. `follow_schedule GRAPH.json
// SCHEDULE.json BUDGET` runs the program by a schedule of that graph and fails if the gradients
// differ in any bit from those without a schedule.
#include <cstdlib>
#include <iostream>

#include "palimpsest.h"

namespace palimpsest {
namespace {

Var record(Tape& tape) {
  Var x = tape.constant(Tensor::uniform({512, 24}, 1, -1, 1), "x");
  for (std::uint64_t layer = 0; layer < 6; ++layer) {
    const Var w = tape.parameter(Tensor::normal({24, 24}, 10 + layer, 0, 0.2), "w");
    const Var b = tape.parameter(Tensor::normal({24}, 20 + layer, 0, 0.1), "b");
    x = x + gelu(matmul(x, w) + b);
  }
  return mean(softmax(x) * x);
}

bool is_same(const Gradients& a, const Gradients& b) {
  bool same = same_bits(a.loss(), b.loss());
  for (std::size_t i = 0; i < a.entries().size(); ++i) {
    same = same && same_bits(a.entries()[i].gradient, b.entries()[i].gradient);
  }
  return same;
}

int follow(const std::string& schedule, Bytes budget) {
  Tape usual;
  Tape tape;
  const Gradients expected = backward(record(usual));
  const Gradients found =
      backward(record(tape),
               {.memory_budget = budget, .planner = given(read_schedule(schedule)), .threads = 1});
  std::cout << found.report().recomputed << '\n';
  return is_same(found, expected) ? 0 : 3;
}

}  // namespace
}  // namespace palimpsest

int main(int argc, char** argv) {
  try {
    palimpsest::Tape tape;
    if (argc == 4) return palimpsest::follow(argv[2], std::atoll(argv[3]));
    palimpsest::write_graph(palimpsest::record(tape), argv[1]);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
