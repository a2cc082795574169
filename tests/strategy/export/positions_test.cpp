#include <cstdint>
#include <string>
#include <vector>

#include "autodiff/files.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/index.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/loss.h"
#include "tests/catch.h"
#include "tests/strategy/export/exported_runs.h"
#include "tests/strategy/export/lacks_c_compiler.h"
#include "tests/temporary_directory.h"

namespace palimpsest::export_positions_test {
namespace {

/// Programs that take a position from an i64 tensor of one element.
std::vector<ExportedC> programs_of_positions(const std::string& end) {
  const auto values = [&](const std::string& name, auto f) {
    Var index;
    const Program program = Program::values([&](Tape& tape) {
      index = tape.constant(Tensor::from<std::int64_t>({0}, {1}));
      return std::vector<Var>{f(tape.parameter(Tensor::ones({1, 4}), "x"), index)};
    });
    return export_c(program, {.name = name + end, .arguments = {{"index", index}}});
  };
  return {values("select", [](const Var& x, const Var& i) { return index_select(x, 1, i); }),
          values("hot", [](const Var& x, const Var& i) { return one_hot(i, 4) * x; }),
          values("loss", [](const Var& x, const Var& i) { return cross_entropy(x, i); })};
}

TEST_CASE("positions of 64 bits are checked where long has 32", "[export]") {
  if (lacks_c_compiler()) return;
  const TemporaryDirectory folder;
  const std::string narrow = folder.path() + "/narrow.h";
  // Headers of the C library come first, since they need the true long.
  write_file(narrow,
             "#include <math.h>\n#include <stdint.h>\n#include <stdio.h>\n#include <stdlib.h>\n"
             "#include <string.h>\n#define long int\n",
             "test");
  const std::int64_t wraps = (std::int64_t{1} << 32) + 1;
  std::vector<CRun> runs;
  for (const std::int64_t position : {std::int64_t{1}, wraps, -wraps}) {
    for (ExportedC& exported : programs_of_positions(std::to_string(runs.size()))) {
      runs.push_back({std::move(exported),
                      {Tensor::ones({1, 4}), Tensor::from<std::int64_t>({position}, {1})}});
    }
  }
  const std::vector<CResult> results = run_in_c(runs, "-O0 -include " + narrow);
  for (std::size_t i = 0; i < results.size(); ++i) {
    CAPTURE(runs[i].exported.name);
    CHECK(results[i].status == (i < results.size() / 3 ? 0 : 1));
  }
}

}  // namespace
}  // namespace palimpsest::export_positions_test
