// Exported C by every installed compiler at every level of optimization.
#include <cmath>

#include "palimpsest.h"
#include "tests/catch.h"
#include "tests/strategy/export/exported_runs.h"
#include "tests/strategy/export/lacks_c_compiler.h"

namespace palimpsest::compilers_test {
namespace {

// GCC 12.2 has computed wrong addresses in `where` and in comparisons at -O2: 25 numbers are too
// many to unroll a loop over them, and no whole number of vectors.
TEST_CASE("a choice between two arrays has the same bits by every compiler", "[export]") {
  if (lacks_c_compiler()) return;
  for (const DType dtype : {DType::f64, DType::f32}) {
    CAPTURE(name_of(dtype));
    const Tensor first = Tensor::normal({25}, 1).to(dtype);
    const Tensor second = Tensor::normal({25}, 2).to(dtype);
    Var b;
    const Program program = Program::gradients(
        [&](Tape& tape) {
          const Var a = tanh(tape.parameter(first, "a"));
          b = tape.constant(second);
          return sum(sin(where(a >= b, a, b)));
        },
        {.threads = 1});
    const CRun run{.exported = export_c(program, {.name = "choice", .arguments = {{"b", b}}}),
                   .tensors = {first, second, {}, {}}};
    Runner runner(program);
    runner.run();
    const Tensor expected = runner.gradients().entries()[0].gradient;
    Tensor gradient;
    for (const CBuild& build : c_builds()) {
      CAPTURE(build.compiler, build.level);
      const Tensor found = run_in_c({run}, build)[0].tensors[3];
      if (!gradient.defined()) gradient = found;
      CHECK(same_bits(found, gradient));
      for (std::int64_t i = 0; i < found.elements(); ++i) {
        CHECK(std::abs(found.at(i) - expected.at(i)) <= (dtype == DType::f64 ? 1e-12 : 1e-6));
      }
    }
  }
}

}  // namespace
}  // namespace palimpsest::compilers_test
