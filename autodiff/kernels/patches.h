#pragma once

#include <array>
#include <cstdint>

#include "autodiff/bytes.h"
#include "autodiff/kernels/kernels.h"

namespace palimpsest {

struct ConvolutionGeometry;

/// How one spatial axis of a grid reads a source through a window. Position q reads element
/// q·step + base + j·tap_step under tap j; out of range it reads zero.
struct Window {
  GridAxis grid;
  std::int64_t taps = 1;
  std::int64_t tap_step = 1;
};
/// Three axes; missing leading ones have one position and one tap.
using Windows = std::array<Window, 3>;
/// The windows that compute the outputs of a convolution.
Windows windows_of(const ConvolutionGeometry& g);

/// Product of the positions, or of the taps, over all axes.
std::int64_t positions_of(const Windows& windows);
std::int64_t taps_of(const Windows& windows);

/// The source values under every tap, with the values that a block of positions reads under one tap
/// of one channel stored contiguously. This is the im2col matrix, built block by block in bounded
/// space. If the windows move by one element along the outermost axis, its taps differ only by a
/// shift and share a row. A single tap that reads the source in order needs no space.
class Patches {
 public:
  /// Positions of one image, or all positions of several small images.
  struct Block {
    std::int64_t first_image, images;
    std::int64_t first_position, positions;

    std::int64_t columns() const { return images * positions; }
  };

  /// `most_positions` bounds the columns of a block. The partition depends on the arguments only.
  Patches(const Windows& windows, std::int64_t batch, std::int64_t channels,
          std::int64_t most_positions, std::int64_t element_size);

  std::int64_t blocks() const { return image_blocks_ * position_blocks_; }
  Block block(std::int64_t index) const;
  /// Columns of the largest block.
  std::int64_t most_columns() const { return images_ * positions_; }
  /// Channels laid out at a time.
  std::int64_t channels() const { return channels_; }
  /// Space that `fill` needs.
  Bytes bytes() const;

  /// Offset of a tap's row from the pointer that `fill` returns; taps are in row-major order.
  std::int64_t offset(std::int64_t channel, std::int64_t tap) const;
  /// Lays out `channels` channels of a block in `space` and returns where the rows start. `source`
  /// is the first channel of the batch's first image; images are `image_step` elements apart.
  template <class T>
  const T* fill(const Block& block, const T* source, std::int64_t image_step, std::int64_t channels,
                T* space) const;

 private:
  std::int64_t stored_taps() const { return taps_of(windows_) / shifts_; }

  Windows windows_;
  std::int64_t batch_;
  std::int64_t element_size_;
  std::int64_t images_ = 1;     // per block
  std::int64_t positions_ = 0;  // per block and image
  std::int64_t channels_ = 0;
  std::int64_t image_blocks_ = 0;
  std::int64_t position_blocks_ = 0;
  std::int64_t row_ = 0;     // row stride in elements
  std::int64_t shifts_ = 1;  // taps of the outermost axis that share a row
  std::int64_t shift_ = 0;   // elements between two such taps, possibly negative
  std::size_t shifted_axis_ = 0;
  bool direct_ = false;  // the rows are those of the source
};

}  // namespace palimpsest
