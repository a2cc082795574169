#include <cmath>

#include "autodiff/files.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/functions/unary_functions.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/linalg.h"
#include "autodiff/operations/normalization.h"
#include "autodiff/operations/random.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/unary.h"
#include "checkpoint/checkpoint.h"
#include "strategy/export/c_text.h"
#include "strategy/export/export_c.h"
#include "strategy/loops/scan.h"
#include "strategy/loops/while_loop.h"
#include "tests/catch.h"
#include "tests/error_of.h"
#include "tests/temporary_directory.h"

namespace palimpsest::export_errors_test {
namespace {

/// A program of a parameter `w` and a constant.
struct Small {
  Var weight, x;
  Program program = Program::gradients([this](Tape& tape) {
    weight = tape.parameter(Tensor::ones({3}), "w");
    x = tape.constant(Tensor::ones({3}));
    return sum(weight * x);
  });
};

TEST_CASE("names must be C identifiers, and differ", "[export]") {
  Small small;
  const auto check = [&](ExportOptions options, std::initializer_list<std::string> words) {
    check_error([&] { export_c(small.program, options); }, words);
  };
  check({.name = "2nd"}, {"[export_c]", "'2nd' is no C identifier", "export_errors_test.cpp"});
  check({.name = ""}, {"'' is no C identifier"});
  check({.name = "for"}, {"'for' is no C identifier"});
  check({.name = "a-b"}, {"'a-b' is no C identifier"});
  check({.arguments = {{"x y", small.x}}}, {"argument name 'x y' is no C identifier"});
  check({.name = "step"}, {"'step' has another meaning in C"});  // glibc exports it
  check({.arguments = {{"program", small.x}}}, {"'program' is used twice or has another meaning"});
  check({.arguments = {{"int32_t", small.x}}}, {"'int32_t' is used twice"});
  check({.arguments = {{"a", small.x}, {"a", small.weight}}}, {"'a' is used twice"});
  check({.results = {{"value", small.weight}}},
        {"'value' is no output of the program", "return it from the recorded function"});
  check({.results = {{"value", Var()}}}, {"'value' is no output"});
  check({.arguments = {{"loss", small.program.outputs()[0]}}},
        {"'loss' is no leaf of the program"});
  check({.arguments = {{"loss", Var()}}}, {"'loss' is no leaf"});
  check({.memory_budget = -1}, {"the budget is -1 bytes"});
}

TEST_CASE("names that are not given are made from those on the tape", "[export]") {
  const Program program = Program::gradients([&](Tape& tape) {
    const auto scope = tape.scope("layer/1");
    const Var a = tape.parameter(Tensor::ones({2}), "weight");
    const Var b = tape.parameter(Tensor::ones({2}));
    const Var c = tape.parameter(Tensor::ones({2}), "weight");
    return LossAndOutputs{sum(a * b * c), {a * b}};
  });
  const ExportedC exported = export_c(program, {.results = {{"product", program.outputs()[1]}}});
  std::vector<std::string> names;
  for (const CPointer& pointer : exported.pointers) names.push_back(pointer.name);
  CHECK(names == std::vector<std::string>{
                     "layer_1_weight", "layer_1_parameter_1", "layer_1_weight_2", "loss", "product",
                     "gradient_of_layer_1_weight", "gradient_of_layer_1_parameter_1",
                     "gradient_of_layer_1_weight_2"});
}

TEST_CASE("what C cannot express is refused by name", "[export]") {
  const auto error = [](auto f) {
    return error_of([&] {
      const Program program = Program::values([&](Tape& tape) {
        return std::vector<Var>{f(tape.parameter(Tensor::ones({2, 2}, DType::f64), "x"))};
      });
      export_c(program);
    });
  };
  using Catch::Matchers::Contains;
  const std::string of_eigh = error([](const Var& x) { return eigh(x).values; });
  CHECK_THAT(of_eigh, Contains("[export_c] the operation eigh,"));
  CHECK_THAT(of_eigh, Contains("cannot be exported; docs/export-c.md"));
  CHECK_THAT(of_eigh, Contains("export_errors_test.cpp:"));
  CHECK_THAT(error([](const Var& x) { return dropout(x, 0.5); }),
             Contains("the operation dropout"));
  const std::string of_half = error([](const Var& x) { return tanh(cast(x, DType::bf16)); });
  CHECK_THAT(of_half, Contains("bf16 (2, 2)"));
  CHECK_THAT(of_half, Contains("exported are f32, f64, i32, i64 and bool, so cast it first"));
  const auto step = [](const Var& x, const StepNumber&) { return tanh(x); };
  CHECK_THAT(error([&](const Var& x) { return scan(x, 9, step); }),
             Contains("the operation scan, #") && Contains("record the steps on the tape"));
  const auto goes_on = [](const Var& x) { return sum(x) < 100.0; };
  CHECK_THAT(error([&](const Var& x) {
               return while_loop(x, goes_on,
                                 [](const Var& y, const StepNumber&) { return y * 2.0; });
             }),
             Contains("the operation while_loop, #") && Contains("as many steps on the tape"));
  CHECK_THAT(
      error([](const Var& x) { return checkpoint([](const Var& y) { return exp(tanh(y)); }, x); }),
      Contains("the operation checkpoint,") &&
          Contains("call its function without checkpoint; the plan of the C function") &&
          Contains("ExportOptions::memory_budget"));
  CHECK(error([](const Var& x) { return tanh(x); }).empty());
}

TEST_CASE("an unsupported operation that no output needs is no obstacle", "[export]") {
  const Program program = Program::values([](Tape& tape) {
    const Var x = tape.parameter(Tensor::ones({2, 2}, DType::f64));
    eigh(x);
    return std::vector<Var>{x * 2.0};
  });
  CHECK_NOTHROW(export_c(program));
}

TEST_CASE("a parameter of 16 bits is refused even where no output needs it", "[export]") {
  const Program program = Program::values([](Tape& tape) {
    tape.parameter(Tensor::ones({3}, DType::bf16), "narrow");
    return std::vector<Var>{tape.parameter(Tensor::ones({2}, DType::f64), "wide") * 2.0};
  });
  const std::string error = error_of([&] { export_c(program); });
  using Catch::Matchers::Contains;
  CHECK_THAT(error, Contains("[export_c] the parameter narrow is bf16 (3)"));
  CHECK_THAT(error, Contains("so record another dtype"));
  CHECK_THAT(error, Contains("export_errors_test.cpp:"));
}

TEST_CASE("constants that no output needs are not exported", "[export]") {
  const Program program = Program::values([](Tape& tape) {
    const Var unused = tape.constant(Tensor::ones({4}, DType::f64), "unused");
    tanh(unused);
    tanh(tape.constant(Tensor::ones({3}, DType::f16)));
    const Var used = tape.constant(Tensor::ones({2}, DType::f64), "used");
    return std::vector<Var>{tape.parameter(Tensor::ones({2}, DType::f64)) * used};
  });
  const ExportedC exported = export_c(program);
  CHECK(exported.constant_bytes == 16);
  CHECK(exported.source.find("program_used") != std::string::npos);
  CHECK(exported.source.find("unused") == std::string::npos);
}

TEST_CASE("optimizers are exported for gradients, and without groups", "[export]") {
  Small small;
  const Program values = Program::values(
      [](Tape& tape) { return std::vector<Var>{tape.parameter(Tensor::ones({3}))}; });
  check_error([&] { export_c(values, {.optimizer = SgdOptions{}}); },
              {"the program computes only values", "Program::gradients()"});
  AdamOptions grouped;
  grouped.groups.push_back({[](const ParameterInfo&) { return true; }, {}});
  check_error([&] { export_c(small.program, {.optimizer = grouped}); },
              {"1 groups of parameters", "export without groups"});
  check_error([&] { export_c(small.program, {.optimizer = SgdOptions{.momentum = 2}}); },
              {"[sgd] momentum"});
}

TEST_CASE("programs that update tensors are refused", "[export]") {
  const Program program = Program::gradients([](Tape& tape) {
    const Var x = tape.parameter(Tensor::ones({4, 2}));
    tape.update_after_run(Tensor::zeros({2}), mean(x, {0}));
    return sum(x);
  });
  check_error([&] { export_c(program); }, {"updates 1 tensors after its run"});
}

TEST_CASE("files are written whole", "[export]") {
  Small small;
  const ExportedC exported = export_c(small.program, {.name = "whole"});
  const TemporaryDirectory folder;
  write_files(exported, folder.path());
  CHECK(read_file(folder.path() + "/whole.h", "test") == exported.header);
  CHECK(read_file(folder.path() + "/whole.c", "test") == exported.source);
  CHECK(folder.files().size() == 2);
  CHECK_THROWS_AS(write_files(exported, folder.path() + "/missing"), FileError);
}

TEST_CASE("literals are read as the same numbers", "[export]") {
  CHECK(c_literal(1.0, DType::f32) == "1.0f");
  CHECK(c_literal(-0.1, DType::f64) == "(-0.1)");
  CHECK(c_literal(-0.0, DType::f64) == "(-0.0)");
  CHECK(c_literal(1e300, DType::f64) == "1e+300");
  CHECK(c_literal(1e300, DType::f32) == "INFINITY");
  CHECK(c_literal(std::nan(""), DType::f64) == "NAN");
  CHECK(c_literal(2.7, DType::i32) == "2");
  CHECK(c_literal(-3e20, DType::i64) == "INT64_MIN");
  CHECK(c_literal(-3e20, DType::i32) == "INT32_MIN");
  CHECK(c_literal(0.5, DType::boolean) == "1");
  CHECK(filled("$a + $bc", {{"a", 1}, {"bc", "x"}}) == "1 + x");
  CHECK_THROWS_AS(filled("$missing", {}), InternalError);
  CHECK(with_prefix("@a(@@B)", "n") == "n_a(N_B)");
  CHECK(c_identifier("layer3/weight") == "layer3_weight");
  CHECK(c_identifier("3") == "x_3");
  CHECK(c_identifier("class") == "x_class");
  CHECK(mentions("f(x1, y)", "y"));
  CHECK_FALSE(mentions("f(x1, y)", "x"));
  CHECK_FALSE(mentions("f(my, y1)", "y"));
}

}  // namespace
}  // namespace palimpsest::export_errors_test
