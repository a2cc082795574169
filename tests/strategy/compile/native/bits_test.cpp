// Native code has the bits of the interpreter.
#include <functional>
#include <string>
#include <vector>

#include "palimpsest.h"
#include "tests/catch.h"
#include "tests/strategy/compile/native/native_results.h"
#include "tests/strategy/random_program.h"

namespace palimpsest {
namespace {

using Program = std::function<std::vector<Var>(Tape&)>;

struct Result {
  std::vector<Tensor> values;
  Report report;
};

Result run(const Program& program, RunOptions options) {
  Tape tape;
  std::vector<Var> outputs = program(tape);
  Result result;
  result.report = evaluate(outputs, options);
  for (const Var& each : outputs) result.values.push_back(each.value().clone());
  return result;
}

/// Compares native code with the interpreter, on one thread and two. At least `groups` fused groups
/// must be native.
void check_bits(const Program& program, std::uint32_t groups = 1) {
  for (const int threads : {1, 2}) {
    const Result expected = run(program, {.threads = threads, .native = NativeCode::off});
    const Result found = run(program, {.threads = threads, .native = NativeCode::at_once});
    REQUIRE(found.values.size() == expected.values.size());
    for (std::size_t i = 0; i < found.values.size(); ++i) {
      INFO("output " << i << ", " << threads << " threads");
      CHECK(same_values(found.values[i], expected.values[i]));
    }
    INFO(found.report.native.problem);
    CHECK(found.report.native.groups >= groups);
    CHECK(expected.report.native.groups == 0);
  }
}

TEST_CASE("elementwise groups", "[native]") {
  for (const DType dtype : {DType::f64, DType::f32}) {
    CAPTURE(name_of(dtype));
    const auto append = [&](Tape& tape, std::int64_t n, std::vector<Var>& results) {
      const Var a = tape.constant(numbers({n}, dtype));
      const Var b = tape.constant(numbers({n}, dtype, 1));
      const Var c = tape.constant(numbers({1}, dtype, 2));
      const Var x = (a + 2.0) * b - c * a + (3.0 - b) / 1.7;
      const Var y = relu(x) * square(a) - abs(b) / (x * x + 1.0);
      const Var z = sqrt(abs(y)) + rsqrt(square(a) + 1.0) + sign(b) + reciprocal(a);
      results.insert(results.end(), {x * 1.5, y - z, where(greater(a, b), z, -z)});
    };
    check_bits(
        [&](Tape& tape) {
          std::vector<Var> results;
          for (const std::int64_t n : {1, 7, 1'000, 300'000}) append(tape, n, results);
          return results;
        },
        4);
  }
}

TEST_CASE("functions between formulas call the level's kernels", "[native]") {
  for (const DType dtype : {DType::f64, DType::f32}) {
    CAPTURE(name_of(dtype));
    const auto append = [&](Tape& tape, std::int64_t n, std::vector<Var>& results) {
      const Var a = tape.constant(numbers({n}, dtype));
      const Var b = tape.constant(numbers({1}, dtype, 1));
      const Var x = exp(a * 0.1) - tanh(a + b) * sin(a * 2.0 + 1.0);
      results.insert(results.end(),
                     {pow(abs(x) + 1.0, 1.5) + maximum(x, b), clamp(x, -1, 1) * 2.0});
    };
    check_bits(
        [&](Tape& tape) {
          std::vector<Var> results;
          for (const std::int64_t n : {5, 1'000, 5'000, 200'000}) append(tape, n, results);
          return results;
        },
        4);
  }
}

TEST_CASE("derivatives of functions", "[native]") {
  using Function = Var (*)(const Var&);
  const Function functions[] = {
      [](const Var& x) { return sigmoid(x); }, [](const Var& x) { return tanh(x); },
      [](const Var& x) { return exp2(x); },    [](const Var& x) { return expm1(x); },
      [](const Var& x) { return log1p(x); },   [](const Var& x) { return logit(sigmoid(x)); },
      [](const Var& x) { return square(x); },  [](const Var& x) { return sqrt(abs(x)); },
      [](const Var& x) { return rsqrt(x); },   [](const Var& x) { return reciprocal(x); },
      [](const Var& x) { return relu(x); }};
  for (const DType dtype : {DType::f64, DType::f32}) {
    CAPTURE(name_of(dtype));
    check_bits(
        [&](Tape& tape) {
          std::vector<Var> results;
          for (const std::int64_t n : {5, 1'000}) {
            const Var x = tape.parameter(numbers({n}, dtype) * 0.2);
            const Var weight = tape.constant(numbers({n}, dtype, 1));
            for (const Function f : functions) {
              results.push_back(gradient(sum(f(x) * weight), x) - 1.0);
            }
          }
          return results;
        },
        4);
  }
}

TEST_CASE("integers and casts", "[native]") {
  for (const DType dtype : {DType::i64, DType::i32}) {
    CAPTURE(name_of(dtype));
    check_bits([&](Tape& tape) {
      const Var a = tape.constant(numbers({3'000}, dtype));
      const Var b = tape.constant(numbers({3'000}, dtype, 1));
      const Var x = a * b + a - b;
      const Var y = cast(x, DType::f32) * 0.5 + cast(cast(a, DType::f64), DType::f32);
      return std::vector<Var>{x * x, y, where(less_equal(a, b), x, a)};
    });
  }
}

// A compiler may vectorize the last elements of a loop, or all elements of a short one, by itself.
TEST_CASE("narrow integers and bools are compared and summed", "[native]") {
  for (const DType dtype : {DType::i16, DType::i8, DType::u8, DType::boolean}) {
    CAPTURE(name_of(dtype));
    check_bits([&](Tape& tape) {
      const Tensor ramp = Tensor::arange(6000);
      const Var a = tape.constant(ramp.to(dtype).reshape({60, 100}));
      const Var b =
          tape.constant((ramp * Tensor::full({}, 7, ramp.dtype())).to(dtype).reshape({60, 100}));
      const Var chosen = where(less(a, b), a, b);
      return std::vector{sum(chosen),           sum(chosen, {0}),
                         sum(chosen, {1}),      sum(greater_equal(a, b), {1}),
                         any(equal(a, b), {1}), all(not_equal(a, b), {0})};
    });
  }
}

TEST_CASE("an f64 is rounded to f32 and back in loops of any length", "[native]") {
  check_bits(
      [](Tape& tape) {
        std::vector<Var> results;
        for (const std::int64_t n : {2, 3, 7, 14, 19, 35, 62, 67}) {
          const Var a = tape.constant(numbers({n}, DType::f64, 1));
          const Var narrow = cast(tanh(a * 0.1), DType::f32);
          const Var rounded = cast(narrow, DType::f64);
          const Var product = cast(cast(exp(a * 0.1) * 1.3, DType::f32), DType::f64);
          results.insert(results.end(), {tanh(rounded), product * product - a,
                                         exp(cast(product * 1.1, DType::f32))});
        }
        return results;
      },
      8);
}

TEST_CASE("shifted reads become ranges", "[native]") {
  const auto append = [](Tape& tape, std::int64_t n, std::vector<Var>& results) {
    const Var u = tape.constant(numbers({n}, DType::f64));
    const Var left = roll(u, 1, 0);
    const Var x = u - 0.3 * (u - left) + 0.1 * (roll(u, -1, 0) - 2.0 * u + left);
    const Var inner = x[Slice{1, n - 1}] * 2.0 - x[Slice{0, n - 2}];
    results.insert(results.end(), {x + exp(left), pad(inner, {{1, 1}}) * 3.0 + x});
  };
  check_bits(
      [&](Tape& tape) {
        std::vector<Var> results;
        for (const std::int64_t n : {3, 17, 1'000, 100'000}) append(tape, n, results);
        return results;
      },
      4);
}

TEST_CASE("long shifted ranges begin with cache lines", "[native]") {
  for (const DType dtype : {DType::f64, DType::f32, DType::i32}) {
    CAPTURE(name_of(dtype));
    check_bits(
        [&](Tape& tape) {
          std::vector<Var> results;
          for (const std::int64_t n : {128, 135, 160, 999, 1'000}) {
            const Var x = tape.constant(numbers({n}, dtype));
            const Var grid = tape.constant(numbers({3, n}, dtype));
            for (const std::int64_t shift : {1, 7, 8, 17}) {
              const Var apart = x - roll(x, shift, 0);
              results.push_back(cast(apart, DType::f64) * 0.5);
              results.push_back(grid + roll(grid, -shift, 1) + roll(grid, 1, 0));
            }
          }
          return results;
        },
        10);
  }
}

TEST_CASE("stencils in two and three dimensions", "[native]") {
  check_bits([&](Tape& tape) {
    const Var u = tape.constant(numbers({33, 40}, DType::f64));
    const Var row = tape.constant(numbers({40}, DType::f64, 1));
    const Var column = tape.constant(numbers({33, 1}, DType::f64, 2));
    const Var around = roll(u, 1, 0) + roll(u, -1, 0) + roll(u, 1, 1) + roll(u, -1, 1) - 4.0 * u;
    const Var x = u * row + around * column - tanh(u) * row;
    return std::vector<Var>{
        x, u[{Slice{1, 32}, Slice{2, 39}}] * 2.0 + x[{Slice{0, 31}, Slice{3, 40}}]};
  });
  check_bits([&](Tape& tape) {
    const Var u = tape.constant(numbers({12, 20, 32}, DType::f32));
    const Var plane = tape.constant(numbers({20, 1}, DType::f32, 1));
    const Var x = u * plane + roll(u, 2, 0) - roll(u, 1, 1) * 0.5;
    return std::vector<Var>{x * 2.0, x[{Slice{1, 11}, Slice{1, 19}, Slice{1, 31}}] + 1.0};
  });
}

TEST_CASE("concatenation and padding", "[native]") {
  check_bits([&](Tape& tape) {
    const Var a = tape.constant(numbers({700}, DType::f32));
    const Var b = tape.constant(numbers({300}, DType::f32, 1));
    const Var c = tape.constant(numbers({1'000}, DType::f32, 2));
    return std::vector<Var>{concat({a, b}, 0) * c + 1.0, concat({b, a}, 0) - exp(c)};
  });
}

TEST_CASE("reductions keep the order of their sums", "[native]") {
  // All numbers are finite: a NaN would hide the order.
  const auto append_sums = [](Tape& tape, DType dtype, std::int64_t n, std::vector<Var>& results) {
    const Var a = tape.constant(numbers({n}, dtype, 1));
    const Var b = tape.constant(numbers({n}, dtype, 2));
    results.insert(results.end(), {sum(a * b + 0.5), max(a - b), mean(a * 0.25 - exp(b * 0.1))});
  };
  const auto append_rows = [](Tape& tape, DType dtype, std::int64_t columns,
                              std::vector<Var>& results) {
    const Var a = tape.constant(numbers({37, columns}, dtype, 1));
    const Var b = tape.constant(numbers({37, columns}, dtype, 2));
    const Var product = a * b + 1.0;
    results.insert(results.end(), {sum(product, {1}), product, mean(abs(a - b), {1})});
  };
  for (const DType dtype : {DType::f64, DType::f32}) {
    CAPTURE(name_of(dtype));
    check_bits(
        [&](Tape& tape) {
          std::vector<Var> results;
          for (const std::int64_t n : {64, 100, 1'000, 70'000, 1'000'000}) {
            append_sums(tape, dtype, n, results);
          }
          for (const std::int64_t columns : {65, 200, 3'000}) {
            append_rows(tape, dtype, columns, results);
          }
          return results;
        },
        8);
  }
  check_bits([&](Tape& tape) {
    const Var a = tape.constant(numbers({40'000}, DType::i64));
    return std::vector<Var>{sum(a * a + 1)};
  });
}

TEST_CASE("long sums are added as their elements are computed", "[native]") {
  const auto sums_of = [](const Var& a, const Var& b) {
    const Var x = a * b + a;
    const Var y = x * b - a;
    return std::vector<Var>{sum(x, {1}), sum(x * a, {1}), y, sum(y, {1}), sum(b - a, {1})};
  };
  for (const DType dtype : {DType::f64, DType::f32, DType::i64, DType::i32}) {
    for (const Shape& shape : {Shape{1, 1'100}, Shape{3, 5'003}, Shape{2, 100'000}}) {
      CAPTURE(name_of(dtype), to_string(shape));
      check_bits([&](Tape& tape) {
        const auto values = [&](std::uint64_t seed) {
          return tape.constant(Tensor::uniform(shape, seed, -9, 9, DType::f64).to(dtype));
        };
        return sums_of(values(1), values(2));
      });
    }
  }
  for (const int count : {4, 8}) {  // strips of 512 and of 256 elements
    check_bits([&](Tape& tape) {
      const Var a = tape.constant(numbers({2, 30'000}, DType::f64, 1));
      const Var b = a * a;
      std::vector<Var> sums;
      for (int i = 1; i <= count; ++i) sums.push_back(sum(b - a * (0.1 * i), {1}));
      return sums;
    });
  }
  check_bits([&](Tape& tape) {  // an output that takes the place of an input
    const Var u = cumsum(tape.constant(numbers({2, 30'000}, DType::f64, 1)), 1);
    const Var y = u * 2.0 - 1.0;
    return std::vector<Var>{sum(y, {1}), y};
  });
  check_bits([&](Tape& tape) {  // sums of both widths
    const Var a = tape.constant(Tensor::normal({2, 40'000}, 1, 0, 1, DType::f32));
    const Var x = cast(a * a + 1.0, DType::f64) * 0.1;
    return std::vector<Var>{sum(a * 3.0 - 1.0, {1}), sum(x, {1}), cast(x, DType::f32)};
  });
}

TEST_CASE("random programs and their gradients", "[native]") {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    CAPTURE(seed);
    std::vector<Tensor> expected;
    for (const NativeCode native : {NativeCode::off, NativeCode::at_once}) {
      Tape tape;
      const RandomProgram program = record_random(tape, seed, 40);
      const Gradients gradients = backward(program.loss, {.threads = 2, .native = native});
      std::size_t i = 0;
      for (const Var& parameter : program.parameters) {
        const Tensor found = gradients[parameter].clone();
        if (native == NativeCode::off) {
          expected.push_back(found);
        } else {
          CHECK(same_values(found, expected[i++]));
        }
      }
    }
  }
}

}  // namespace
}  // namespace palimpsest
