#include "autodiff/operations/sorting.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/functions/arithmetic.h"
#include "autodiff/operations/index.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/shape.h"
#include "autodiff/operations/tensor_functions.h"
#include "autodiff/operations/unary.h"
#include "tests/catch.h"

namespace palimpsest::sorting_test {
namespace {

using Catch::Matchers::Contains;
using Numbers = std::vector<double>;
using Whole = std::vector<std::int64_t>;

constexpr double infinity = std::numeric_limits<double>::infinity();
const double nan = std::numeric_limits<double>::quiet_NaN();

Numbers elements(const Var& y) {
  const Tensor value = y.value();
  Numbers list;
  for (std::int64_t i = 0; i < value.elements(); ++i) list.push_back(value.at(i));
  return list;
}
bool same(const Numbers& a, const Numbers& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](double x, double y) {
    return x == y ? std::signbit(x) == std::signbit(y) : std::isnan(x) && std::isnan(y);
  });
}
Tensor f64(const Numbers& list) {
  return Tensor::from(list, {static_cast<std::int64_t>(list.size())});
}

TEST_CASE("sorts of every dtype are stable, and NaN comes last", "[sorting]") {
  const DType dtype = GENERATE(DType::f64, DType::f32, DType::bf16, DType::f16);
  Tape tape;
  const Numbers list = {2, nan, -0.0, infinity, 0, -3, 2, -infinity, nan, 0.0, -0.5};
  const Var x = tape.constant(f64(list).to(dtype));
  const auto [up, from] = sort(x);
  CHECK(same(elements(up), {-infinity, -3, -0.5, -0.0, 0, 0.0, 2, 2, infinity, nan, nan}));
  CHECK(elements(from) == Numbers{7, 5, 10, 2, 4, 9, 0, 6, 3, 1, 8});
  const auto [down, back] = sort(x, 0, true);
  CHECK(same(elements(down), {nan, nan, infinity, 2, 2, -0.0, 0, 0.0, -0.5, -3, -infinity}));
  CHECK(elements(back) == Numbers{1, 8, 3, 0, 6, 2, 4, 9, 10, 5, 7});
}

TEST_CASE("integers and bools are sorted over their whole range", "[sorting]") {
  Tape tape;
  const auto most = std::numeric_limits<std::int64_t>::max();
  const auto least = std::numeric_limits<std::int64_t>::min();
  const Var x = tape.constant(Tensor::from<std::int64_t>({3, most, -1, least, 0, most}, {6}));
  const Tensor y = sort(x).values.value();
  CHECK(std::ranges::equal(y.data<std::int64_t>(), Whole{least, -1, 0, 3, most, most}));
  const Var narrow =
      tape.constant(Tensor::from<std::int32_t>({3, -2147483648, 2147483647, -1}, {4}));
  CHECK(elements(sort(narrow).values) == Numbers{-2147483648.0, -1, 3, 2147483647});
  const Var truth = tape.constant(Tensor::from<std::int64_t>({1, 0, 1, 0}, {4}).to(DType::boolean));
  CHECK(elements(sort(truth).indices) == Numbers{1, 3, 0, 2});
  CHECK(elements(argsort(truth, 0, true)) == Numbers{0, 2, 1, 3});
}

TEST_CASE("lines of every length are sorted as by the standard library", "[sorting]") {
  const std::int64_t n = GENERATE(1, 2, 16, 17, 64, 65, 300, 9000);
  const DType dtype = GENERATE(DType::f32, DType::f64, DType::i64, DType::i32, DType::bf16);
  const bool descending = GENERATE(false, true);
  Tape tape;
  const Tensor numbers = Tensor::normal({2, n}, static_cast<std::uint64_t>(n), 0, 300).to(dtype);
  const auto [values, places] = sort(tape.constant(numbers), 1, descending);
  const Tensor sorted = values.value();
  const Tensor from = places.value();
  for (std::int64_t line = 0; line < 2; ++line) {
    Whole order(static_cast<std::size_t>(n));
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, [&](std::int64_t a, std::int64_t b) {
      const double x = numbers.at(line * n + a), y = numbers.at(line * n + b);
      return descending ? x > y : x < y;
    });
    const auto found =
        from.data<std::int64_t>().subspan(static_cast<std::size_t>(line * n), order.size());
    CHECK(std::ranges::equal(found, order));
    const bool are_values = std::ranges::all_of(order, [&, i = line * n](std::int64_t at) mutable {
      return sorted.at(i++) == numbers.at(line * n + at);
    });
    CHECK(are_values);
  }
}

TEST_CASE("topk and kthvalue find the elements of a sort", "[sorting]") {
  const std::int64_t n = GENERATE(5, 70, 3000);
  const bool largest = GENERATE(false, true);
  const DType dtype = GENERATE(DType::f32, DType::i64);
  Tape tape;
  const Var x = tape.constant(Tensor::normal({3, n}, 9, 0, 40).to(DType::i64).to(dtype));
  const auto [values, places] = sort(x, 1, largest);
  for (const std::int64_t k : {std::int64_t{1}, std::int64_t{3}, n / 8, n / 2, n}) {
    const auto found = topk(x, k, {.largest = largest});
    CAPTURE(n, k, largest, dtype);
    const bool are_first = elements(found.values) == elements(slice(values, 1, {.stop = k})) &&
                           elements(found.indices) == elements(slice(places, 1, {.stop = k}));
    CHECK(are_first);
    if (largest || k == 0) continue;
    const auto one = kthvalue(x, k, 1, true);
    CHECK(elements(one.values) == elements(slice(values, 1, {.start = k - 1, .stop = k})));
    CHECK(elements(one.indices) == elements(slice(places, 1, {.start = k - 1, .stop = k})));
  }
}

TEST_CASE("medians and quantiles", "[sorting]") {
  Tape tape;
  const Var x = tape.constant(f64({3, -1, 4, 1}));
  CHECK(median(x).item() == 1);
  CHECK(median(x, 0).indices.item() == 3);
  CHECK(quantile(x, 0.5).item() == 2);
  CHECK(quantile(x, 0.25).item() == 0.5);
  CHECK(quantile(x, 0.4, {.method = QuantileMethod::lower}).item() == 1);
  CHECK(quantile(x, 0.4, {.method = QuantileMethod::higher}).item() == 3);
  CHECK(quantile(x, 0.4, {.method = QuantileMethod::midpoint}).item() == 2);
  CHECK(quantile(x, 0.6, {.method = QuantileMethod::nearest}).item() == 3);
  CHECK(quantile(x, 0.5, {.method = QuantileMethod::nearest}).item() == 3);  // rank 1.5 to even
  const double qs[] = {0, 1};
  CHECK(elements(quantile(x, qs)) == Numbers{-1, 4});
  const Var missing = tape.constant(Tensor::from(Numbers{nan, 2, 5, 1, nan, nan, 3, 4, 6}, {3, 3}));
  CHECK(same(elements(median(missing, 1).values), {nan, nan, 4}));
  CHECK(elements(median(missing, 1).indices) == Numbers{0, 1, 1});
  CHECK(same(elements(nanmedian(missing, 1).values), {2, 1, 4}));
  CHECK(elements(nanmedian(missing, 1).indices) == Numbers{1, 0, 1});
  CHECK(nanmedian(missing).item() == 3);
  CHECK(same(elements(quantile(missing, 0.5, {.axis = 1})), {nan, nan, 4}));
  CHECK(same(elements(nanquantile(missing, 0.5, {.axis = 1})), {3.5, 1, 4}));
  const Var none = tape.constant(f64({nan, nan}));
  CHECK(std::isnan(nanmedian(none).item()));
  CHECK(std::isnan(nanquantile(none, 1).item()));
  const Var infinite = tape.constant(f64({infinity, 1, -infinity}));
  CHECK(quantile(infinite, 0.3).item() == -infinity);
  CHECK(quantile(infinite, 1).item() == infinity);
  CHECK(nanquantile(infinite, 0.3).item() == -infinity);
  CHECK(nanquantile(infinite, 1).item() == infinity);
  CHECK(quantile(missing, 0.5, {.axis = 0, .keep_axis = true}).shape() == Shape{1, 3});
  CHECK(quantile(missing, 0.5, {.keep_axis = true}).shape() == Shape{1, 1});
  CHECK(quantile(missing, qs, {.axis = 1}).shape() == Shape{2, 3});
}

TEST_CASE("searchsorted counts the elements below", "[sorting]") {
  const DType dtype = GENERATE(DType::f64, DType::f32, DType::i64, DType::f16);
  Tape tape;
  const Var sorted = tape.constant(f64({-2, 0, 0, 3, 5}).to(dtype));
  const Var x = tape.constant(f64({-3, -2, -1, 0, 1, 5, 6}).to(dtype));
  CHECK(elements(searchsorted(sorted, x)) == Numbers{0, 0, 1, 1, 3, 4, 5});
  CHECK(elements(searchsorted(sorted, x, true)) == Numbers{0, 1, 1, 3, 3, 5, 5});
  CHECK(elements(bucketize(x, sorted)) == Numbers{0, 0, 1, 1, 3, 4, 5});
  const Var empty = tape.constant(Tensor::zeros({0}, dtype));
  CHECK(elements(searchsorted(empty, x)) == Numbers(7, 0));
  const Var half = tape.constant(f64({0.5, nan}));
  CHECK(elements(searchsorted(sorted, half)) == Numbers{3, 5});
}

TEST_CASE("topk takes an axis, of Vars and of tensors", "[sorting]") {
  Tape tape;
  const Tensor given = Tensor::matrix({{3, 1, 2}, {0, 5, 4}});
  const Var x = tape.constant(given);
  CHECK(elements(topk(x, 1, 0).values) == Numbers{3, 5, 4});
  CHECK(elements(topk(x, 2, 1, false).values) == Numbers{1, 2, 0, 4});
  CHECK(elements(topk(x, 1, {}).values) == Numbers{3, 5});  // the last axis, not axis 0
  CHECK(same_bits(topk(given, 1, -2).values, topk(x, 1, 0).values.value()));
  CHECK_THROWS_WITH(topk(x, 1, 2), Contains("[topk]") && Contains("sorting_test.cpp"));
}

TEST_CASE("histc counts as PyTorch's", "[sorting]") {
  Tape tape;
  const Var x = tape.parameter(f64({0, 1, 1, 3, 4, 9, -1, nan}));
  const Var counts = histc(x, 4, 0, 4);
  CHECK(counts.dtype() == DType::f64);
  CHECK(elements(counts) == Numbers{1, 2, 0, 2});
  const Var finite = tape.constant(Tensor::matrix({{2, 4}, {4, 6}}));
  CHECK(elements(histc(finite, 4)) == Numbers{1, 0, 2, 1});  // from 2 to 6
  CHECK(histc(finite).shape() == Shape{100});
  CHECK(elements(gradient(sum(counts), x))[0] == 0);
  CHECK(elements(tape.constant(histc(Tensor::vector({1, 2, 2}), 2, 1, 3))) == Numbers{1, 2});
  CHECK_THROWS_WITH(histc(x, 4, 1, 0), Contains("[histc] the range is from 1 to 0"));
  CHECK_THROWS_WITH(histc(x, 0), Contains("[histc] 0 bins"));
  CHECK_THROWS_WITH(histc(cast(finite, DType::i64)), Contains("[histc]"));
}

TEST_CASE("histograms include their last edge and leave out what is outside", "[sorting]") {
  Tape tape;
  const Var x = tape.constant(f64({0, 1, 1.5, 2, 4, -1, 5, nan}));
  const auto [counts, edges] = histogram(x, 4, {.range = HistogramRange{0, 4}});
  CHECK(elements(counts) == Numbers{1, 2, 1, 1});
  CHECK(elements(edges) == Numbers{0, 1, 2, 3, 4});
  const Var y = tape.constant(f64({1, 2, 2, 5}));
  CHECK(elements(histogram(y, 2).counts) == Numbers{3, 1});
  CHECK(elements(histogram(y, 2).edges) == Numbers{1, 3, 5});
  CHECK(elements(histogram(tape.constant(f64({7, 7})), 2).edges) == Numbers{6, 7, 8});
  const Var given = tape.constant(f64({0, 2, 6}));
  CHECK(elements(histogram(y, given).counts) == Numbers{1, 3});
  CHECK(elements(histogram(y, given, {.density = true}).counts) == Numbers{0.125, 0.1875});
}

TEST_CASE("unique values, their counts and where they are", "[sorting]") {
  Tape tape;
  const Var x = tape.parameter(Tensor::from(Numbers{2, -1, 2, 3, -1, 2}, {2, 3}));
  const Unique all = unique(x, {.inverse = true, .counts = true});
  CHECK(elements(all.values) == Numbers{-1, 2, 3});
  CHECK(elements(all.inverse) == Numbers{1, 0, 1, 2, 0, 1});
  CHECK(all.inverse.shape() == Shape{2, 3});
  CHECK(elements(all.counts) == Numbers{2, 3, 1});
  CHECK_FALSE(unique(x).counts.defined());
  CHECK(elements(gradient(all.values, x)) == Numbers{1, 1, 0, 1, 0, 0});
  const Unique runs = unique_consecutive(x, {.inverse = true, .counts = true});
  CHECK(elements(runs.values) == Numbers{2, -1, 2, 3, -1, 2});
  CHECK(elements(unique(tape.constant(Tensor::zeros({0, 2})), {.counts = true}).counts).empty());
  CHECK(unique(tape.constant(f64({nan, 1, nan}))).values.shape() == Shape{3});
}

TEST_CASE("unique slices, in the order of their first elements that differ", "[sorting]") {
  Tape tape;
  const Tensor given =
      Tensor::from(Numbers{1, 5, 0, 2, 0, 2, 1, 5, 0, -2, 1, 5}, {6, 2});  // the last is the first
  const Var x = tape.parameter(given);
  const Unique rows = unique(x, {.inverse = true, .counts = true, .axis = 0});
  CHECK(elements(rows.values) == Numbers{0, -2, 0, 2, 1, 5});
  CHECK(rows.values.shape() == Shape{3, 2});
  CHECK(elements(rows.inverse) == Numbers{2, 1, 1, 2, 0, 2});
  CHECK(elements(rows.counts) == Numbers{1, 2, 3});
  CHECK(elements(gradient(rows.values, x)) == Numbers{1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 0, 0});
  const Unique columns = unique(transpose(x), {.counts = true, .axis = -1});
  CHECK(same_bits(columns.values.value(), transpose(rows.values).value()));
  const Unique runs = unique_consecutive(x, {.inverse = true, .counts = true, .axis = 0});
  CHECK(elements(runs.values) == Numbers{1, 5, 0, 2, 1, 5, 0, -2, 1, 5});
  CHECK(elements(runs.inverse) == Numbers{0, 1, 1, 2, 3, 4});
  CHECK(elements(runs.counts) == Numbers{1, 2, 1, 1, 1});
  CHECK(unique(tape.constant(f64({nan, 1, nan, 1})), {.axis = 0}).values.shape() == Shape{3});
  CHECK(unique(tape.constant(Tensor::zeros({3, 0})), {.axis = 0}).values.shape() == Shape{1, 0});
  CHECK(unique(tape.constant(Tensor::zeros({0, 3})), {.axis = 0}).values.shape() == Shape{0, 3});
  CHECK_THROWS_AS(unique(x, {.axis = 2}), ShapeError);
}

TEST_CASE("lexsort orders by the last key first, for every dtype", "[sorting]") {
  Tape tape;
  const DType dtype = GENERATE(DType::f64, DType::bf16, DType::i64, DType::i8);
  const Var keys = tape.constant(Tensor::from(Numbers{3, 1, 2, 1, 0, 1, 0, 0}, {2, 4}).to(dtype));
  CHECK(elements(lexsort(keys)) == Numbers{3, 2, 0, 1});
  const Var lines = tape.constant(Tensor::from(Numbers{0, 1, 2, 3, 1, 0, 5, 4}, {2, 2, 2}));
  CHECK(elements(lexsort(lines)) == Numbers{1, 0, 1, 0});
  CHECK(lexsort(tape.constant(Tensor::zeros({2, 0}))).shape() == Shape{0});
  CHECK_THROWS_WITH(lexsort(select(keys, 0, 0)), Contains("[lexsort] the keys have shape (4)"));
}

TEST_CASE("bincount is as long as its largest element needs", "[sorting]") {
  Tape tape;
  const Var x = tape.constant(Tensor::from<std::int32_t>({1, 4, 1}, {3}));
  CHECK(elements(bincount(x)) == Numbers{0, 2, 0, 0, 1});
  CHECK(bincount(x, {.minlength = 7}).shape() == Shape{7});
  CHECK(bincount(tape.constant(Tensor::zeros({0}, DType::i64))).shape() == Shape{0});
  const Var weights = tape.constant(f64({0.5, 2, 1}));
  CHECK(elements(bincount(x, {.weights = weights})) == Numbers{0, 1.5, 0, 0, 2});
}

TEST_CASE("sorting and search say what does not fit", "[sorting]") {
  Tape tape;
  const Var x = tape.constant(Tensor::ones({2, 3}));
  const Var empty = tape.constant(Tensor::ones({2, 0}));
  const Var whole = tape.constant(Tensor::from<std::int64_t>({1, -1}, {2}));
  CHECK_THROWS_AS(sort(x, 2), ShapeError);
  CHECK_THROWS_AS(sort(tape.constant(Tensor::scalar(1))), ShapeError);
  CHECK_THROWS_WITH(topk(x, 4),
                    Contains("[topk] k is 4 for an axis of 3") && Contains("sorting_test.cpp"));
  CHECK_THROWS_AS(topk(x, -1), ArgumentError);
  CHECK_THROWS_WITH(kthvalue(x, 0), Contains("[kthvalue] k is 0 for an axis of 3"));
  CHECK_THROWS_WITH(median(empty, 1), Contains("[median] shape (2, 0) has no elements"));
  CHECK_THROWS_AS(median(empty), ShapeError);
  CHECK_THROWS_WITH(quantile(x, 1.5), Contains("[quantile] q is 1.5"));
  CHECK_THROWS_AS(quantile(x, nan), ArgumentError);
  CHECK_THROWS_AS(quantile(x, std::span<const double>()), ArgumentError);
  CHECK_THROWS_AS(quantile(whole, 0.5), DTypeError);
  CHECK_THROWS_AS(quantile(empty, 0.5), ShapeError);
  CHECK_THROWS_AS(nanquantile(x, -1), ArgumentError);
  CHECK_THROWS_AS(nanmedian(empty, 1), ShapeError);
  CHECK_THROWS_WITH(searchsorted(x, whole),
                    Contains("[searchsorted] sorted elements of shape (2, 3)"));
  CHECK_THROWS_AS(searchsorted(tape.constant(Tensor::scalar(1)), x), ShapeError);
  CHECK_THROWS_AS(bincount(x), DTypeError);
  CHECK_THROWS_WITH(bincount(whole).value(), Contains("[bincount] index -1 at element 1"));
  CHECK_THROWS_WITH(bincount(whole, {.size = 1}).value(), Contains("an axis of 1"));
  CHECK_THROWS_AS(bincount(whole, {.minlength = -1}), ArgumentError);
  CHECK_THROWS_AS(bincount(whole, {.weights = x}), ShapeError);
  CHECK_THROWS_AS(bincount(whole, {.weights = greater(whole, 0.0)}), DTypeError);
  CHECK_THROWS_AS(histogram(whole, 2), DTypeError);
  CHECK_THROWS_AS(histogram(x, 0), ArgumentError);
  CHECK_THROWS_WITH(histogram(x, 2, {.range = HistogramRange{1, 1}}),
                    Contains("[histogram] the range"));
  CHECK_THROWS_AS(histogram(x, x), ShapeError);
  CHECK_THROWS_AS(histogram(x, 2, {.weights = whole}), ShapeError);
  CHECK_THROWS_AS(histogram(empty, 2), ShapeError);
}

}  // namespace
}  // namespace palimpsest::sorting_test
