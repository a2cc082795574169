#pragma once

#include <Eigen/Core>
#include <memory>
#include <string>
#include <utility>

#include "autodiff/export.h"
#include "autodiff/tensor.h"

/// Conversions between tensors and Eigen's dense objects, without copying where the layout allows
/// it. Tensors are row-major; Eigen's matrices are column-major by default.
namespace palimpsest PALIMPSEST_EXPORT {

/// The DType of an Eigen scalar. Eigen's 16-bit types have the same layout as ours.
template <class T>
constexpr DType eigen_dtype() {
  using Scalar = std::remove_const_t<T>;
  if constexpr (std::is_same_v<Scalar, Eigen::half>) {
    return DType::f16;
  } else if constexpr (std::is_same_v<Scalar, Eigen::bfloat16>) {
    return DType::bf16;
  } else {
    return dtype_of<Scalar>();
  }
}

namespace detail {

/// The elements of `tensor` as `T`. Throws `DTypeError` for another dtype, `ShapeError` unless the
/// tensor has `rank` axes; −1 accepts any rank.
template <class T>
T* eigen_elements(const Tensor& tensor, int rank, const char* operation) {
  if (!tensor.defined())
    throw ArgumentError("[tensor] this Tensor is empty; assign a tensor first");
  const std::string name(operation);
  if (tensor.dtype() != eigen_dtype<T>()) {
    throw DTypeError("[" + name + "] the tensor is " + to_string(tensor.type()) + ", not " +
                     std::string(name_of(eigen_dtype<T>())) + "; convert it with to()");
  }
  if (rank >= 0 && tensor.shape().rank() != rank) {
    throw ShapeError("[" + name + "] shape " + to_string(tensor.shape()) + " has " +
                     std::to_string(tensor.shape().rank()) + " axes, not " + std::to_string(rank) +
                     "; reshape it first");
  }
  return reinterpret_cast<T*>(tensor.raw());
}

/// `Matrix`, const if `T` is const.
template <class T, class Matrix>
using LikeConst = std::conditional_t<std::is_const_v<T>, const Matrix, Matrix>;

template <class Derived>
Shape eigen_shape(const Eigen::DenseBase<Derived>& dense) {
  if constexpr (Derived::IsVectorAtCompileTime) return Shape{dense.size()};
  return Shape{dense.rows(), dense.cols()};
}

/// A tensor over the elements of `dense`. The tensor owns the object.
template <class Dense>
Tensor adopt(Dense&& dense, const Shape& shape) {
  const auto owner = std::make_shared<std::remove_cvref_t<Dense>>(std::forward<Dense>(dense));
  auto* data = reinterpret_cast<std::byte*>(owner->data());
  // An empty object may have no memory, and a tensor over a null pointer would count as undefined.
  if (data == nullptr) return Tensor(shape, eigen_dtype<typename Dense::Scalar>());
  return Tensor(Buffer(owner, data), shape, eigen_dtype<typename Dense::Scalar>());
}

/// An rvalue Eigen matrix or array that owns its memory.
template <class Dense>
concept GivenUp = !std::is_reference_v<Dense> && !std::is_const_v<Dense> &&
                  std::is_base_of_v<Eigen::PlainObjectBase<Dense>, Dense>;

}  // namespace detail

// Tensors as Eigen objects ------------------------------------------------------------------------

/// A row-major matrix map over a tensor with two axes; it shares the elements. Use
/// `as_matrix<const float>` for read-only access. Valid as long as the tensor's storage. Throws
/// `DTypeError` and `ShapeError`.
template <class T>
auto as_matrix(const Tensor& tensor) {
  using Matrix =
      Eigen::Matrix<std::remove_const_t<T>, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  T* data = detail::eigen_elements<T>(tensor, 2, "as_matrix");
  return Eigen::Map<detail::LikeConst<T, Matrix>>(data, tensor.shape()[0], tensor.shape()[1]);
}

/// A column vector map over a tensor with one axis; it shares the elements.
template <class T>
auto as_vector(const Tensor& tensor) {
  using Vector = Eigen::Matrix<std::remove_const_t<T>, Eigen::Dynamic, 1>;
  T* data = detail::eigen_elements<T>(tensor, 1, "as_vector");
  return Eigen::Map<detail::LikeConst<T, Vector>>(data, tensor.elements());
}

/// An array map over all elements of a tensor of any shape, in row-major order; it shares them.
template <class T>
auto as_array(const Tensor& tensor) {
  using Array = Eigen::Array<std::remove_const_t<T>, Eigen::Dynamic, 1>;
  T* data = detail::eigen_elements<T>(tensor, -1, "as_array");
  return Eigen::Map<detail::LikeConst<T, Array>>(data, tensor.elements());
}

// Eigen objects as tensors ------------------------------------------------------------------------

/// A copy of any dense expression. The result has two axes, or one if the expression's type is a
/// vector.
template <class Derived>
Tensor to_tensor(const Eigen::DenseBase<Derived>& dense) {
  using Scalar = typename Derived::Scalar;
  Tensor result(detail::eigen_shape(dense), eigen_dtype<Scalar>());
  using Rows = Eigen::Array<Scalar, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  Eigen::Map<Rows>(reinterpret_cast<Scalar*>(result.raw()), dense.rows(), dense.cols()) =
      dense.derived().array();
  return result;
}

/// Converts an rvalue matrix or array. The tensor takes over its memory if it is row-major; a
/// column-major matrix is copied (see `to_tensor_transposed`).
template <detail::GivenUp Dense>
Tensor to_tensor(Dense&& dense) {
  if (Dense::IsRowMajor || dense.rows() <= 1 || dense.cols() <= 1) {
    const Shape shape = detail::eigen_shape(dense);
    return detail::adopt(std::forward<Dense>(dense), shape);
  }
  return to_tensor(std::as_const(dense));
}

/// Takes over the memory of an rvalue column-major matrix without copying. Interpreted as row-major
/// it is the transpose, of shape (columns, rows); `matmul` undoes that with a transpose flag.
template <detail::GivenUp Dense>
  requires(!Dense::IsRowMajor && !Dense::IsVectorAtCompileTime)
Tensor to_tensor_transposed(Dense&& dense) {
  const Shape shape{dense.cols(), dense.rows()};
  return detail::adopt(std::forward<Dense>(dense), shape);
}

/// A tensor over the memory of an Eigen map or an lvalue matrix, without copying. The caller must
/// keep the memory alive as long as any copy of the tensor, or a tape that holds it. Throws
/// `ArgumentError` unless the elements are dense and row-major.
template <class Dense>
  requires(!detail::GivenUp<Dense>)
Tensor borrow_tensor(Dense&& dense) {
  using Object = std::remove_cvref_t<Dense>;
  using Scalar = typename Object::Scalar;
  // The stride between rows and within a row; each matters only if there are several of them.
  const auto row_step = Object::IsRowMajor ? dense.outerStride() : dense.innerStride();
  const auto column_step = Object::IsRowMajor ? dense.innerStride() : dense.outerStride();
  if ((dense.cols() > 1 && column_step != 1) || (dense.rows() > 1 && row_step != dense.cols())) {
    throw ArgumentError(
        "[borrow_tensor] the elements are not contiguous in row-major order; copy them with "
        "to_tensor");
  }
  if (dense.data() == nullptr) return to_tensor(dense);
  auto* data = reinterpret_cast<std::byte*>(const_cast<Scalar*>(dense.data()));
  return Tensor(Buffer(Buffer(), data), detail::eigen_shape(dense), eigen_dtype<Scalar>());
}

}  // namespace palimpsest
