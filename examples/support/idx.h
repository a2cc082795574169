#pragma once

#include <string>

#include "palimpsest.h"

namespace examples {

/// Reads a gzipped IDX file of bytes, the format of MNIST and its relatives, as an i32 tensor of
/// the shape it states. Throws `palimpsest::FileError` when the file is missing, truncated or not
/// IDX.
palimpsest::Tensor read_idx(const std::string& path);

/// Images as f32 (n, 1, height, width) with values in [0, 1], and their labels as i32 (n).
struct LabelledImages {
  palimpsest::Tensor images;
  palimpsest::Tensor labels;

  std::int64_t size() const { return labels.elements(); }
  /// Images and labels [first, first + count), sharing storage.
  LabelledImages slice(std::int64_t first, std::int64_t count) const;
  /// Images and labels at `order[first] …`, copied.
  LabelledImages gather(std::span<const std::int64_t> order) const;
};

/// Reads Fashion-MNIST from `folder`; `part` is "train" or "t10k". Throws `palimpsest::FileError`
/// when a file is missing or malformed, or when images and labels do not match.
LabelledImages read_fashion_mnist(const std::string& folder, const std::string& part);

/// The folder where Debian's package dataset-fashion-mnist installs its files.
inline constexpr const char* fashion_mnist_folder = "/usr/share/datasets/fashion-mnist";

}  // namespace examples
