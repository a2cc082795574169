#pragma once

#include <cstddef>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <span>
#include <vector>

#include "autodiff/bytes.h"
#include "autodiff/dtype.h"
#include "autodiff/export.h"
#include "autodiff/shape.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// Shared ownership of raw storage.
using Buffer = std::shared_ptr<std::byte>;

/// Alignment of every buffer, in bytes: a cache line and the widest vector register.
inline constexpr std::size_t buffer_alignment = 64;

/// Uninitialised storage aligned to `buffer_alignment`. Throws `EnvironmentError` when out of
/// memory.
Buffer allocate_buffer(Bytes bytes);

/// Shape and dtype of a value; known before the value is computed.
struct ValueType {
  Shape shape;
  DType dtype = DType::f32;

  /// Bytes of the elements. Throws `ShapeError` when no memory could hold them.
  Bytes bytes() const;
  bool operator==(const ValueType&) const = default;
};

/// `f32 (2, 3)`.
std::string to_string(const ValueType& type);

class Index;

/// A dense, row-major, contiguous array. A handle: copies share the storage; use `clone` for a deep
/// copy. `data`, `item`, `at`, `clone` and `to` throw `ArgumentError` for an undefined tensor.
///
/// The operators and functions of `Var` compute with tensors too, at once and without a tape; see
/// autodiff/operations/tensor_functions.h and others beside it.
class Tensor {
 public:
  /// An undefined tensor; `defined()` is false.
  Tensor() = default;
  Tensor(const Tensor&) = default;
  Tensor(Tensor&&) noexcept = default;
  // Not for temporaries, so that `t[0] = u` does not compile: it would not change t.
  Tensor& operator=(const Tensor&) & = default;
  Tensor& operator=(Tensor&&) & noexcept = default;
  ~Tensor() = default;
  /// Uninitialised elements. This and all functions that make tensors throw `ShapeError` for a
  /// shape that no memory could hold, and `EnvironmentError` when out of memory.
  explicit Tensor(Shape shape, DType dtype = DType::f32);
  /// A tensor over existing storage, without copying; `buffer` must hold the elements in row-major
  /// order.
  Tensor(Buffer buffer, Shape shape, DType dtype);

  static Tensor zeros(Shape shape, DType dtype = DType::f32);
  static Tensor ones(Shape shape, DType dtype = DType::f32);
  /// `value` in every element, converted as by `convert_element`.
  static Tensor full(Shape shape, double value, DType dtype = DType::f32);
  /// 0, 1, … n−1. Throws `ShapeError` for a negative n.
  static Tensor arange(std::int64_t n, DType dtype = DType::i64);
  /// Uniform on [low, high). Uses Philox 4×32 keyed by `seed`, in a stream that no tape uses. The
  /// result does not depend on the number of threads. Throws `DTypeError` unless the dtype is
  /// floating, `ArgumentError` unless low < high and both and their difference are finite.
  static Tensor uniform(Shape shape, std::uint64_t seed, double low = 0, double high = 1,
                        DType dtype = DType::f32);
  /// Normal with the given mean and standard deviation. Throws `ArgumentError` for a negative
  /// deviation, and `DTypeError` as `uniform` does.
  static Tensor normal(Shape shape, std::uint64_t seed, double mean = 0, double deviation = 1,
                       DType dtype = DType::f32);
  /// A tensor without axes.
  static Tensor scalar(double value, DType dtype = DType::f32) { return full({}, value, dtype); }

  /// A copy of `values` in `shape`, with the dtype of `T`. Throws `ShapeError` when the counts
  /// differ.
  template <Element T>
  static Tensor from(std::span<const T> values, Shape shape);
  template <Element T>
  static Tensor from(const std::vector<T>& values, Shape shape)
    requires(!std::is_same_v<T, bool>)
  {
    return from(std::span<const T>(values), shape);
  }
  template <Element T>
  static Tensor from(std::initializer_list<T> values, Shape shape) {
    return from(std::span<const T>(values.begin(), values.size()), shape);
  }
  /// A one-axis f32 tensor.
  static Tensor vector(std::initializer_list<float> values) {
    return from(values, Shape{static_cast<std::int64_t>(values.size())});
  }
  /// A two-axis f32 tensor. Throws `ShapeError` when the rows differ in length.
  static Tensor matrix(std::initializer_list<std::initializer_list<float>> rows);

  bool defined() const { return buffer_ != nullptr; }
  const Shape& shape() const& { return type_.shape; }
  Shape shape() const&& { return type_.shape; }
  DType dtype() const { return type_.dtype; }
  const ValueType& type() const& { return type_; }
  ValueType type() const&& { return type_; }
  std::int64_t elements() const { return type_.shape.elements(); }
  Bytes bytes() const { return type_.bytes(); }
  const Buffer& buffer() const& { return buffer_; }
  Buffer buffer() const&& { return buffer_; }
  /// The first byte of the storage; null for an undefined tensor.
  std::byte* raw() const { return buffer_.get(); }

  /// The elements in row-major order. Throws `DTypeError` when `T` is not the tensor's element
  /// type. Tapes do not see what is written through it: after that, clear those that have computed
  /// values from the tensor.
  template <Element T>
  std::span<T> data() const&;
  /// Not for temporaries, whose elements end with the statement: name the tensor first.
  template <Element T>
  std::span<T> data() const&& = delete;
  /// The only element, converted as by `to`. Throws `ShapeError` unless there is exactly one.
  template <class T = double>
  T item() const;
  /// Element `index` in row-major order, converted to f64. Throws `ArgumentError` when out of
  /// range.
  double at(std::int64_t index) const;

  /// The same storage with another shape. In a list of sizes, one may be −1 and is inferred. Throws
  /// `ShapeError` for another number of elements.
  Tensor reshape(Shape shape) const;
  Tensor reshape(std::initializer_list<std::int64_t> sizes) const;
  /// The elements at `index`, or at several indices; see `Index`. A copy with its own storage.
  /// Throws as `Var::operator[]` does.
  Tensor operator[](const Index& index) const;
  Tensor operator[](std::initializer_list<Index> indices) const;
  /// A copy with its own storage.
  Tensor clone() const;
  /// The elements converted to `dtype` as by `convert_element`. Shares the storage if they already
  /// have that dtype.
  Tensor to(DType dtype) const;

 private:
  void require_defined() const;
  void require_dtype(DType requested) const;
  static Tensor from_elements(DType dtype, const void* elements, std::size_t count, Shape shape);

  Buffer buffer_;
  ValueType type_;
};

/// True when types and all bits of all elements are equal, or neither tensor is defined.
bool same_bits(const Tensor& a, const Tensor& b);

/// Prints the type, then the elements; the middle of long axes is elided, so the text is short.
std::ostream& operator<<(std::ostream& stream, const Tensor& tensor);
std::string to_string(const Tensor& tensor);

/// `sizes` with a −1 replaced by the size that gives `elements` elements. Throws `ShapeError` when
/// no size does.
Shape infer_shape(std::span<const std::int64_t> sizes, std::int64_t elements);

// Definitions of templates ------------------------------------------------------------------------

template <Element T>
Tensor Tensor::from(std::span<const T> values, Shape shape) {
  return from_elements(dtype_of<T>(), values.data(), values.size(), shape);
}

template <Element T>
std::span<T> Tensor::data() const& {
  require_dtype(dtype_of<T>());
  return {reinterpret_cast<T*>(raw()), static_cast<std::size_t>(elements())};
}

template <class T>
T Tensor::item() const {
  if (elements() != 1) {
    throw ShapeError("[item] shape " + to_string(shape()) +
                     " does not have exactly one element; reduce it or use data()");
  }
  return visit(dtype(), [&]<class E>(E) { return convert_element<T>(data<E>()[0]); });
}
extern template double Tensor::item<double>() const;

}  // namespace palimpsest
