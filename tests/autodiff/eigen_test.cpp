#include "autodiff/eigen.h"

#include "autodiff/gradient.h"
#include "autodiff/operations/products.h"
#include "tests/catch.h"
#include "tests/error_of.h"

namespace eigen_test {

using namespace palimpsest;
using Catch::Matchers::Contains;

namespace {

using RowMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

const Tensor expected = Tensor::from({1.0, 2.0, 3.0, 4.0, 5.0, 6.0}, {2, 3});

template <class Matrix>
Matrix counted() {
  Matrix m(2, 3);
  m << 1, 2, 3, 4, 5, 6;
  return m;
}

}  // namespace

TEST_CASE("a row-major matrix given up is taken over, a column-major one copied", "[eigen]") {
  RowMatrix rows = counted<RowMatrix>();
  const double* const memory = rows.data();
  const Tensor shared = to_tensor(std::move(rows));
  CHECK(shared.data<double>().data() == memory);
  CHECK(same_bits(shared, expected));

  Eigen::MatrixXd columns = counted<Eigen::MatrixXd>();
  CHECK(same_bits(to_tensor(columns), expected));
  CHECK(columns(1, 0) == 4);
  CHECK(same_bits(to_tensor(std::move(columns)), expected));

  Eigen::VectorXf vector = Eigen::VectorXf::LinSpaced(5, 0, 4);
  const float* const start = vector.data();
  const Tensor line = to_tensor(std::move(vector));
  CHECK(line.data<float>().data() == start);
  CHECK(same_bits(line, Tensor::vector({0, 1, 2, 3, 4})));

  CHECK(same_bits(to_tensor(Eigen::Matrix2f::Identity() * 2), Tensor::matrix({{2, 0}, {0, 2}})));
  CHECK(same_bits(to_tensor(Eigen::Array3f(1, 2, 3)), Tensor::vector({1, 2, 3})));
  CHECK(to_tensor(Eigen::MatrixXf(0, 4)).type() == ValueType{Shape{0, 4}, DType::f32});
  CHECK(to_tensor(Eigen::ArrayXX<bool>::Constant(1, 2, true)).dtype() == DType::boolean);
  CHECK(to_tensor(Eigen::VectorX<Eigen::bfloat16>::Ones(3)).dtype() == DType::bf16);
  CHECK(to_tensor(Eigen::VectorX<Eigen::half>::Ones(3)).at(2) == 1);
}

TEST_CASE("a column-major matrix given up is its transpose without a copy", "[eigen]") {
  Eigen::MatrixXd columns = counted<Eigen::MatrixXd>();
  const double* const memory = columns.data();
  const Tensor flipped = to_tensor_transposed(std::move(columns));
  CHECK(flipped.data<double>().data() == memory);
  CHECK(same_bits(flipped, Tensor::from({1.0, 4.0, 2.0, 5.0, 3.0, 6.0}, {3, 2})));

  Tape tape;
  const Var a = tape.parameter(flipped);
  const Var x = tape.constant(Tensor::from({1.0, 10.0, 100.0}, {3}));
  CHECK(same_bits(matmul(a, x, {.transpose_a = true}).value(), Tensor::from({321.0, 654.0}, {2})));
}

TEST_CASE("a tensor outlives the scope of the matrix it took over", "[eigen]") {
  Tensor tensor;
  {
    RowMatrix rows = counted<RowMatrix>();
    tensor = to_tensor(std::move(rows)).reshape({3, 2});
  }
  CHECK(tensor.at(5) == 6);
}

TEST_CASE("a borrowed tensor is the caller's memory", "[eigen]") {
  RowMatrix rows = counted<RowMatrix>();
  const Tensor tensor = borrow_tensor(rows);
  rows(1, 2) = 7;
  CHECK(tensor.at(5) == 7);
  tensor.data<double>()[0] = -1;
  CHECK(rows(0, 0) == -1);

  const float numbers[] = {1, 2, 3, 4, 5, 6};
  using Strided = Eigen::Map<const Eigen::MatrixXf, 0, Eigen::OuterStride<>>;
  CHECK(borrow_tensor(Eigen::Map<const Eigen::VectorXf>(numbers, 6)).shape() == Shape{6});
  CHECK(borrow_tensor(Strided(numbers, 6, 1, Eigen::OuterStride<>(6))).shape() == Shape{6, 1});
  CHECK(borrow_tensor(Strided(numbers, 1, 6, Eigen::OuterStride<>(1))).at(5) == 6);
  const auto not_dense = [](const auto& matrix) {
    check_error([&] { borrow_tensor(matrix); }, {"[borrow_tensor]", "to_tensor"});
  };
  not_dense(Strided(numbers, 2, 3, Eigen::OuterStride<>(2)));
  not_dense(Strided(numbers, 1, 3, Eigen::OuterStride<>(2)));
  not_dense(Eigen::Map<const Eigen::VectorXf, 0, Eigen::InnerStride<2>>(numbers, 3));
  not_dense(rows.leftCols(2));
}

TEST_CASE("tensors are seen as Eigen maps of their elements", "[eigen]") {
  const Tensor tensor = expected.clone();
  auto matrix = as_matrix<double>(tensor);
  CHECK(matrix(1, 0) == 4);
  matrix.row(0) *= 2;
  CHECK(tensor.at(2) == 6);
  const auto fixed = as_matrix<const double>(tensor);
  STATIC_REQUIRE(std::is_const_v<std::remove_pointer_t<decltype(fixed.data())>>);
  CHECK(fixed.sum() == 27);
  CHECK(as_array<double>(tensor).maxCoeff() == 6);
  CHECK(as_vector<const double>(tensor.reshape({6})).dot(Eigen::VectorXd::Ones(6)) == 27);
  CHECK(as_array<const Eigen::half>(Tensor::ones({3, 2}, DType::f16)).size() == 6);
  CHECK(as_matrix<float>(Tensor({0, 3})).rows() == 0);

  CHECK_THAT(error_of([&] { as_matrix<float>(tensor); }),
             Contains("[as_matrix]") && Contains("f64 (2, 3)") && Contains("f32"));
  CHECK_THAT(error_of([&] { as_vector<double>(tensor); }),
             Contains("[as_vector]") && Contains("2 axes") && Contains("reshape"));
  CHECK_THAT(error_of([&] { as_matrix<double>(tensor.reshape({6})); }), Contains("1 axes"));
  CHECK_THAT(error_of([&] { as_array<double>(Tensor()); }), Contains("this Tensor is empty"));
}

}  // namespace eigen_test
