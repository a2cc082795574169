// Records a program once and runs it many times. It computes the sensitivity of Fisher's equation,
// diffusion with growth, to its initial state, for many initial states in parallel.
#include <palimpsest.h>

#include <iostream>
#include <thread>

using namespace palimpsest;

namespace {

constexpr int cells = 400;
constexpr int steps = 300;

/// Records `steps` explicit time steps and the squared distance of the final state from `wanted`.
Var distance(const Var& start, const Var& wanted) {
  Var u = start;
  for (int n = 0; n < steps; ++n) {
    const Var diffusion = roll(u, 1, 0) - 2.0 * u + roll(u, -1, 0);
    u = u + 0.2 * diffusion + 0.01 * u * (1.0 - u);
  }
  const Var difference = u - wanted;
  return sum(difference * difference);
}

Tensor start_of(std::uint64_t member) { return Tensor::uniform({cells}, member); }

}  // namespace

int main() {
  Tensor wanted = Tensor::zeros({cells});
  for (int i = 150; i < 250; ++i) wanted.data<float>()[static_cast<std::size_t>(i)] = 1;

  // Record, differentiate and plan here. Each run of the program keeps to this budget.
  Var start;
  const Program program = Program::gradients(
      [&](Tape& tape) {
        start = tape.parameter(start_of(0), "start");
        return distance(start, tape.constant(wanted));
      },
      {.memory_budget = 128_KiB, .threads = 1});
  std::cout << program.plan().summary() << '\n';

  // Each runner has its own leaves and memory, so threads can run the program concurrently.
  constexpr std::uint64_t members = 16;
  std::vector<Tensor> sensitivities(members);
  std::vector<std::thread> threads;
  for (std::uint64_t first = 0; first < 2; ++first) {
    threads.emplace_back([&, first] {
      Runner runner(program);
      for (std::uint64_t member = first; member < members; member += 2) {
        runner.bind(start, start_of(member));
        runner.run();
        sensitivities[member] = runner.gradients()[start].clone();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();

  bool same = true;
  for (std::uint64_t member = 0; member < members; ++member) {
    Tape tape;
    const Var own = tape.parameter(start_of(member));
    const Gradients expected = backward(distance(own, tape.constant(wanted)));
    same = same && same_bits(expected[own], sensitivities[member]);
  }
  std::cout << "the same bits as recorded again: " << std::boolalpha << same << '\n';
  return same ? 0 : 1;
}
