#include "tests/programs/program_builds.h"

#include "tests/catch.h"
#include "tests/strategy/export/lacks_c_compiler.h"

namespace palimpsest::program_builds_test {

TEST_CASE("exported programs have the engine's numbers by every compiler at every level") {
  if (lacks_c_compiler()) return;
  CHECK(problem_of_exported_builds(19, 4).value_or("") == "");
}

TEST_CASE("native code has the interpreter's numbers by every compiler at every level") {
  if (lacks_c_compiler()) return;
  CHECK(problem_of_native_builds(1, 4).value_or("") == "");
}

}  // namespace palimpsest::program_builds_test
