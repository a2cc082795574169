#include "autodiff/kernels/patches.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "autodiff/kernels/convolution.h"
#include "autodiff/parallel.h"

namespace palimpsest {
namespace {

// The memory that one thread fills at a time; it stays in L2.
constexpr Bytes most_bytes = Bytes{256} << 10;
// Images with fewer positions are combined into blocks with about `gathered_columns` columns.
constexpr std::int64_t few_positions = 96;
constexpr std::int64_t gathered_columns = 192;
// Below this depth, a product spends its time loading and storing the result.
constexpr std::int64_t least_depth = 128;

bool reads_source_as_it_lies(const Windows& windows) {
  return std::all_of(windows.begin(), windows.end(), [](const Window& w) {
    return w.taps == 1 && w.grid.step == 1 && w.grid.base == 0 && w.grid.positions == w.grid.source;
  });
}

}  // namespace

Windows windows_of(const ConvolutionGeometry& g) {
  Windows windows;
  for (std::size_t a = 0; a < 3; ++a) {
    windows[a] = {
        {g.output[a], g.input[a], g.stride[a], -g.padding[a]}, g.kernel[a], g.dilation[a]};
  }
  return windows;
}

std::int64_t positions_of(const Windows& windows) {
  return windows[0].grid.positions * windows[1].grid.positions * windows[2].grid.positions;
}

std::int64_t taps_of(const Windows& windows) {
  return windows[0].taps * windows[1].taps * windows[2].taps;
}

Patches::Patches(const Windows& windows, std::int64_t batch, std::int64_t channels,
                 std::int64_t most_positions, std::int64_t element_size)
    : windows_(windows), batch_(batch), element_size_(element_size) {
  const std::int64_t positions = positions_of(windows);
  const std::int64_t taps = taps_of(windows);
  if (positions == 0 || batch == 0 || channels == 0 || taps == 0) return;
  const std::int64_t vector = 64 / element_size;
  const std::int64_t room = most_bytes / element_size;

  std::int64_t longest = most_positions;
  std::int64_t halo = 0;
  direct_ = reads_source_as_it_lies(windows) && positions >= vector;
  if (!direct_) {
    // Limits the row length, so that enough channels fit for a product of useful depth.
    const std::int64_t wanted = std::min(channels, divide_up(least_depth, taps));
    longest = std::clamp(room / (wanted * taps), vector, most_positions);
    if (positions < few_positions) {
      images_ = std::clamp<std::int64_t>(std::min(gathered_columns, longest) / positions, 1, batch);
    }
    while (shifted_axis_ < 2 && windows[shifted_axis_].taps == 1 &&
           windows[shifted_axis_].grid.positions == 1) {
      ++shifted_axis_;
    }
    const Window& outer = windows[shifted_axis_];
    const std::int64_t plane = positions / outer.grid.positions;
    const std::int64_t reach = (outer.taps - 1) * std::abs(outer.tap_step) * plane;
    const std::int64_t shared =
        std::min({room / (wanted * taps / outer.taps) - reach, most_positions, positions});
    if (images_ == 1 && outer.taps > 1 && outer.grid.step == 1 && shared >= vector &&
        reach < (outer.taps - 1) * shared) {
      longest = shared;
      shifts_ = outer.taps;
      shift_ = outer.tap_step * plane;
      halo = reach;
    }
  }
  positions_ = positions;
  if (images_ == 1 && positions > longest) {
    const std::int64_t step = longest < 4 * vector ? vector : 4 * vector;
    positions_ = round_up(divide_up(positions, divide_up(positions, longest)), step);
    // Every block has at least a vector of columns, so products never read past a source.
    while (positions % positions_ != 0 && positions % positions_ < vector) positions_ += vector;
    positions_ = std::min(positions_, positions);
  }
  position_blocks_ = divide_up(positions, positions_);
  image_blocks_ = divide_up(batch, images_);
  row_ = direct_ ? positions : round_up(std::max(most_columns(), vector) + halo, vector);
  channels_ = channels;
  if (!direct_) {
    const std::int64_t fit = std::clamp<std::int64_t>(room / (stored_taps() * row_), 1, channels);
    channels_ = divide_up(channels, divide_up(channels, fit));
  }
}

Patches::Block Patches::block(std::int64_t index) const {
  const std::int64_t image = index / position_blocks_ * images_;
  const std::int64_t position = index % position_blocks_ * positions_;
  return {image, std::min(images_, batch_ - image), position,
          std::min(positions_, positions_of(windows_) - position)};
}

Bytes Patches::bytes() const {
  // Reading a grid may overwrite up to 64 bytes after its end.
  return direct_ ? 0 : channels_ * stored_taps() * row_ * element_size_ + 64;
}

std::int64_t Patches::offset(std::int64_t channel, std::int64_t tap) const {
  std::int64_t shift = 0;
  if (shifts_ > 1) {
    // The axes before the shifted one have a single tap.
    const std::int64_t place = tap / stored_taps();
    shift = (shift_ < 0 ? place - (shifts_ - 1) : place) * shift_;
    tap %= stored_taps();
  }
  return (channel * stored_taps() + tap) * row_ + shift;
}

template <class T>
const T* Patches::fill(const Block& block, const T* source, std::int64_t image_step,
                       std::int64_t channels, T* space) const {
  source += block.first_image * image_step;
  if (direct_) return source + block.first_position;

  GridRead<T> read{{windows_[0].grid, windows_[1].grid, windows_[2].grid}, 0, 0, source, space};
  std::array<std::int64_t, 3> taps{windows_[0].taps, windows_[1].taps, windows_[2].taps};
  read.first = block.first_position;
  read.last = block.first_position + block.positions;
  if (shifts_ > 1) {
    GridAxis& axis = read.axes[shifted_axis_];
    const std::int64_t reach = (shifts_ - 1) * windows_[shifted_axis_].tap_step;
    axis.positions += std::abs(reach);
    axis.base += std::min<std::int64_t>(reach, 0);
    read.last += (shifts_ - 1) * std::abs(shift_);
    taps[shifted_axis_] = 1;
  }
  std::int64_t plane = 1;
  for (const Window& window : windows_) plane *= window.grid.source;
  const auto run = kernels().convolution<T>().read;
  const auto tap_base = [&](std::size_t axis, std::int64_t tap) {
    const std::int64_t base =
        axis == shifted_axis_ && shifts_ > 1 ? read.axes[axis].base : windows_[axis].grid.base;
    return base + tap * windows_[axis].tap_step;
  };
  GridRead<T> row = read;
  for (std::int64_t channel = 0; channel < channels; ++channel) {
    for (std::int64_t i = 0; i < taps[0]; ++i) {
      row.axes[0].base = tap_base(0, i);
      for (std::int64_t j = 0; j < taps[1]; ++j) {
        row.axes[1].base = tap_base(1, j);
        for (std::int64_t k = 0; k < taps[2]; ++k) {
          row.axes[2].base = tap_base(2, k);
          for (std::int64_t image = 0; image < block.images; ++image) {
            row.source = source + image * image_step + channel * plane;
            row.target = space + image * block.positions;
            run(row);
          }
          space += row_;
        }
      }
    }
  }
  return space - channels * stored_taps() * row_;
}

template const float* Patches::fill(const Block&, const float*, std::int64_t, std::int64_t,
                                    float*) const;
template const double* Patches::fill(const Block&, const double*, std::int64_t, std::int64_t,
                                     double*) const;

}  // namespace palimpsest
