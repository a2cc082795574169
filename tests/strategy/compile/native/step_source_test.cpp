// Instructions of native steps that are not fused groups.
#include <memory>
#include <span>
#include <vector>

#include "palimpsest.h"
#include "strategy/compile/buffer_program.h"
#include "strategy/compile/native/program_source.h"
#include "strategy/loops/loop_budgets.h"
#include "strategy/run/buffer_runner.h"
#include "tests/catch.h"
#include "tests/strategy/compile/native/native_results.h"

namespace palimpsest {
namespace {

/// A program on buffers, and what a run of it returns.
struct OnBuffers {
  std::shared_ptr<Tape> tape = std::make_shared<Tape>();
  std::vector<Var> arguments;
  std::vector<Var> results;

  Var argument(const Shape& shape, DType dtype) {
    const auto shift = static_cast<double>(arguments.size());
    arguments.push_back(tape->parameter(numbers(shape, dtype, 1 + shift)));
    return arguments.back();
  }
  BufferProgramPtr compiled() const {
    BufferInterface interface{{}, {}, static_cast<NodeId>(tape->node_count())};
    for (const Var& each : arguments) interface.arguments.push_back(each.id());
    for (const Var& each : results) interface.results.push_back(each.id());
    LoopBudgets loops;
    return *compile_for_buffers(tape, interface, {.threads = 1}, loops);
  }
  std::vector<Tensor> run(const BufferProgramPtr& program, NativeCode native) const {
    std::vector<std::byte> memory(static_cast<std::size_t>(program->workspace()) + 64);
    const std::size_t skipped = 64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64;
    BufferRunner runner(program, std::span(memory).subspan(skipped));
    runner.set_native(native);
    std::vector<Tensor> made;
    std::vector<std::byte*> from;
    std::vector<std::byte*> to;
    for (const Var& each : arguments) from.push_back(tape->buffer(each.id()).get());
    for (const Var& each : results) {
      made.push_back(Tensor::zeros(each.shape(), each.dtype()));
      to.push_back(made.back().raw());
    }
    for (std::uint32_t round = 0; round < 2; ++round) runner.run(from, to, round);
    return made;
  }
  /// Whether native code carries out the whole program. Checks its bits.
  bool is_complete() const {
    const BufferProgramPtr program = compiled();
    const std::vector<Tensor> expected = run(program, NativeCode::off);
    const std::vector<Tensor> found = run(program, NativeCode::at_once);
    for (std::size_t i = 0; i < found.size(); ++i) CHECK(same_bits(found[i], expected[i]));
    return program_source(*program->instructions(), *tape, false).is_complete;
  }
};

TEST_CASE("small products need no call of the executor", "[native]") {
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const std::int64_t m : {1, 2, 7, 33}) {
      for (const std::int64_t k : {1, 5, 24}) {
        for (const int transposed : {0, 1, 2, 3}) {
          CAPTURE(dtype, m, k, transposed);
          const bool of_a = transposed % 2 == 1;
          const bool of_b = transposed > 1;
          OnBuffers program;
          const Var a = program.argument(of_a ? Shape{k, m} : Shape{m, k}, dtype);
          const Var b = program.argument(of_b ? Shape{40, k} : Shape{k, 40}, dtype);
          const Var c = program.argument({m, 40}, dtype);
          // The second product is added to the first.
          const MatmulOptions options{of_a, of_b};
          program.results = {matmul(a, b, options) + matmul(a, 0.5 * b, options) + tanh(c)};
          CHECK(program.is_complete());
        }
      }
    }
  }
}

TEST_CASE("short sums and concatenations need no call of the executor", "[native]") {
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const std::int64_t n : {1, 2, 3, 32, 63, 64, 65, 300, 1000}) {
      CAPTURE(dtype, n);
      OnBuffers program;
      const Var x = program.argument({1, n}, dtype);
      const Var y = program.argument({1, 8}, dtype);
      const Var weight = program.argument({n + 8, 8}, dtype);
      const Var both = concat({x * x, y}, 1);
      program.results = {sum(x) + 1.0, matmul(both, weight)};
      CHECK(program.is_complete());
    }
  }
}

TEST_CASE("other instructions are left to the executor", "[native]") {
  OnBuffers large;
  large.results = {
      matmul(large.argument({100, 100}, DType::f32), large.argument({100, 100}, DType::f32)) + 1.0};
  CHECK_FALSE(large.is_complete());
  OnBuffers batch;
  batch.results = {
      matmul(batch.argument({3, 4, 5}, DType::f64), batch.argument({3, 5, 4}, DType::f64)) + 1.0};
  CHECK_FALSE(batch.is_complete());
  OnBuffers half;
  half.results = {matmul(half.argument({4, 5}, DType::bf16), half.argument({5, 4}, DType::bf16)) +
                  1.0};
  CHECK_FALSE(half.is_complete());
  OnBuffers sorted;
  sorted.results = {sort(sorted.argument({20}, DType::f64)).values + 1.0};
  CHECK_FALSE(sorted.is_complete());
}

}  // namespace
}  // namespace palimpsest
