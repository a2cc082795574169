#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <string_view>
#include <vector>

#include "autodiff/files.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/reduce.h"
#include "strategy/export/c_library.h"
#include "strategy/export/c_text.h"
#include "strategy/training/sgd.h"
#include "tests/catch.h"
#include "tests/error_of.h"
#include "tests/strategy/export/exported_runs.h"
#include "tests/strategy/export/lacks_c_compiler.h"
#include "tests/temporary_directory.h"

namespace palimpsest::export_names_test {
namespace {

/// A program of parameters `w` and `W` and two constants.
struct Pair {
  explicit Pair(std::string_view first = "", std::string_view second = "")
      : program(Program::gradients([&](Tape& tape) {
          lower = tape.parameter(Tensor::full({2}, 3), "w");
          upper = tape.parameter(Tensor::full({2}, 5), "W");
          x = tape.constant(Tensor::ones({2}), first);
          y = tape.constant(Tensor::ones({2}), second);
          return LossAndOutputs{sum(lower * upper * x * y), {lower * upper}};
        })) {}

  Var lower, upper, x, y;
  Program program;
};

TEST_CASE("names that differ only in capitals have one macro, so they differ", "[export]") {
  Pair pair;
  const auto check = [&](const ExportOptions& options, const std::string& name) {
    check_error([&] { export_c(pair.program, options); },
                {"[export_c]", "the name '" + name + "' is used twice", "names in capitals"});
  };
  check({.arguments = {{"mask", pair.x}, {"Mask", pair.y}}}, "Mask");
  check({.arguments = {{"mask", pair.x}}, .results = {{"MASK", pair.program.outputs()[1]}}},
        "MASK");
  check({.arguments = {{"PROGRAM_H", pair.x}}}, "PROGRAM_H");
  check({.arguments = {{"PROGRAM_OUT_OF_RANGE", pair.x}}}, "PROGRAM_OUT_OF_RANGE");
  check({.arguments = {{"mask", pair.x}, {"PROGRAM_MASK_ELEMENTS", pair.y}}},
        "PROGRAM_MASK_ELEMENTS");
  for (const char* macro : {"HUGE_VAL", "EOF", "stdin", "errno", "EINTR", "M_PIl", "unix"}) {
    check({.arguments = {{macro, pair.x}}}, macro);
  }

  const ExportedC exported = export_c(pair.program);
  CHECK(exported.pointers[0].name == "w");
  CHECK(exported.pointers[1].name == "W_2");
  CHECK(exported.header.find("#define PROGRAM_W_ELEMENTS 2") != std::string::npos);
  CHECK(exported.header.find("#define PROGRAM_W_2_ELEMENTS 2") != std::string::npos);
}

TEST_CASE("constants named like the file's macros get other names", "[export]") {
  if (lacks_c_compiler()) return;
  std::vector<CRun> runs;
  const char* names[][2] = {{"H", "AT"}, {"OK", "FUNCTION"}, {"ARENA_BYTES", "W_ELEMENTS"}};
  int number = 0;
  for (const auto& [first, second] : names) {
    const Pair pair(first, second);
    const std::string name = "KF" + std::to_string(++number);
    runs.push_back(
        {export_c(pair.program, {.name = name}), {Tensor::full({2}, 3), Tensor::full({2}, 5)}});
    CHECK(mentions(runs.back().exported.source, name + "_" + first + "_2"));
  }
  for (const CResult& result : run_in_c(runs)) {
    CHECK(result.status == 0);
    CHECK(result.tensors[2].item() == 30);
  }
}

TEST_CASE("the function's name is no name of the C library and no keyword of C++", "[export]") {
  Pair pair;
  for (const char* name : {"log", "exp", "round", "roundf", "y0", "memcpy", "strlen", "size_t",
                           "uint32_t", "NAN", "INT32_MAX", "state", "learning_rate"}) {
    CAPTURE(name);
    check_error([&] { export_c(pair.program, {.name = name}); },
                {"[export_c]", "the name '" + std::string(name) + "' has another meaning"});
  }
  for (const char* name : {"const_cast", "char8_t", "char16_t", "char32_t", "typeof"}) {
    CAPTURE(name);
    CHECK_FALSE(is_c_identifier(name));
    check_error([&] { export_c(pair.program, {.name = name}); }, {"is no C identifier"});
    check_error([&] { export_c(pair.program, {.arguments = {{name, pair.x}}}); },
                {"is no C identifier"});
  }
  for (const char* name : {"logs", "rounded", "self", "final", "k"}) {
    CAPTURE(name);
    CHECK_NOTHROW(export_c(pair.program, {.name = name}));
  }
  CHECK_NOTHROW(export_c(pair.program, {.arguments = {{"index", pair.x}, {"gamma", pair.y}}}));
}

/// Calls `check(name, has_parameters)` for each macro that a file has after some headers.
template <class F>
void for_each_macro(const std::string& headers, const std::string& mode, F check) {
  const TemporaryDirectory folder;
  write_file(folder.path() + "/headers.c", headers, "test");
  const std::string command = c_compiler() + mode + " -dM -E " + folder.path() + "/headers.c > " +
                              folder.path() + "/macros";
  REQUIRE(std::system(command.c_str()) == 0);
  std::istringstream macros(read_file(folder.path() + "/macros", "test"));
  for (std::string line; std::getline(macros, line);) {
    const std::string name = line.substr(8, line.find_first_of(" (", 8) - 8);
    // The names of compilers and of C libraries begin with an underscore, which no name here does.
    if (!name.starts_with('_'))
      check(name, line[std::min(8 + name.size(), line.size() - 1)] == '(');
  }
}

TEST_CASE("no macro of the headers that the file includes is a name in it", "[export]") {
  if (lacks_c_compiler()) return;
  const std::string own = "#include <math.h>\n#include <stdint.h>\n#include <string.h>\n";
  const std::string common =
      "#include <stdio.h>\n#include <stdlib.h>\n#include <errno.h>\n#include <limits.h>\n"
      "#include <float.h>\n#include <stddef.h>\n";
  const auto check = [](const std::string& name, bool has_parameters) {
    CAPTURE(name);
    if (!is_c_identifier(name)) return;
    CHECK((has_parameters ? is_c_library_name(name) : is_c_library_macro(name)));
  };
  for_each_macro(own + common, " -std=c99", check);
  for_each_macro(own + common, " -std=c11 -pedantic", check);
  CHECK_FALSE(is_c_library_macro("f"));
  CHECK_FALSE(is_c_library_macro("EMBEDDING"));
}

TEST_CASE("a name that no pointer gets is refused", "[export]") {
  Pair pair;
  const auto& outputs = pair.program.outputs();
  const CName gradient{"slope", outputs[2]};
  check_error([&] { export_c(pair.program, {.results = {gradient}, .optimizer = SgdOptions{}}); },
              {"[export_c]", "'slope' is a gradient", "an optimizer", "export_names_test.cpp"});
  CHECK(export_c(pair.program, {.results = {gradient}}).pointers[4].name == "slope");
  CHECK_NOTHROW(
      export_c(pair.program, {.results = {{"product", outputs[1]}}, .optimizer = SgdOptions{}}));
  check_error(
      [&] { export_c(pair.program, {.results = {{"product", outputs[1]}, {"same", outputs[1]}}}); },
      {"the output of the result 'same'", "has a name already"});
  check_error([&] { export_c(pair.program, {.arguments = {{"mask", pair.x}, {"same", pair.x}}}); },
              {"the value of the argument 'same' is listed already as"});
  check_error(
      [&] {
        export_c(pair.program, {.arguments = {{"weight", pair.lower}, {"same", pair.lower}}});
      },
      {"the value of the argument 'same' is listed already as"});
}

TEST_CASE("pointers have the order of the listed arguments, after parameters not listed",
          "[export]") {
  if (lacks_c_compiler()) return;
  Pair pair;
  const ExportedC exported =
      export_c(pair.program,
               {.arguments = {{"y", pair.y}, {"upper", pair.upper}, {"x", pair.x}}, .results = {}});
  std::vector<std::string> names;
  for (const CPointer& each : exported.pointers) names.push_back(each.name);
  CHECK(names == std::vector<std::string>{"w", "y", "upper", "x", "loss", "output_1",
                                          "gradient_of_w", "gradient_of_upper"});
  CHECK(exported.parameter_bytes == 16);
  const std::vector<Tensor> given = {Tensor::full({2}, 3), Tensor::full({2}, 7),
                                     Tensor::full({2}, 5), Tensor::full({2}, 11)};
  const CResult result = run_in_c({{exported, given}}).front();
  CHECK(result.tensors[4].item() == 2 * 3 * 7 * 5 * 11);
  CHECK(result.tensors[7].at(0) == 3 * 7 * 11);

  const ExportedC trained =
      export_c(pair.program,
               {.arguments = {{"x", pair.x}, {"lower", pair.lower}}, .optimizer = SgdOptions{}});
  CHECK(trained.pointers[0].name == "W");
  CHECK_FALSE(trained.pointers[1].is_written);
  CHECK(trained.pointers[2].name == "lower");
  CHECK(trained.pointers[2].is_written);
}

TEST_CASE("an output that is returned twice may have two names", "[export]") {
  const Program program = Program::values([](Tape& tape) {
    const Var x = tape.parameter(Tensor::ones({2}), "x") * 2.0;
    return std::vector<Var>{x, x};
  });
  const Var value = program.outputs()[0];
  const ExportedC exported = export_c(program, {.results = {{"one", value}, {"other", value}}});
  CHECK(exported.pointers[1].name == "one");
  CHECK(exported.pointers[2].name == "other");
}

}  // namespace
}  // namespace palimpsest::export_names_test
