#pragma once

#include <array>
#include <cstdint>

#include "autodiff/bytes.h"
#include "autodiff/kernels/kernels.h"

namespace palimpsest {

struct ConvolutionGeometry;

/// How one spatial axis of a grid reads a source through a window: position q reads under tap j
/// element q·step + base + j·tap_step, which counts as zero where there is none.
struct Window {
  GridAxis grid;
  std::int64_t taps = 1;
  std::int64_t tap_step = 1;
};
/// Three axes; missing ones stand in front with one position and one tap.
using Windows = std::array<Window, 3>;
/// Those that make the outputs of a convolution.
Windows windows_of(const ConvolutionGeometry& g);

/// Number of positions, or of taps, of all axes.
std::int64_t positions_of(const Windows& windows);
std::int64_t taps_of(const Windows& windows);

/// The source's values under every tap, laid out so that what a block of positions reads under one
/// tap of one channel is contiguous: the matrix im2col would write, a block at a time, in bounded
/// space. Taps along the outermost axis differ by a shift only where the windows move by one
/// element, so that one row serves all of them; a single tap that reads the source as it lies needs
/// no space at all.
class Patches {
 public:
  /// Positions of one image, or all positions of several small ones.
  struct Block {
    std::int64_t first_image, images;
    std::int64_t first_position, positions;

    std::int64_t columns() const { return images * positions; }
  };

  /// `most_positions` bounds the columns of a block. Depends on its arguments alone.
  Patches(const Windows& windows, std::int64_t batch, std::int64_t channels,
          std::int64_t most_positions, std::int64_t element_size);

  std::int64_t blocks() const { return image_blocks_ * position_blocks_; }
  Block block(std::int64_t index) const;
  /// Columns of the largest block.
  std::int64_t most_columns() const { return images_ * positions_; }
  /// Channels that are laid out at a time.
  std::int64_t channels() const { return channels_; }
  /// Space that `fill` needs.
  Bytes bytes() const;

  /// Where the row of a tap starts behind what `fill` returned; taps in row-major order.
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
  std::int64_t images_ = 1;     // of a block
  std::int64_t positions_ = 0;  // of a block, in each image
  std::int64_t channels_ = 0;
  std::int64_t image_blocks_ = 0;
  std::int64_t position_blocks_ = 0;
  std::int64_t row_ = 0;     // elements from row to row
  std::int64_t shifts_ = 1;  // taps of the outermost axis that share a row
  std::int64_t shift_ = 0;   // elements from one of them to the next, possibly negative
  std::size_t shifted_axis_ = 0;
  bool direct_ = false;  // rows are the source's own
};

}  // namespace palimpsest
