#include "autodiff/tensor.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "autodiff/convert.h"
#include "autodiff/philox.h"

namespace palimpsest {

Buffer allocate_buffer(Bytes bytes) {
  const auto size = static_cast<std::size_t>(std::max<Bytes>(bytes, 1));
  const std::align_val_t alignment{buffer_alignment};
  auto* data = static_cast<std::byte*>(::operator new(size, alignment, std::nothrow));
  if (data == nullptr) {
    throw EnvironmentError("[memory] no memory for " + format_bytes(bytes) +
                           "; free some, or give backward a memory_budget");
  }
  return Buffer(data, [](std::byte* p) { ::operator delete(p, alignment); });
}

Bytes ValueType::bytes() const { return shape.elements() * size_of(dtype); }

std::string to_string(const ValueType& type) {
  return std::string(name_of(type.dtype)) + " " + to_string(type.shape);
}

Tensor::Tensor(Shape shape, DType dtype) : type_{shape, dtype} {
  buffer_ = allocate_buffer(type_.bytes());
}

Tensor::Tensor(Buffer buffer, Shape shape, DType dtype)
    : buffer_(std::move(buffer)), type_{shape, dtype} {}

Tensor Tensor::zeros(Shape shape, DType dtype) {
  Tensor result(shape, dtype);
  std::memset(result.raw(), 0, static_cast<std::size_t>(result.bytes()));
  return result;
}

Tensor Tensor::ones(Shape shape, DType dtype) { return full(shape, 1, dtype); }

Tensor Tensor::full(Shape shape, double value, DType dtype) {
  Tensor result(shape, dtype);
  visit(dtype, [&]<class T>(T) {
    const auto element = [&] {
      if constexpr (std::is_same_v<T, BFloat16> || std::is_same_v<T, Float16>) {
        return T(static_cast<float>(value));
      } else {
        return static_cast<T>(value);
      }
    }();
    std::ranges::fill(result.data<T>(), element);
  });
  return result;
}

Tensor Tensor::arange(std::int64_t n, DType dtype) {
  Tensor counts(Shape{n}, DType::i64);
  const auto data = counts.data<std::int64_t>();
  for (std::int64_t i = 0; i < n; ++i) data[static_cast<std::size_t>(i)] = i;
  return counts.to(dtype);
}

Tensor Tensor::uniform(Shape shape, std::uint64_t seed, double low, double high, DType dtype) {
  Tensor result(shape, dtype == DType::f64 ? DType::f64 : DType::f32);
  const RandomStream stream{seed, 0, 0};
  visit_floating(result.dtype(), [&]<class T>(T) {
    const auto data = result.data<T>();
    fill_uniform(stream, data.data(), result.elements());
    for (T& x : data) x = static_cast<T>(low + (high - low) * static_cast<double>(x));
  });
  return result.to(dtype);
}

Tensor Tensor::normal(Shape shape, std::uint64_t seed, double mean, double deviation, DType dtype) {
  Tensor result(shape, dtype == DType::f64 ? DType::f64 : DType::f32);
  const RandomStream stream{seed, 0, 0};
  visit_floating(result.dtype(), [&]<class T>(T) {
    const auto data = result.data<T>();
    fill_normal(stream, data.data(), result.elements());
    for (T& x : data) x = static_cast<T>(mean + deviation * static_cast<double>(x));
  });
  return result.to(dtype);
}

Tensor Tensor::matrix(std::initializer_list<std::initializer_list<float>> rows) {
  const std::size_t columns = rows.size() == 0 ? 0 : rows.begin()->size();
  std::vector<float> values;
  for (const auto& row : rows) {
    if (row.size() != columns) {
      throw ShapeError("[tensor] a row of " + std::to_string(row.size()) +
                       " elements among rows of " + std::to_string(columns));
    }
    values.insert(values.end(), row.begin(), row.end());
  }
  return from(values,
              Shape{static_cast<std::int64_t>(rows.size()), static_cast<std::int64_t>(columns)});
}

void Tensor::require_dtype(DType requested) const {
  if (!defined()) throw ArgumentError("[tensor] this Tensor holds nothing; assign one first");
  if (requested != dtype()) {
    throw DTypeError("[data] the tensor is " + to_string(type_) + ", not " +
                     std::string(name_of(requested)) + "; convert it with to()");
  }
}

double Tensor::at(std::int64_t index) const {
  if (!defined()) throw ArgumentError("[tensor] this Tensor holds nothing; assign one first");
  if (index < 0 || index >= elements()) {
    throw ArgumentError("[at] index " + std::to_string(index) + " is out of range for shape " +
                        to_string(shape()));
  }
  return visit(dtype(), [&]<class T>(T) {
    const T element = reinterpret_cast<const T*>(raw())[index];
    if constexpr (std::is_same_v<T, BFloat16> || std::is_same_v<T, Float16>) {
      return static_cast<double>(static_cast<float>(element));
    } else {
      return static_cast<double>(element);
    }
  });
}

Shape infer_shape(std::span<const std::int64_t> sizes, std::int64_t elements) {
  Shape shape;
  int inferred = -1;
  std::int64_t known = 1;
  for (const std::int64_t size : sizes) {
    if (size == -1 && inferred < 0) {
      inferred = shape.rank();
      shape.push_back(0);
    } else {
      shape.push_back(size);
      known *= size;
    }
  }
  if (inferred >= 0) {
    if (known == 0 || elements % known != 0) {
      throw ShapeError("[reshape] " + std::to_string(elements) + " elements do not divide into " +
                       to_string(shape) + " with the 0 to be inferred");
    }
    shape[inferred] = elements / known;
  }
  if (shape.elements() != elements) {
    throw ShapeError("[reshape] " + std::to_string(elements) + " elements do not fit shape " +
                     to_string(shape));
  }
  return shape;
}

Tensor Tensor::reshape(Shape shape) const {
  if (shape.elements() != elements()) {
    throw ShapeError("[reshape] shape " + to_string(this->shape()) + " has " +
                     std::to_string(elements()) + " elements, " + to_string(shape) + " " +
                     std::to_string(shape.elements()));
  }
  return Tensor(buffer_, shape, dtype());
}

Tensor Tensor::reshape(std::initializer_list<std::int64_t> sizes) const {
  return reshape(infer_shape({sizes.begin(), sizes.size()}, elements()));
}

Tensor Tensor::clone() const {
  Tensor copy(shape(), dtype());
  std::memcpy(copy.raw(), raw(), static_cast<std::size_t>(bytes()));
  return copy;
}

Tensor Tensor::to(DType dtype) const {
  if (dtype == this->dtype()) return *this;
  Tensor result(shape(), dtype);
  convert({raw(), type_}, {result.raw(), result.type_});
  return result;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.type() == b.type() &&
         std::memcmp(a.raw(), b.raw(), static_cast<std::size_t>(a.bytes())) == 0;
}

}  // namespace palimpsest
