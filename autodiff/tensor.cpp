#include "autodiff/tensor.h"

#include <algorithm>
#include <cstring>

#include "autodiff/convert.h"
#include "autodiff/enumerators.h"
#include "autodiff/heap_block.h"
#include "autodiff/number_text.h"
#include "autodiff/philox.h"

namespace palimpsest {

Buffer allocate_buffer(Bytes bytes) {
  const HeapBlock block = allocate_heap(bytes);
  return Buffer(block.data, [block](std::byte*) { free_heap(block); });
}

Bytes ValueType::bytes() const { return shape.elements() * size_of(dtype); }

std::string to_string(const ValueType& type) {
  return std::string(name_of(type.dtype)) + " " + to_string(type.shape);
}

Tensor::Tensor(Shape shape, DType dtype) : type_{shape, dtype} {
  require_enumerator(dtype, enumerators<DType>, "[tensor] the dtype");
  buffer_ = allocate_buffer(type_.bytes());
}

Tensor::Tensor(Buffer buffer, Shape shape, DType dtype)
    : buffer_(std::move(buffer)), type_{shape, dtype} {
  require_enumerator(dtype, enumerators<DType>, "[tensor] the dtype");
}

Tensor Tensor::zeros(Shape shape, DType dtype) {
  Tensor result(shape, dtype);
  std::memset(result.raw(), 0, static_cast<std::size_t>(result.bytes()));
  return result;
}

Tensor Tensor::ones(Shape shape, DType dtype) { return full(shape, 1, dtype); }

Tensor Tensor::full(Shape shape, double value, DType dtype) {
  Tensor result(shape, dtype);
  visit(dtype, [&]<class T>(T) { std::ranges::fill(result.data<T>(), convert_element<T>(value)); });
  return result;
}

Tensor Tensor::arange(std::int64_t n, DType dtype) {
  if (n < 0) throw ArgumentError("[arange] n is " + std::to_string(n) + "; give 0 or more");
  Tensor counts(Shape{n}, DType::i64);
  const auto data = counts.data<std::int64_t>();
  for (std::int64_t i = 0; i < n; ++i) data[static_cast<std::size_t>(i)] = i;
  return counts.to(dtype);
}

namespace {

// A generation that no tape reaches, so that initial weights and a tape's first mask use different
// streams.
constexpr std::uint32_t tensor_generation = 0xffffffff;

/// Fills in the compute dtype, then converts to `dtype`.
template <class Fill>
Tensor random(const Shape& shape, DType dtype, Fill fill) {
  if (!is_floating(dtype)) {
    throw DTypeError("[tensor] random numbers need a floating dtype, not " +
                     std::string(name_of(dtype)) + "; convert them with to()");
  }
  Tensor result(shape, compute_dtype(dtype));
  visit_floating(result.dtype(), [&]<class T>(T) { fill(result.data<T>()); });
  return result.to(dtype);
}

}  // namespace

Tensor Tensor::uniform(Shape shape, std::uint64_t seed, double low, double high, DType dtype) {
  if (!is_interval(low, high)) {
    throw ArgumentError("[tensor] cannot draw uniform numbers from [" + number_text(low) + ", " +
                        number_text(high) + "); give finite low < high");
  }
  return random(shape, dtype, [&]<class T>(std::span<T> data) {
    fill_between({seed, tensor_generation, 0}, data.data(), std::ssize(data), low, high, dtype);
  });
}

Tensor Tensor::normal(Shape shape, std::uint64_t seed, double mean, double deviation, DType dtype) {
  if (!(deviation >= 0)) {
    throw ArgumentError("[tensor] the deviation of normal numbers is " + number_text(deviation) +
                        "; give 0 or more");
  }
  return random(shape, dtype, [&]<class T>(std::span<T> data) {
    fill_normal({seed, tensor_generation, 0}, data.data(), std::ssize(data), mean, deviation);
  });
}

Tensor Tensor::matrix(std::initializer_list<std::initializer_list<float>> rows) {
  const std::size_t columns = rows.size() == 0 ? 0 : rows.begin()->size();
  std::vector<float> values;
  for (const auto& row : rows) {
    if (row.size() != columns) {
      throw ShapeError("[tensor] a row of " + std::to_string(row.size()) +
                       " elements follows rows of " + std::to_string(columns) +
                       "; give rows of equal length");
    }
    values.insert(values.end(), row.begin(), row.end());
  }
  return from(values,
              Shape{static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(columns)});
}

void Tensor::require_defined() const {
  if (!defined()) throw ArgumentError("[tensor] this Tensor is empty; assign a tensor first");
}

void Tensor::require_dtype(DType requested) const {
  require_defined();
  if (requested != dtype()) {
    throw DTypeError("[data] the tensor is " + to_string(type_) + ", not " +
                     std::string(name_of(requested)) + "; convert it with to()");
  }
}

Tensor Tensor::from_elements(DType dtype, const void* elements, std::size_t count, Shape shape) {
  if (static_cast<std::int64_t>(count) != shape.elements()) {
    throw ShapeError("[tensor] " + std::to_string(count) + " values do not fill shape " +
                     to_string(shape) + "; give " + std::to_string(shape.elements()));
  }
  Tensor result(shape, dtype);
  if (count > 0) std::memcpy(result.raw(), elements, static_cast<std::size_t>(result.bytes()));
  return result;
}

template double Tensor::item<double>() const;

double Tensor::at(std::int64_t index) const {
  require_defined();
  if (index < 0 || index >= elements()) {
    throw ArgumentError("[at] index " + std::to_string(index) + " is out of range for shape " +
                        to_string(shape()) +
                        (elements() == 0 ? ", which has no elements"
                                         : "; give 0 to " + std::to_string(elements() - 1)));
  }
  return visit(dtype(), [&]<class T>(T) {
    return convert_element<double>(reinterpret_cast<const T*>(raw())[index]);
  });
}

Shape infer_shape(std::span<const std::int64_t> sizes, std::int64_t elements) {
  Shape shape;
  int inferred = -1;
  std::int64_t known = 1;
  for (const std::int64_t size : sizes) {
    if (size == -1 && inferred >= 0) {
      throw ShapeError("[reshape] two sizes are -1; only one can be inferred, so give the other");
    }
    if (size == -1) {
      inferred = shape.rank();
      shape.push_back(0);
    } else {
      shape.push_back(size);
      known = multiply_sizes(known, size);
    }
  }
  if (inferred >= 0) {
    if (known == 0 || elements % known != 0) {
      std::string given;
      for (const std::int64_t size : sizes) {
        given += (given.empty() ? "" : ", ") + std::to_string(size);
      }
      throw ShapeError("[reshape] no single size in place of -1 in (" + given + ") gives " +
                       std::to_string(elements) +
                       " elements; give other sizes with a positive product that divides " +
                       std::to_string(elements));
    }
    shape[inferred] = elements / known;
  }
  if (shape.elements() != elements) {
    throw ShapeError("[reshape] " + std::to_string(elements) + " elements do not fit shape " +
                     to_string(shape) + "; give sizes whose product is " +
                     std::to_string(elements));
  }
  return shape;
}

Tensor Tensor::reshape(Shape shape) const {
  if (shape.elements() != elements()) {
    throw ShapeError("[reshape] shape " + to_string(this->shape()) + " has " +
                     std::to_string(elements()) + " elements, but " + to_string(shape) + " has " +
                     std::to_string(shape.elements()) + "; give sizes whose product is " +
                     std::to_string(elements()));
  }
  return Tensor(buffer_, shape, dtype());
}

Tensor Tensor::reshape(std::initializer_list<std::int64_t> sizes) const {
  return reshape(infer_shape({sizes.begin(), sizes.size()}, elements()));
}

Tensor Tensor::clone() const {
  require_defined();
  Tensor copy(shape(), dtype());
  std::memcpy(copy.raw(), raw(), static_cast<std::size_t>(bytes()));
  return copy;
}

Tensor Tensor::to(DType dtype) const {
  require_defined();
  if (dtype == this->dtype()) return *this;
  Tensor result(shape(), dtype);
  convert({raw(), type_}, {result.raw(), result.type_});
  return result;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined();
  return a.type() == b.type() &&
         std::memcmp(a.raw(), b.raw(), static_cast<std::size_t>(a.bytes())) == 0;
}

}  // namespace palimpsest
