// Reads along axes of a few elements: native code copies them to buffers, row by row.
#include <functional>
#include <utility>
#include <vector>

#include "palimpsest.h"
#include "tests/catch.h"
#include "tests/strategy/compile/native/native_results.h"

namespace palimpsest {
namespace {

using Record = std::function<std::vector<Var>(Tape&)>;

std::vector<Tensor> values_of(const Record& record, const RunOptions& options, Report* report) {
  Tape tape;
  std::vector<Var> outputs = record(tape);
  *report = evaluate(outputs, options);
  std::vector<Tensor> values;
  for (const Var& each : outputs) values.push_back(each.value().clone());
  return values;
}

/// Native code of all groups has the bits of the interpreter, on one thread and two.
void check_short_axes(const Record& record) {
  for (const int threads : {1, 2}) {
    CAPTURE(threads);
    Report interpreted;
    Report native;
    const auto expected =
        values_of(record, {.threads = threads, .native = NativeCode::off}, &interpreted);
    const auto found =
        values_of(record, {.threads = threads, .native = NativeCode::at_once}, &native);
    for (std::size_t i = 0; i < found.size(); ++i) {
      INFO("output " << i);
      CHECK(same_values(found[i], expected[i]));
    }
    INFO(native.native.problem);
    CHECK(native.native.groups > 0);
    CHECK(native.native.groups == native.groups);
  }
}

TEST_CASE("broadcasts along short axes", "[native]") {
  for (const DType dtype : {DType::f64, DType::f32, DType::i64}) {
    CAPTURE(name_of(dtype));
    check_short_axes([&](Tape& tape) {
      std::vector<Var> results;
      // Rows that do and do not divide the strips; few rows, and more than have ranges of their
      // own.
      const std::vector<std::pair<std::int64_t, std::int64_t>> shapes{
          {4, 3}, {701, 5}, {20'001, 3}, {300, 63}, {90, 65}};
      for (const auto& [rows, columns] : shapes) {
        const Var x = tape.constant(numbers({rows, columns}, dtype));
        const Var row = tape.constant(numbers({columns}, dtype, 1));
        const Var column = tape.constant(numbers({rows, 1}, dtype, 2));
        const Var y = x * row + column;
        results.insert(results.end(), {y - row, column * row - y});
      }
      return results;
    });
  }
}

TEST_CASE("short rows that repeat a few elements", "[native]") {
  for (const DType dtype : {DType::f64, DType::f32, DType::i64, DType::i32}) {
    CAPTURE(name_of(dtype));
    check_short_axes([&](Tape& tape) {
      std::vector<Var> results;
      for (const std::int64_t elements : {1, 2, 4}) {
        for (const std::int64_t times : {2, 3, 5, 11, 12}) {
          const std::int64_t rows = 700 + times;
          const Var x = tape.constant(numbers({rows, times, elements}, dtype));
          const Var row = tape.constant(numbers({rows, 1, elements}, dtype, 1));
          const Var column = tape.constant(numbers({rows, times, 1}, dtype, 2));
          const Var y = (x - row) * column;
          results.insert(results.end(), {y, sum(y * y + row, {2})});
        }
      }
      return results;
    });
  }
}

TEST_CASE("sums over leading axes", "[native]") {
  for (const DType dtype : {DType::f64, DType::f32, DType::i64, DType::i32}) {
    CAPTURE(name_of(dtype));
    check_short_axes([&](Tape& tape) {
      std::vector<Var> results;
      // Few rows and many; columns that fill lanes, tiles and segments, and those that do not.
      const std::vector<std::pair<std::int64_t, std::int64_t>> shapes{
          {16, 4}, {701, 5}, {20'001, 3}, {300, 63}, {90, 65}, {130, 512}, {101, 1'600}, {41, 513}};
      for (const auto& [rows, columns] : shapes) {
        const Var x = tape.constant(numbers({rows, columns}, dtype));
        const Var row = tape.constant(numbers({columns}, dtype, 1));
        const Var column = tape.constant(numbers({rows, 1}, dtype, 2));
        const Var y = x * x + x;  // read in order: summed as it is computed
        const Var z = x * row + column;
        results.insert(results.end(), {sum(y, {0}), sum(z, {0}), z - row, prod(z - x, {0})});
        if (is_floating(dtype)) results.push_back(mean(y * y, {0}));
      }
      const Var x = tape.constant(numbers({7, 200, 6}, dtype));
      results.insert(results.end(), {sum(x * x, {1}), sum(x + x, {1})});
      return results;
    });
  }
}

TEST_CASE("movements of short rows that others move once more", "[native]") {
  check_short_axes([&](Tape& tape) {
    // Each is read once, by another movement.
    const auto moved = [&](double shift) {
      return permute(tape.constant(numbers({200, 100, 3}, DType::f64, shift)), {1, 0, 2});
    };
    const Var more = tape.constant(numbers({40, 200, 3}, DType::f64, 1));
    const Var joined = concat({moved(2), more}, 0);
    const Var padded = pad(moved(3), {{1, 1}, {0, 0}, {0, 0}});
    return std::vector<Var>{joined * joined + 0.5 * joined, padded * padded - padded};
  });
}

TEST_CASE("code whose arrays would take too much of the stack is left out", "[native]") {
  bool with_others = false;
  const auto record = [&](Tape& tape) {
    const Var x = tape.constant(numbers({8, 4, 512, 4}, DType::f64));
    Var y = x;
    for (int i = 0; i < 2; ++i) {
      y = y * tape.constant(numbers({4, 512, 1}, DType::f64, i)) + x;
    }
    std::vector<Var> results{sum(y, {0, 1})};
    if (with_others) results.push_back(tape.constant(numbers({50}, DType::f64)) * 2.0 + 1.0);
    return results;
  };
  Report report;
  const auto expected = values_of(record, {.native = NativeCode::off}, &report);
  const auto found = values_of(record, {.native = NativeCode::at_once}, &report);
  CHECK(same_values(found[0], expected[0]));
  CHECK(report.native.groups == 0);
  CHECK_THAT(report.native.problem, Catch::Matchers::Contains("arrays are too large"));
  with_others = true;
  values_of(record, {.native = NativeCode::at_once}, &report);
  CHECK(report.native.groups == 1);
  CHECK_THAT(report.native.problem, Catch::Matchers::StartsWith("1 of 2 groups: ") &&
                                        Catch::Matchers::Contains("arrays are too large"));
}

TEST_CASE("differences of all pairs with short last axes", "[native]") {
  for (const DType dtype : {DType::f64, DType::f32}) {
    CAPTURE(name_of(dtype));
    check_short_axes([&](Tape& tape) {
      const Var x = tape.constant(numbers({501, 1, 2}, dtype));
      const Var m = tape.constant(numbers({5, 2}, dtype, 1));
      const Var scale = tape.constant(numbers({5, 1}, dtype, 2));
      const Var z = (x - m) * exp(m * 0.1) + tanh(scale) * x;
      const Var p = tape.constant(numbers({40, 1, 16}, dtype, 1));
      const Var c = tape.constant(numbers({100, 16}, dtype, 2));
      const Var square_distance = (p - c) * (p - c) + p;
      return std::vector<Var>{z * z, sum(square_distance * 0.5, {1, 2}), max(square_distance - c)};
    });
  }
}

TEST_CASE("shifts, slices and padding of short axes", "[native]") {
  check_short_axes([](Tape& tape) {
    const Var u = tape.constant(numbers({900, 3}, DType::f64));
    const Var x = u - roll(u, 1, 1) * 0.5 + roll(u, -1, 0);
    const Var inner = pad(u[{Slice{0, 900}, Slice{1, 3}}], {{0, 0}, {1, 2}}) * 2.0;
    const Var every = u[{Slice{0, 900, 3}, Slice{0, 3}}] + u[{Slice{0, 300}, Slice{0, 3}}];
    return std::vector<Var>{x + exp(roll(u, 1, 1)), inner + 1.0, every * every};
  });
  check_short_axes([](Tape& tape) {
    const Var u = tape.constant(numbers({64, 65, 3}, DType::f32));
    const Var weight = tape.constant(numbers({3}, DType::f32, 1));
    const Var around = roll(u, 1, 1) + roll(u, 1, 0) - u * 2.0;
    return std::vector<Var>{around * weight, permute(u, {0, 2, 1}) * 3.0 + 1.0,
                            flip(u, {2}) * weight - u};
  });
}

TEST_CASE("reductions of short rows that are read through buffers", "[native]") {
  for (const DType dtype : {DType::f64, DType::f32}) {
    CAPTURE(name_of(dtype));
    check_short_axes([&](Tape& tape) {
      const Var x = tape.constant(numbers({300, 7, 11}, dtype, 1));
      const Var row = tape.constant(numbers({11}, dtype, 2));
      const Var plane = tape.constant(numbers({7, 1}, dtype, 3));
      const Var y = x * row + plane;
      return std::vector<Var>{sum(y, {1, 2}), mean(y * plane, {1, 2}), sum(y - row), max(y + row)};
    });
  }
}

TEST_CASE("sums of many short rows end groups, with the bits of single operations", "[native]") {
  const DType dtype =
      GENERATE(DType::f64, DType::f32, DType::i64, DType::i32, DType::bf16, DType::f16);
  CAPTURE(name_of(dtype));
  for (std::int64_t row = 2; row < 70; ++row) {
    for (const std::int64_t count : {9, 1'000}) {
      CAPTURE(row, count);
      const auto record = [&](Tape& tape) {
        const Var x = tape.constant(numbers({count, row}, dtype));
        const Var y = x * tape.constant(numbers({row}, dtype, 2));
        std::vector<Var> results{sum(y, {1}), prod(y * y, {1})};
        if (is_floating(dtype)) results.push_back(mean(y - x, {1}));
        return results;
      };
      Report report;
      const auto expected = values_of(record, {.threads = 1, .fuse = false}, &report);
      for (const int threads : {1, 2}) {
        for (const NativeCode native : {NativeCode::off, NativeCode::at_once}) {
          if (native == NativeCode::at_once && row % 7 != 2) continue;  // compilers take time
          const auto found = values_of(record, {.threads = threads, .native = native}, &report);
          for (std::size_t i = 0; i < found.size(); ++i) {
            CHECK(same_values(found[i], expected[i]));
          }
          if (row < 8 || row / 2 == 8 || row / 2 == 16 || row >= 64) {
            CHECK(report.computed == 1);  // by one group
            INFO(report.native.problem);
            const bool is_native = native == NativeCode::at_once && !is_half(dtype);
            CHECK(report.native.groups == (is_native ? 1 : 0));
          }
        }
      }
    }
  }
}

TEST_CASE("gradients of a mixture of Gaussians written with trailing short axes", "[native]") {
  std::vector<Tensor> expected;
  for (const NativeCode native : {NativeCode::off, NativeCode::at_once}) {
    Tape tape;
    const Var weight = tape.parameter(numbers({5}, DType::f64, 1));
    const Var center = tape.parameter(numbers({5, 2}, DType::f64, 2));
    const Var scale = tape.parameter(numbers({5, 2}, DType::f64, 3));
    const Var x = tape.constant(numbers({1'000, 2}, DType::f64, 4));
    const Var z = (unsqueeze(x, 1) - center) * exp(scale * 0.05);
    const Var e = weight + sum(scale, {1}) - 0.5 * sum(z * z, {2});
    const Gradients gradients = backward(sum(logsumexp(e, {1})), {.threads = 1, .native = native});
    std::vector<Tensor> found{gradients.loss().clone()};
    for (const Var& each : {weight, center, scale}) found.push_back(gradients[each].clone());
    if (native == NativeCode::off) {
      expected = std::move(found);
      continue;
    }
    CHECK(gradients.report().native.groups == gradients.report().groups);
    for (std::size_t i = 0; i < found.size(); ++i) CHECK(same_bits(found[i], expected[i]));
  }
}

}  // namespace
}  // namespace palimpsest
