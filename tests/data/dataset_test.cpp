#include "data/dataset.h"

#include "tests/catch.h"
#include "tests/error_of.h"

namespace palimpsest::dataset_test {
namespace {

Tensor floats(std::initializer_list<std::initializer_list<float>> rows) {
  return Tensor::matrix(rows);
}

TEST_CASE("rows of tensors in memory come in the order of the indices") {
  const Dataset dataset = in_memory({{"x", floats({{1, 2}, {3, 4}, {5, 6}})},
                                     {"y", Tensor::arange(3)},
                                     {"mask", Tensor::from({true, false, true}, {3})}});
  CHECK(dataset.size() == 3);
  CHECK(dataset.columns()[0] == DatasetColumn{"x", {{2}, DType::f32}});
  CHECK(dataset.columns()[1] == DatasetColumn{"y", {{}, DType::i64}});
  CHECK(dataset.position("y") == 1);
  CHECK(dataset.example_bytes() == 2 * 4 + 8 + 1);
  const std::vector<Tensor> rows = dataset.rows({2, 0, 2});
  REQUIRE(rows.size() == 3);
  CHECK(same_bits(rows[0], floats({{5, 6}, {1, 2}, {5, 6}})));
  CHECK(same_bits(rows[1], Tensor::from<std::int64_t>({2, 0, 2}, {3})));
  CHECK(same_bits(rows[2], Tensor::from({true, true, true}, {3})));
  CHECK(dataset.rows({})[0].type() == ValueType{{0, 2}, DType::f32});
}

TEST_CASE("examples can be empty, and there can be none") {
  const Dataset dataset = in_memory({{"x", Tensor::zeros({3, 0, 2})}});
  CHECK(dataset.rows({1, 1})[0].shape() == Shape{2, 0, 2});
  CHECK(in_memory({{"x", Tensor::zeros({0, 2})}}).size() == 0);
}

TEST_CASE("a slice is a part of the examples") {
  const Dataset dataset = in_memory({{"y", Tensor::arange(10)}});
  const Dataset part = dataset.slice(2, 6).slice(1, 3);
  CHECK(part.size() == 3);
  CHECK(same_bits(part.rows({0, 2})[0], Tensor::from<std::int64_t>({3, 5}, {2})));
  check_error([&] { part.rows({3}); }, {"[dataset] there is no example 3", "0 to 2"});
  check_error([&] { dataset.slice(8, 3); }, {"examples 8 to 11", "dataset of 10"});
  check_error([&] { dataset.slice(-1, 1); }, {"examples -1 to 0"});
}

TEST_CASE("joined datasets have the columns of all") {
  const Dataset dataset = joined({in_memory({{"a", Tensor::arange(4)}}),
                                  in_memory({{"b", Tensor::arange(8).reshape({4, 2})}})});
  CHECK(dataset.size() == 4);
  const std::vector<Tensor> rows = dataset.rows({3});
  CHECK(rows[0].at(0) == 3);
  CHECK(rows[1].at(1) == 7);
  const Dataset three = in_memory({{"c", Tensor::arange(3)}});
  check_error([&] { joined({dataset, three}); }, {"[joined]", "4 and 3 examples"});
  check_error([&] { joined({dataset, dataset}); }, {"two columns are called 'a'"});
  check_error([&] { joined({}); }, {"no datasets"});
}

TEST_CASE("a function can make rows") {
  const Dataset squares(5, {{"square", {{1}, DType::f64}}}, [](std::span<const std::int64_t> at) {
    const Tensor rows(Shape{std::ssize(at), 1}, DType::f64);
    for (std::size_t i = 0; i < at.size(); ++i) {
      rows.data<double>()[i] = static_cast<double>(at[i] * at[i]);
    }
    return std::vector{rows};
  });
  CHECK(squares.rows({4, 3})[0].at(0) == 16);
  CHECK(squares.slice(1, 2).rows({1})[0].at(0) == 4);
}

TEST_CASE("rows that are not what the columns state are errors") {
  const auto returning = [](std::vector<Tensor> tensors) {
    return Dataset(2, {{"x", {{3}, DType::f32}}},
                   [=](std::span<const std::int64_t>) { return tensors; });
  };
  CHECK_NOTHROW(returning({Tensor::zeros({1, 3})}).rows({0}));
  check_error([&] { returning({}).rows({0}); }, {"returned 0 tensors", "1 columns"});
  check_error([&] { returning({Tensor::zeros({1, 4})}).rows({0}); },
              {"column 'x' are f32 (1, 4), not f32 (1, 3)"});
  check_error([&] { returning({Tensor()}).rows({0}); }, {"an empty Tensor"});
  CHECK_THROWS_AS(returning({Tensor::zeros({1, 3}, DType::f64)}).rows({0}), DTypeError);
}

TEST_CASE("datasets that cannot be are errors") {
  const auto none = [](std::span<const std::int64_t>) { return std::vector<Tensor>(); };
  check_error([&] { Dataset(-1, {{"x", {}}}, none); }, {"-1 examples"});
  check_error([&] { Dataset(1, {}, none); }, {"needs a column"});
  check_error([&] { Dataset(1, {{"x", {}}}, nullptr); }, {"empty function"});
  check_error([&] { Dataset(1, {{"x", {}}, {"x", {}}}, none); }, {"two columns are called 'x'"});
  CHECK_NOTHROW(Dataset(1, {{"", {}}, {"", {}}}, none));
  check_error([&] { Dataset(1, {{"x", {{1, 1, 1, 1, 1, 1, 1, 1}}}}, none); }, {"axes"});
  check_error([&] { in_memory({{"x", Tensor::scalar(1)}}); }, {"'x' is a scalar"});
  check_error([&] { in_memory({{"x", Tensor()}}); }, {"'x' is empty"});
  check_error([&] { in_memory({{"x", Tensor::zeros({2})}, {"y", Tensor::zeros({3, 1})}}); },
              {"'y' of shape (3, 1)", "2 rows of tensor 'x'"});
  check_error([&] { in_memory({{"x", Tensor::zeros({2})}}).position("z"); }, {"'z'", "x"});
}

}  // namespace
}  // namespace palimpsest::dataset_test
