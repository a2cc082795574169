// i16, i8 and u8: storage formats, which are computed with in i32.
#include <limits>

#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/convolution.h"
#include "autodiff/operations/functions/arithmetic.h"
#include "autodiff/operations/functions/exponential.h"
#include "autodiff/operations/functions/trigonometric.h"
#include "autodiff/operations/index.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/loss.h"
#include "autodiff/operations/reduce.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/sorting.h"
#include "autodiff/operations/unary.h"
#include "autodiff/parallel.h"
#include "strategy/backward.h"
#include "strategy/evaluators/evaluators.h"
#include "tests/catch.h"
#include "tests/error_of.h"

namespace palimpsest::narrow_integers_test {
namespace {

/// Values at and around the ends of each type.
template <class T>
Tensor numbers() {
  constexpr auto low = std::numeric_limits<T>::min();
  constexpr auto high = std::numeric_limits<T>::max();
  return Tensor::from<T>({low, static_cast<T>(low + 1), 0, 1, 2, 3, static_cast<T>(high - 1), high},
                         {8});
}

TEST_CASE("narrow integers have names, sizes and a place among the dtypes") {
  CHECK(to_string(ValueType{{2}, DType::i16}) == "i16 (2)");
  CHECK(to_string(ValueType{{2}, DType::i8}) == "i8 (2)");
  CHECK(to_string(ValueType{{2}, DType::u8}) == "u8 (2)");
  CHECK(ValueType{{3}, DType::i16}.bytes() == 6);
  CHECK(ValueType{{3}, DType::i8}.bytes() == 3);
  CHECK(ValueType{{3}, DType::u8}.bytes() == 3);
  CHECK(to_string(Tensor::from<std::uint8_t>({200, 1}, {2})) == "u8 (2)\n[200, 1]");
  CHECK(promote(DType::i8, DType::u8) == DType::i16);
  CHECK(promote(DType::u8, DType::i8) == DType::i16);
  CHECK(promote(DType::u8, DType::u8) == DType::u8);
  CHECK(promote(DType::i16, DType::u8) == DType::i16);
  CHECK(promote(DType::i8, DType::i32) == DType::i32);
  CHECK(promote(DType::u8, DType::boolean) == DType::u8);
  CHECK(promote(DType::f16, DType::i16) == DType::f16);
}

TEST_CASE("conversions are those of the elements") {
  const auto check = [](double number, DType dtype, double expected) {
    CAPTURE(number, name_of(dtype));
    const Tensor x = Tensor::scalar(number, DType::f64);
    CHECK(x.to(dtype).at(0) == expected);
    CHECK(x.to(DType::f32).to(dtype).at(0) == expected);
  };
  check(-129.5, DType::i8, -128);
  check(300, DType::i8, 127);
  check(-3.9, DType::i8, -3);
  check(-1, DType::u8, 0);
  check(255.9, DType::u8, 255);
  check(256, DType::u8, 255);
  check(-40000, DType::i16, -32768);
  check(40000, DType::i16, 32767);
  check(std::numeric_limits<double>::quiet_NaN(), DType::u8, 0);
  // Integers wrap around, as in C++.
  CHECK(Tensor::from<std::int64_t>({257}, {1}).to(DType::u8).at(0) == 1);
  CHECK(Tensor::from<std::int32_t>({200}, {1}).to(DType::i8).at(0) == -56);
  CHECK(Tensor::from<std::uint8_t>({200}, {1}).to(DType::f32).at(0) == 200);
  CHECK(Tensor::from<std::uint8_t>({2}, {1}).to(DType::boolean).at(0) == 1);
  CHECK(Tensor::ones({2}, DType::boolean).to(DType::i8).at(1) == 1);
}

TEMPLATE_TEST_CASE("arithmetic wraps around in the promoted dtype", "", std::int16_t, std::int8_t,
                   std::uint8_t) {
  const DType dtype = dtype_of<TestType>();
  const Tensor values = numbers<TestType>();
  Tape tape;
  const Var x = tape.constant(values);
  const Var y = flip(x);
  const auto check = [&](const Var& z, auto f) {
    const Tensor value = z.value();
    CHECK(value.dtype() == dtype);
    for (std::int64_t i = 0; i < 8; ++i) {
      const auto a = static_cast<std::int64_t>(values.at(i));
      const auto b = static_cast<std::int64_t>(values.at(7 - i));
      CAPTURE(a, b);
      CHECK(value.at(i) == static_cast<double>(static_cast<TestType>(f(a, b))));
    }
  };
  using Whole = std::int64_t;
  check(x + y, [](Whole a, Whole b) { return a + b; });
  check(x - y, [](Whole a, Whole b) { return a - b; });
  check(x * y, [](Whole a, Whole b) { return a * b; });
  check(x / y, [](Whole a, Whole b) { return b == 0 ? 0 : a / b; });
  check(x - 1, [](Whole a, Whole) { return a - 1; });
  check(2 * x, [](Whole a, Whole) { return 2 * a; });
  check(maximum(x, y), [](Whole a, Whole b) { return std::max(a, b); });
  check(minimum(x, 2), [](Whole a, Whole) { return std::min(a, Whole{2}); });
  check(-x, [](Whole a, Whole) { return -a; });
  check(negate(x), [](Whole a, Whole) { return -a; });
  check(abs(x), [](Whole a, Whole) { return std::abs(a); });
  CHECK((x + 0.5).dtype() == DType::f32);
  CHECK((x + tape.constant(Tensor::ones({8}))).dtype() == DType::f32);
  CHECK((x + tape.constant(Tensor::ones({8}, DType::i32))).dtype() == DType::i32);
  check_error([&] { x + 1e6; }, {"[add]", "out of range for " + std::string(name_of(dtype))});
  check_error([&] { exp(x); }, {"[exp]", std::string(name_of(dtype)) + " (8)", "cast it first"});
  check_error([&] { mean(x); }, {"[mean]", std::string(name_of(dtype))});
}

TEMPLATE_TEST_CASE("comparisons and reductions", "", std::int16_t, std::int8_t, std::uint8_t) {
  const Tensor values = numbers<TestType>();
  const Tensor wide = values.to(DType::i64);
  Tape tape;
  const Var x = tape.constant(values);
  const Var w = tape.constant(wide);
  const auto same = [](const Var& a, const Var& b) { CHECK(same_bits(a.value(), b.value())); };
  same(x > 1, w > 1);
  same(equal(x, flip(x)), equal(w, flip(w)));
  same(x <= flip(x), w <= flip(w));
  same(sum(x), sum(w));
  same(prod(x), prod(w));
  same(cumsum(x, 0), cumsum(w, 0));
  same(max(x), cast(max(w), x.dtype()));
  same(min(x), cast(min(w), x.dtype()));
  same(argmax(x), argmax(w));
  same(argmin(x), argmin(w));
}

TEMPLATE_TEST_CASE("reductions and comparisons do not widen their whole input", "", std::int16_t,
                   std::int8_t, std::uint8_t, bool) {
  using Function = Var (*)(const Var&);
  struct Case {
    const char* name;
    Function call;
    Bytes value;  ///< bytes of an element that values on the way have on an eager tape
  };
  constexpr std::int64_t n = 1 << 20;
  const Tensor x = Tensor::arange(n).to(dtype_of<TestType>());
  const Case cases[] = {
      {"sum", [](const Var& v) { return sum(v); }, 0},
      {"sum of columns", [](const Var& v) { return sum(reshape(v, {n / 1024, 1024}), {0}); }, 0},
      {"sum of short rows", [](const Var& v) { return sum(reshape(v, {n / 4096, 16, 256}), {1}); },
       0},
      {"prod", [](const Var& v) { return prod(v); }, 0},
      {"any of equal",
       [](const Var& v) { return any(equal(v, v.tape().constant(Tensor::zeros({}, v.dtype())))); },
       1},
      {"all of less", [](const Var& v) { return all(less(v, stop_gradient(v))); }, 1},
  };
  const auto check = [&](const char* name, Function call, Bytes value) {
    for (const bool eager : {false, true}) {
      CAPTURE(name, eager);
      Tape tape(eager ? palimpsest::eager({.memory_budget = Bytes{1} << 30}) : lazy());
      const Var y = call(tape.constant(x));
      const Bytes peak = evaluate(y).measured_peak;
      const Bytes values = (eager ? value : 0) * n + y.shape().elements() * 16;
      CHECK(peak <= values + max_threads() * 65536);
      Tape other;
      CHECK(same_bits(y.value(), call(other.constant(x.to(DType::i64))).value().to(y.dtype())));
    }
  };
  for (const auto& [name, call, value] : cases) check(name, call, value);
  if constexpr (!std::is_same_v<TestType, bool>) {
    check("max", [](const Var& v) { return max(v); }, 0);
    check("argmax", [](const Var& v) { return argmax(v); }, 0);
    check("min of columns", [](const Var& v) { return min(reshape(v, {n / 1024, 1024}), {0}); }, 0);
    check(
        "argmin of rows", [](const Var& v) { return argmin(reshape(v, {n / 1024, 1024}), {1}); },
        0);
  }
}

TEMPLATE_TEST_CASE("operations that move elements move narrow integers", "", std::int16_t,
                   std::int8_t, std::uint8_t) {
  const DType dtype = dtype_of<TestType>();
  const Tensor values = Tensor::arange(24).to(dtype).reshape({2, 3, 4});
  Tape tape;
  const Var x = tape.constant(values);
  const Var w = tape.constant(values.to(DType::i64));
  const auto same = [&](const Var& a, const Var& b) {
    CHECK(a.dtype() == dtype);
    CHECK(same_bits(a.value(), b.value().to(dtype)));
  };
  same(permute(x, {2, 0, 1}), permute(w, {2, 0, 1}));
  same(x[{1, Slice{.step = -1}}], w[{1, Slice{.step = -1}}]);
  same(concat({x, x}, 1), concat({w, w}, 1));
  same(pad(x, {{1, 0}, {0, 1}, {2, 2}}, 7), pad(w, {{1, 0}, {0, 1}, {2, 2}}, 7));
  same(flip(roll(x, 1, 2)), flip(roll(w, 1, 2)));
  same(tile(x, {1, 2, 1}), tile(w, {1, 2, 1}));
  same(repeat(x, 2, 1), repeat(w, 2, 1));
  same(broadcast_to(x[0], {5, 3, 4}), broadcast_to(w[0], {5, 3, 4}));
  same(where(w > 7, x, 3), where(w > 7, w, 3));
  same(full_like(x, 3), full_like(w, 3));

  const Var places = tape.constant(Tensor::from<TestType>({1, 0, 1}, {3}));
  const Var wide_places = cast(places, DType::i64);
  same(index_select(x, 0, places), index_select(w, 0, wide_places));
  same(index_add(x, 1, places, 2), index_add(w, 1, wide_places, 2));
  const Var each = broadcast_to(unsqueeze(places, 1), {2, 3, 4});
  const Var wide_each = cast(each, DType::i64);
  same(gather(x, 1, each), gather(w, 1, wide_each));
  same(scatter_add(x, 1, each, 3), scatter_add(w, 1, wide_each, 3));
  CHECK(same_bits(one_hot(places, 2).value(), one_hot(wide_places, 2).value()));
}

TEST_CASE("classes and indices may be narrow where derivatives flow") {
  Tape tape;
  const Var logits = tape.parameter(Tensor::normal({3, 4}, 1));
  const Tensor classes = Tensor::from<std::uint8_t>({3, 0, 2}, {3});
  const auto slope = [&](const Tensor& answers) {
    const Var loss =
        cross_entropy(logits[tape.constant(answers)], tape.constant(answers), {.ignore_index = 2});
    return gradient(loss, logits).value();
  };
  const Tensor rows = Tensor::from<std::uint8_t>({1, 0, 2}, {3});
  CHECK(same_bits(slope(rows), slope(rows.to(DType::i64))));
  check_error(
      [&] {
        cross_entropy(logits, tape.constant(classes)).value();
        slope(classes);
      },
      {"index 3 at element 0 is out of range"});
}

TEST_CASE("fused, eager and recomputed runs read narrow integers") {
  const Tensor pixels = Tensor::arange(4000).to(DType::u8).reshape({40, 100});
  const Tensor shifts = Tensor::arange(100).to(DType::i16);
  const auto run = [&](bool eagerly, const RunOptions& options) {
    Tape tape(eagerly ? eager() : nullptr);
    const Var weight = tape.parameter(Tensor::normal({100}, 1));
    const Var bytes = tape.constant(pixels);
    const Var moved = cast((bytes[{Slice{.step = -1}}] + tape.constant(shifts)) * 3, DType::i8);
    const Var x = cast(moved, DType::f32) / 255 + cast(flip(bytes, 1), DType::f32) * 0.01;
    return backward(sum(tanh(x * weight)), options)[weight];
  };
  const Tensor expected = run(false, {.threads = 1, .fuse = false, .simplify = false});
  for (const bool eagerly : {false, true}) {
    CHECK(same_bits(run(eagerly, {}), expected));
    CHECK(same_bits(run(eagerly, {.threads = 2, .fuse = true}), expected));
  }
  CHECK(same_bits(run(false, {.memory_budget = 64_KiB}), expected));
}

TEST_CASE("integers are not parameters") {
  Tape tape;
  for (const DType dtype : {DType::i64, DType::i16, DType::u8, DType::boolean}) {
    check_error([&] { tape.parameter(Tensor::zeros({2}, dtype)); },
                {"[parameter]", std::string(name_of(dtype)) + " (2)", "record it with constant()",
                 "narrow_integers_test.cpp"});
  }
}

TEST_CASE("sorting, scans, search and patches compute with narrow integers as with i32") {
  Tape tape;
  const Tensor given = Tensor::from<std::int32_t>({5, 3, 100, 3, 0, 7, 90, 2}, {1, 2, 4});
  const Var wide = tape.constant(given);
  for (const DType dtype : {DType::i16, DType::i8, DType::u8}) {
    CAPTURE(name_of(dtype));
    const Var x = cast(wide, dtype);
    const auto check = [&](const Var& narrow, const Var& expected, DType result) {
      CHECK(narrow.dtype() == result);
      CHECK(same_bits(cast(narrow, DType::i64).value(), cast(expected, DType::i64).value()));
    };
    check(sort(x).values, sort(wide).values, dtype);
    check(argsort(x), argsort(wide), DType::i64);
    check(topk(x, 2).values, topk(wide, 2).values, dtype);
    check(kthvalue(x, 2).values, kthvalue(wide, 2).values, dtype);
    check(median(x), median(wide), dtype);
    check(cummax(x, 2).values, cummax(wide, 2).values, dtype);
    check(cummin(x, 2).indices, cummin(wide, 2).indices, DType::i64);
    check(cumprod(x, 1), cumprod(wide, 1), DType::i64);
    const Var line = reshape(wide, {8});
    const Var narrow = reshape(x, {8});
    check(searchsorted(sort(narrow).values, narrow), searchsorted(sort(line).values, line),
          DType::i64);
    check(bincount(narrow), bincount(line), DType::i64);
    check(bincount(narrow, {.weights = narrow}), bincount(line, {.weights = line}), DType::i64);
    check(nonzero(narrow), nonzero(line), DType::i64);
    check(unique(narrow).values, unique(line).values, dtype);
    check(unfold(x, 2), unfold(wide, 2), dtype);
    check(fold(unfold(x, 2), {4}, 2), cast(fold(unfold(wide, 2), {4}, 2), dtype), dtype);
    const Var places = cast(tape.constant(Tensor::from<std::int64_t>({2, 0, 1}, {3})), dtype);
    check(index(narrow, {places}), index(line, {cast(places, DType::i64)}), dtype);
    check(scatter(narrow, 0, places, slice(narrow, 0, {.stop = 3})),
          scatter(line, 0, cast(places, DType::i64), slice(line, 0, {.stop = 3})), dtype);
  }
}

}  // namespace
}  // namespace palimpsest::narrow_integers_test
