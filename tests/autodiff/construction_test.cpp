#include "autodiff/operations/construction.h"

#include <cmath>
#include <limits>
#include <vector>

#include "autodiff/gradient.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/operations/shape.h"
#include "tests/catch.h"
#include "tests/error_of.h"

namespace palimpsest::construction_test {
namespace {

using Numbers = std::vector<double>;

Numbers elements(const Var& y) {
  Numbers list;
  for (std::int64_t i = 0; i < y.value().elements(); ++i) list.push_back(y.value().at(i));
  return list;
}

Var counted(Tape& tape, const Shape& shape, DType dtype = DType::i32) {
  return tape.constant(Tensor::arange(shape.elements(), dtype).reshape(shape));
}

TEST_CASE("ranges of numbers") {
  Tape tape;
  CHECK(elements(arange(tape, 1, 2, 0.25)) == Numbers{1, 1.25, 1.5, 1.75});
  CHECK(elements(arange(tape, 3, 0, -1, DType::i64)) == Numbers{3, 2, 1});
  CHECK(elements(arange(tape, 2, 1)).empty());
  CHECK(elements(arange(tape, 0, 1, 0.3, DType::f64)).size() == 4);
  CHECK(elements(linspace(tape, 0, 1, 5)) == Numbers{0, 0.25, 0.5, 0.75, 1});
  CHECK(elements(linspace(tape, 2, 5, 1)) == Numbers{2});
  CHECK(elements(linspace(tape, 2, 5, 0)).empty());
  CHECK(elements(linspace(tape, 0, 3, 4, DType::bf16)) == Numbers{0, 1, 2, 3});
  CHECK(elements(logspace(tape, 0, 3, 4)) == Numbers{1, 10, 100, 1000});
  const Numbers third = elements(linspace(tape, -1.0 / 3, 1.0 / 3, 101, DType::f64));
  for (std::size_t i = 0; i < 101; ++i) CHECK(third[i] == -third[100 - i]);
  CHECK(third[100] == 1.0 / 3);
  check_error([&] { arange(tape, 0, 1, 0); }, {"arange", "other than 0"});
  check_error([&] { arange(tape, 0, std::numeric_limits<double>::infinity()); },
              {"arange", "finite"});
  check_error([&] { linspace(tape, 0, 1, -1); }, {"linspace", "-1", "0 or more"});
}

TEST_CASE("diagonals of matrices of every shape and dtype") {
  const DType dtype = GENERATE(DType::f64, DType::i32, DType::f16, DType::boolean);
  const Shape shape = GENERATE(Shape{3, 4}, Shape{4, 3}, Shape{1, 5}, Shape{3, 3}, Shape{0, 2});
  const int offset = GENERATE(-5, -2, -1, 0, 1, 3);
  Tape tape;
  const Var x = counted(tape, shape, DType::i32);
  const Numbers all = elements(cast(x, dtype));
  Numbers expected;
  for (std::int64_t i = 0; i < shape[0]; ++i) {
    const std::int64_t j = i + offset;
    if (j >= 0 && j < shape[1]) expected.push_back(all[static_cast<std::size_t>(i * shape[1] + j)]);
  }
  INFO(name_of(dtype) << " " << to_string(shape) << " " << offset);
  const Var found = diagonal(cast(x, dtype), offset);
  CHECK(found.dtype() == dtype);
  CHECK(elements(found) == expected);
  // A matrix of the diagonal has it as diagonal, and nothing else.
  const Var matrix = diag(found, offset);
  CHECK(elements(diagonal(matrix, offset)) == expected);
  double sum = 0, all_sum = 0;
  for (const double number : expected) sum += number;
  for (const double number : elements(matrix)) all_sum += number;
  CHECK(sum == all_sum);
}

TEST_CASE("identity matrices") {
  Tape tape;
  CHECK(elements(eye(tape, 2)) == Numbers{1, 0, 0, 1});
  CHECK(elements(eye(tape, 2, 3, DType::i64)) == Numbers{1, 0, 0, 0, 1, 0});
  CHECK(elements(eye(tape, 3, 1, DType::boolean)) == Numbers{1, 0, 0});
  CHECK(elements(eye(tape, 0, 3)).empty());
  CHECK(elements(trace(eye(tape, 4))) == Numbers{4});
}

TEST_CASE("blocks, grids and products") {
  Tape tape;
  const Var a = counted(tape, {2}, DType::f32);
  const Var b = counted(tape, {2, 1}, DType::f32);
  CHECK(elements(block_diag({a, b})) == Numbers{0, 1, 0, 0, 0, 0, 0, 0, 1});
  CHECK(elements(kron(a, b)) == Numbers{0, 0, 0, 1});
  CHECK(kron(b, a).shape() == Shape{2, 2});
  const Var c = counted(tape, {3}, DType::f32);
  const auto grid = meshgrid({a, c});
  CHECK(elements(grid[0]) == Numbers{0, 0, 0, 1, 1, 1});
  CHECK(elements(grid[1]) == Numbers{0, 1, 2, 0, 1, 2});
  CHECK(meshgrid({a, c}, GridIndexing::xy)[0].shape() == Shape{3, 2});
  CHECK(meshgrid({a}, GridIndexing::xy)[0].shape() == Shape{2});
  const Var e = eye(tape, 3);
  CHECK(elements(cross(select(e, 0, 0), select(e, 0, 1))) == Numbers{0, 0, 1});
  CHECK(elements(cross(c, c)) == Numbers{0, 0, 0});
}

TEST_CASE("axes are moved and rotated") {
  Tape tape;
  const Var x = counted(tape, {2, 3});
  CHECK(movedim(counted(tape, {2, 3, 4}), 0, 1).shape() == Shape{3, 2, 4});
  CHECK(movedim(counted(tape, {2, 3, 4}), -1, 0).shape() == Shape{4, 2, 3});
  CHECK(unflatten(counted(tape, {2, 12}), 1, {3, -1}).shape() == Shape{2, 3, 4});
  CHECK(elements(rot90(x)) == Numbers{2, 5, 1, 4, 0, 3});
  CHECK(elements(rot90(x, 2)) == Numbers{5, 4, 3, 2, 1, 0});
  CHECK(elements(rot90(x, -1)) == Numbers{3, 0, 4, 1, 5, 2});
  CHECK(elements(rot90(x, 4)) == elements(x));
  CHECK(elements(fliplr(x)) == Numbers{2, 1, 0, 5, 4, 3});
  CHECK(elements(flipud(x)) == Numbers{3, 4, 5, 0, 1, 2});
  CHECK(swapaxes(x, 0, 1).shape() == Shape{3, 2});
}

TEST_CASE("constructions refuse shapes that do not fit") {
  Tape tape;
  const Var scalar = tape.constant(Tensor::scalar(1));
  const Var matrix = tape.constant(Tensor::zeros({2, 3}));
  const Var batch = tape.constant(Tensor::zeros({2, 2, 2}));
  const Var wide = tape.constant(Tensor::zeros({1, 1, 1, 1, 1}));
  check_error([&] { diag(batch); }, {"diag", "(2, 2, 2)", "diag_embed or diagonal"});
  check_error([&] { diag_embed(scalar); }, {"diag_embed", "vector"});
  check_error([&] { diag_embed(matrix, 0, 1, 1); }, {"diag_embed", "the same"});
  check_error([&] { diagonal(matrix, 0, 1, -1); }, {"diagonal", "the same"});
  check_error([&] { rot90(matrix, 1, 0, 0); }, {"rot90", "the same"});
  check_error([&] { block_diag({batch}); }, {"block_diag", "matrices"});
  check_error([&] { block_diag({}); }, {"block_diag", "at least one"});
  check_error([&] { meshgrid({matrix}); }, {"meshgrid", "vectors"});
  check_error([&] { meshgrid({}); }, {"meshgrid", "at least one"});
  check_error([&] { cross(matrix, matrix, 0); }, {"cross", "size 2", "three elements"});
  check_error([&] { kron(wide, wide); }, {"kron"});
  check_error([&] { unflatten(matrix, 1, {2, 2}); }, {"(2, 2)"});
}

}  // namespace
}  // namespace palimpsest::construction_test
