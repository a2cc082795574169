// Instructions of native steps that are not fused groups.
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "palimpsest.h"
#include "strategy/compile/buffer_program.h"
#include "strategy/compile/native/native_program.h"
#include "strategy/compile/native/program_source.h"
#include "strategy/loops/loop_budgets.h"
#include "strategy/run/buffer_runner.h"
#include "tests/catch.h"
#include "tests/strategy/compile/native/native_results.h"

namespace palimpsest {
namespace {

/// A program on buffers. It has a native group, apart from the results that a test adds.
struct OnBuffers {
  std::shared_ptr<Tape> tape = std::make_shared<Tape>();
  std::vector<Var> arguments;
  std::vector<Var> results{tanh(argument({5}, DType::f32)) * 2.0};

  Var argument(const Tensor& value) {
    arguments.push_back(tape->parameter(value));
    return arguments.back();
  }
  Var argument(const Shape& shape, DType dtype) {
    return argument(numbers(shape, dtype, 1 + static_cast<double>(arguments.size())));
  }
  BufferProgramPtr compiled() const {
    BufferInterface interface{{}, {}, static_cast<NodeId>(tape->node_count())};
    for (const Var& each : arguments) interface.arguments.push_back(each.id());
    for (const Var& each : results) interface.results.push_back(each.id());
    LoopBudgets loops;
    return *compile_for_buffers(tape, interface, {.threads = 1}, loops);
  }
};

/// Runs a program.
class Runs {
 public:
  Runs(const BufferProgramPtr& program, NativeCode native)
      : memory_(static_cast<std::size_t>(program->workspace()) + 64),
        runner_(program, std::span(memory_).subspan(
                             64 - reinterpret_cast<std::uintptr_t>(memory_.data()) % 64)) {
    runner_.set_native(native);
  }
  /// The results of a program of the same structure, for the arguments and attributes of `from`.
  std::vector<Tensor> of(const OnBuffers& from) {
    std::vector<Tensor> made;
    std::vector<std::byte*> arguments;
    std::vector<std::byte*> results;
    for (const Var& each : from.arguments) {
      arguments.push_back(from.tape->buffer(each.id()).get());
    }
    for (const Var& each : from.results) {
      made.push_back(Tensor::full(each.shape(), 7, each.dtype()));
      results.push_back(made.back().raw());
    }
    runner_.run(*from.tape, arguments, results, 0);
    return made;
  }
  /// Whether one function carried out the last run, with or without calls of the executor.
  bool is_one_function() const { return runner_.executor().can_run_again(); }
  /// Later runs are those of a whole program, not of a step.
  void be_whole(RunControl* control) { runner_.set_control(control, true); }

 private:
  std::vector<std::byte> memory_;
  BufferRunner runner_;
};

void check_same(const std::vector<Tensor>& found, const std::vector<Tensor>& expected) {
  for (std::size_t i = 0; i < found.size(); ++i) {
    CAPTURE(i);
    CHECK(same_bits(found[i], expected[i]));
  }
}

/// Whether native code carries out the whole program without the executor. Checks that it runs, and
/// its bits.
bool is_complete(const OnBuffers& program) {
  const BufferProgramPtr compiled = program.compiled();
  Runs native(compiled, NativeCode::at_once);
  const std::vector<Tensor> found = native.of(program);
  CHECK(native.is_one_function());
  check_same(found, Runs(compiled, NativeCode::off).of(program));
  return program_source(*compiled->instructions(), *program.tape).is_complete;
}

TEST_CASE("small products need no call of the executor", "[native]") {
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const std::int64_t m : {1, 2, 7, 33, 100}) {
      for (const std::int64_t n : {1, 3, 20, 40}) {
        for (const std::int64_t k : {0, 1, 5, 24}) {
          for (const int transposed : {0, 1, 2, 3}) {
            CAPTURE(dtype, m, n, k, transposed);
            const bool of_a = transposed % 2 == 1;
            const bool of_b = transposed > 1;
            OnBuffers program;
            const Var a = program.argument(of_a ? Shape{k, m} : Shape{m, k}, dtype);
            const Var b = program.argument(of_b ? Shape{n, k} : Shape{k, n}, dtype);
            const Var c = program.argument({m, n}, dtype);
            // The second product is added to the third argument where the kernel can.
            const MatmulOptions options{of_a, of_b};
            program.results.push_back(matmul(a, b, options));
            program.results.push_back(matmul(a, b * 0.5, options) + c);
            // A group without elements has no code.
            CHECK(is_complete(program) == (k > 0));
          }
        }
      }
    }
  }
}

TEST_CASE("a prepared product serves only tapes with its transposes", "[native]") {
  const auto recorded = [](bool transpose_a, bool transpose_b) {
    OnBuffers program;
    const Var a = program.argument({12, 12}, DType::f64);
    const Var b = program.argument({12, 12}, DType::f64);
    program.results.push_back(matmul(a, b, {transpose_a, transpose_b}));
    return program;
  };
  const OnBuffers first = recorded(false, false);
  const BufferProgramPtr compiled = first.compiled();
  Runs native(compiled, NativeCode::at_once);
  Runs interpreted(compiled, NativeCode::off);
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      CAPTURE(transpose_a, transpose_b);
      const OnBuffers other = recorded(transpose_a, transpose_b);
      check_same(native.of(other), interpreted.of(other));
      CHECK(native.is_one_function() == (!transpose_a && !transpose_b));
    }
  }
}

TEST_CASE("short sums need no call of the executor", "[native]") {
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const std::int64_t n : {1, 2, 3, 32, 63, 64, 65, 300, 1024, 1025}) {
      CAPTURE(dtype, n);
      OnBuffers program;
      program.results.push_back(sum(program.argument({n}, dtype)));
      program.results.push_back(sum(program.argument(Tensor::full({n}, -0.0, dtype))));
      CHECK(is_complete(program) == (n <= 1024));
    }
  }
  OnBuffers rows;
  rows.results.push_back(sum(rows.argument({3, 20}, DType::f32), 1));
  CHECK_FALSE(is_complete(rows));
}

TEST_CASE("concatenations need no call of the executor", "[native]") {
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
    for (const std::size_t count : {2, 5, 17, 18}) {
      CAPTURE(dtype, count);
      OnBuffers program;
      std::vector<Var> parts;
      for (std::size_t i = 0; i < count; ++i) {
        parts.push_back(program.argument({1, static_cast<std::int64_t>(i)}, dtype));
      }
      program.results.push_back(concat(parts, 1));
      CHECK(is_complete(program) == (count - 1 <= 16));  // the first part is empty
    }
  }
  OnBuffers gaps;
  const Var x = gaps.argument({32}, DType::f64);
  const Var y = gaps.argument({8}, DType::f64);
  const Var z = gaps.argument({5}, DType::f64);
  const std::vector<Var> parts{slice(x, 0, {2, 10}), slice(x, 0, {20, 25})};
  gaps.results.push_back(vjp(parts, std::vector<Var>{x}, std::vector<Var>{y, z})[0]);
  CHECK(is_complete(gaps));
  OnBuffers columns;  // the parts are not contiguous
  columns.results.push_back(
      concat({columns.argument({4, 3}, DType::f32), columns.argument({4, 5}, DType::f32)}, 1));
  CHECK_FALSE(is_complete(columns));
}

TEST_CASE("other instructions are left to the executor", "[native]") {
  const auto check_left = [](const std::function<Var(OnBuffers&)>& record) {
    OnBuffers program;
    program.results.push_back(record(program));
    CHECK_FALSE(is_complete(program));
  };
  check_left([](OnBuffers& p) {
    return matmul(p.argument({100, 100}, DType::f32), p.argument({100, 100}, DType::f32));
  });
  check_left([](OnBuffers& p) {
    return matmul(p.argument({3, 4, 5}, DType::f64), p.argument({3, 5, 4}, DType::f64));
  });
  check_left([](OnBuffers& p) {
    return matmul(p.argument({4, 5}, DType::bf16), p.argument({5, 4}, DType::bf16));
  });
  check_left([](OnBuffers& p) { return sort(p.argument({20}, DType::f64)).values; });
}

TEST_CASE("long sums are added in the loop that makes their elements, unless it calls kernels",
          "[native]") {
  const auto has_direct_sums = [](const std::function<Var(const Var&)>& f) {
    OnBuffers program;
    program.results = {sum(f(program.argument({5'000}, DType::f64)))};
    const BufferProgramPtr compiled = program.compiled();
    const std::string text = program_source(*compiled->instructions(), *program.tape).text;
    return text.find("_sums(") != std::string::npos;
  };
  CHECK(has_direct_sums([](const Var& x) { return x * x + 1.0; }));
  CHECK_FALSE(has_direct_sums([](const Var& x) { return exp(x) + 1.0; }));
  CHECK_FALSE(has_direct_sums([](const Var& x) { return x + roll(x, 1, 0); }));
}

/// The C code of a program that makes the result of `f`.
std::string text_for(const std::function<Var(OnBuffers&)>& f) {
  OnBuffers program;
  program.results = {f(program)};
  return program_source(*program.compiled()->instructions(), *program.tape).text;
}

TEST_CASE("a long shifted range begins with a cache line", "[native]") {
  const auto calls_with = [](std::int64_t count, DType dtype) {
    const std::string text = text_for([&](OnBuffers& program) {
      const Var x = program.argument({1'000}, dtype);
      return x - roll(x, 1, 0);
    });
    return text.find("(" + std::to_string(count) + ", ") != std::string::npos;
  };
  CHECK(calls_with(7, DType::f64));
  CHECK(calls_with(992, DType::f64));
  CHECK(calls_with(15, DType::f32));
  CHECK(calls_with(984, DType::f32));
  CHECK_FALSE(calls_with(999, DType::f64));
  // Rows of a grid begin alike.
  const auto grid = [](std::int64_t columns) {
    return text_for([&](OnBuffers& program) {
      const Var x = program.argument({3, columns}, DType::f64);
      return x - roll(x, 1, 1);
    });
  };
  CHECK(grid(1'000).find("(992, ") != std::string::npos);
  CHECK(grid(1'001).find("(1000, ") != std::string::npos);
  // Strip by strip, since a kernel is called between the stages.
  const std::string strips = text_for([](OnBuffers& program) {
    const Var x = program.argument({9'000}, DType::f64);
    return exp(x - roll(x, 1, 0));
  });
  CHECK(strips.find("smallest(end - base, 7)") != std::string::npos);
  CHECK(strips.find("smallest(end - base, 8992)") != std::string::npos);
}

TEST_CASE("derivatives of sigmoid and tanh are part of a loop", "[native]") {
  for (const bool is_tanh : {false, true}) {
    CAPTURE(is_tanh);
    const std::string text = text_for([&](OnBuffers& program) {
      const Var x = program.argument({1'000}, DType::f64);
      return gradient(sum(is_tanh ? tanh(x) : sigmoid(x)), x) * 2.0;
    });
    const std::string call = "(pointwise_kernel)table[";
    const std::size_t first = text.find(call);
    REQUIRE(first != std::string::npos);
    CHECK(text.find(call, first + 1) == std::string::npos);
  }
}

TEST_CASE("short rows that repeat are written by vectors", "[native]") {
  const auto has_vectors = [](const Shape& shape, const Shape& row, DType dtype) {
    const std::string text = text_for([&](OnBuffers& program) {
      return program.argument(shape, dtype) - program.argument(row, dtype);
    });
    return text.find(" = REPEATED(") != std::string::npos;
  };
  CHECK(has_vectors({900, 5, 2}, {900, 1, 2}, DType::f64));
  CHECK(has_vectors({900, 5}, {900, 1}, DType::f64));
  CHECK(has_vectors({900, 5, 4}, {900, 1, 4}, DType::f32));
  CHECK(has_vectors({900, 49}, {900, 1}, DType::f32));
  // A vector may end 15 elements beyond its row, and buffers have room for 64.
  CHECK_FALSE(has_vectors({900, 50}, {900, 1}, DType::f32));
  // Pairs are not longer than the smallest vector, and three numbers do not divide it.
  CHECK_FALSE(has_vectors({900, 2}, {900, 1}, DType::f64));
  CHECK_FALSE(has_vectors({900, 5, 3}, {900, 1, 3}, DType::f64));
}

TEST_CASE("a whole program is one function unless it is watched", "[native]") {
  const OnBuffers program;
  Runs runs(program.compiled(), NativeCode::at_once);
  RunControl control({}, nullptr, 1);
  for (const bool is_watched : {false, true}) {
    runs.be_whole(is_watched ? &control : nullptr);
    const std::vector<Tensor> found = runs.of(program);
    CHECK(runs.is_one_function() == !is_watched);
    check_same(found, Runs(program.compiled(), NativeCode::off).of(program));
  }
}

TEST_CASE("equal groups count once towards the time that compiling takes", "[native]") {
  const auto runs_before_code = [](int groups, bool are_equal = true) {
    OnBuffers made;
    const Var x = made.argument({1'000 + groups}, DType::f64);
    Var y = slice(x, 0, {.stop = 1'000});
    for (int i = 0; i < groups; ++i) {
      const std::int64_t first = are_equal ? 0 : i;
      const Var other = slice(x, 0, {.start = first, .stop = first + 1'000});
      y = cumsum(tanh(y) * 0.5 + other, 0);
    }
    made.results = {y};
    const BufferProgramPtr program = made.compiled();
    const Instructions& instructions = *program->instructions();
    const std::shared_ptr<NativeProgram> native = NativeProgram::of(instructions);
    int runs = 0;
    const auto service = [&] {
      return native->service_for(instructions, program->tape(), NativeCode::automatic);
    };
    while (!service().is_timed) ++runs;
    return runs;
  };
  const int one = runs_before_code(1);
  const int many = runs_before_code(300);
  CHECK(300 * many <= 1.1 * one);
  CHECK(runs_before_code(300, false) >= 1.4 * many);
}

}  // namespace
}  // namespace palimpsest
