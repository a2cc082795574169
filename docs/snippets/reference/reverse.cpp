// Examples of docs/reference/reverse.md.
#include <algorithm>

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

EXAMPLE(StoredObject, StoredObject::save, StoredObject::load, StoredObject::bytes,
        StoredObject::header_bytes, StoredObject::dtype, StoredObject::workspace, stored) {
  std::vector<std::vector<double>> state{{1, 2}, {3}};
  const std::unique_ptr<StoredObject> object = stored(state);
  // The sizes of the three vectors come before the three numbers.
  print(object->bytes(), object->header_bytes(), object->dtype(), object->workspace());
  // → 48 24 f64 0
  std::vector<std::byte> bytes;
  object->save([&](auto piece) { bytes.insert(bytes.end(), piece.begin(), piece.end()); });
  state[0] = {};
  object->load(std::ssize(bytes), [from = bytes.data()](auto piece) mutable {
    std::copy_n(from, piece.size(), piece.data());
    from += piece.size();
  });
  print(state[0][1]);  // → 2
}

EXAMPLE(ReverseChain, ReverseRunner, ReverseRunner::run, ReverseRunner::forecast,
        ReverseRunner::report) {
  // u ← 1.1·u, for programs that hold one state and one adjoint.
  struct Growth final : ReverseChain {
    double u = 1, adjoint_of_u = 0;
    std::unique_ptr<StoredObject> state_object = stored(u), adjoint_object = stored(adjoint_of_u);
    void advance(std::uint64_t) override { u *= 1.1; }
    void reverse(std::uint64_t, std::uint64_t) override { adjoint_of_u *= 1.1; }
    void seed() override { adjoint_of_u = 1; }
    bool done(std::uint64_t) override { return false; }
    bool has_done() const override { return false; }
    bool has_segments() const override { return false; }
    StoredObject& state() override { return *state_object; }
    StoredObject* adjoint() override { return adjoint_object.get(); }
    void require_loadable_adjoint() const override {}
    std::span<const NamedObject> accumulated() override { return {}; }
    std::span<const NamedObject> inputs() override { return {}; }
  } growth;
  ReverseRunner runner({.steps = 10, .memory_budget = 16_KiB});
  print(runner.forecast(growth).steps, runner.run(growth));  // → 10 true
  print(growth.adjoint_of_u, runner.report().steps);         // → 2.594 10
}

}  // namespace reference
