#include "examples/support/idx.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

namespace examples {

using namespace palimpsest;

Tensor read_idx(const std::string& path) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose);
  if (file == nullptr) {
    throw FileError("[idx] cannot open " + path +
                    "; install the Debian package dataset-fashion-mnist");
  }
  const auto read = [&](unsigned char* into, std::int64_t count) {
    if (gzread(file.get(), into, static_cast<unsigned>(count)) != count) {
      throw FileError("[idx] " + path + ", byte " + std::to_string(gztell(file.get())) +
                      ": the file ends early");
    }
  };
  std::array<unsigned char, 4> word{};
  read(word.data(), 4);
  if (word[0] != 0 || word[1] != 0 || word[2] != 8) {
    throw FileError("[idx] " + path + ", byte 0: not an IDX file of bytes");
  }
  Shape shape;
  for (int axis = word[3]; axis > 0; --axis) {
    read(word.data(), 4);
    shape.push_back((word[0] << 24) | (word[1] << 16) | (word[2] << 8) | word[3]);
  }
  std::vector<unsigned char> bytes(static_cast<std::size_t>(shape.elements()));
  read(bytes.data(), shape.elements());
  Tensor result(shape, DType::i32);
  std::copy(bytes.begin(), bytes.end(), result.data<std::int32_t>().begin());
  return result;
}

LabelledImages LabelledImages::slice(std::int64_t first, std::int64_t count) const {
  const auto rows = [&](const Tensor& tensor) {
    Shape shape = tensor.shape();
    const Bytes row = tensor.bytes() / shape[0];
    shape[0] = count;
    return Tensor(Buffer(tensor.buffer(), tensor.raw() + first * row), shape, tensor.dtype());
  };
  return {rows(images), rows(labels)};
}

LabelledImages LabelledImages::gather(std::span<const std::int64_t> order) const {
  const auto rows = [&](const Tensor& tensor) {
    Shape shape = tensor.shape();
    const Bytes row = tensor.bytes() / shape[0];
    shape[0] = static_cast<std::int64_t>(order.size());
    Tensor result(shape, tensor.dtype());
    for (std::size_t i = 0; i < order.size(); ++i) {
      std::copy_n(tensor.raw() + order[i] * row, row, result.raw() + static_cast<Bytes>(i) * row);
    }
    return result;
  };
  return {rows(images), rows(labels)};
}

LabelledImages read_fashion_mnist(const std::string& folder, const std::string& part) {
  const Tensor pixels = read_idx(folder + "/" + part + "-images-idx3-ubyte.gz");
  const Tensor labels = read_idx(folder + "/" + part + "-labels-idx1-ubyte.gz");
  const Shape& shape = pixels.shape();
  if (shape.rank() != 3 || labels.shape().rank() != 1 || shape[0] != labels.elements()) {
    throw palimpsest::FileError(folder + ": images of shape " + to_string(shape) +
                                " and labels of shape " + to_string(labels.shape()) +
                                " do not match; give files of the same part");
  }
  Tensor images(Shape{shape[0], 1, shape[1], shape[2]});
  std::ranges::transform(pixels.data<std::int32_t>(), images.data<float>().begin(),
                         [](std::int32_t pixel) { return static_cast<float>(pixel) / 255.0f; });
  return {images, labels};
}

}  // namespace examples
