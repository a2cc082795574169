// Examples of docs/reference/reverse.md.
#include "docs/snippets/reference/example.h"

namespace reference {

EXAMPLE(ReverseDriver, ReverseDriver::run, ReverseDriver::forecast, ReverseDriver::report,
        ReverseFunctions, ReverseOptions) {
  // 1,000 steps of u ← u + 0.001·u², and the derivative of the last state by the first.
  using State = std::vector<double>;
  const ReverseFunctions<State> functions{
      .advance = [](State& u, std::uint64_t) { u[0] += 0.001 * u[0] * u[0]; },
      .reverse = [](State& u, State& adjoint, std::uint64_t) { adjoint[0] *= 1 + 0.002 * u[0]; },
      .seed = [](State&) { return State{1}; }};
  ReverseDriver driver(functions, {.steps = 1000, .memory_budget = 16_KiB});
  State u{0.5};
  print(driver.forecast(u).steps);  // → 1000
  print(driver.run(u)->at(0));      // → 3.992
  print(driver.report().steps);     // → 1000
}

EXAMPLE(named, NamedObject, stored) {
  // Objects that `reverse` adds to are saved with a run that is to be continued.
  double loss = 0;
  ReverseFunctions<double> functions;
  functions.accumulated = {named("loss", loss)};
  print(functions.accumulated.size());  // → 1
}

}  // namespace reference
