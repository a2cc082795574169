#include "autodiff/kernels/convolution.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "autodiff/kernels/patches.h"
#include "autodiff/kernels/shares.h"
#include "autodiff/operation.h"

namespace palimpsest {
namespace {

constexpr std::int64_t most_patches = 512;
constexpr Bytes most_beside = Bytes{128} << 10;
constexpr double chunk_flops = 1 << 21;

/// Products of a source with the weights, on a regular subgrid of the result's image. A convolution
/// is one correlation. A transposed convolution is one for each residue modulo the strides.
struct Correlation {
  std::int64_t groups;
  std::int64_t sources, results;                      // channels per group
  std::int64_t source_step, result_step, group_step;  // of the weights, in elements
  Windows windows;
  std::array<std::int64_t, 3> first_tap{};  // first kernel tap that the windows use
  std::array<std::int64_t, 3> tap_stride{1, 1, 1};
  std::array<std::int64_t, 3> kernel;
  std::array<std::int64_t, 3> first{};  // image element of position 0
  std::array<std::int64_t, 3> stride{1, 1, 1};
  std::array<std::int64_t, 3> image;  // sizes of the result

  std::int64_t image_size() const { return image[0] * image[1] * image[2]; }

  /// Offset of the weights of window tap `tap`.
  std::int64_t weight_offset(std::int64_t tap) const {
    std::array<std::int64_t, 3> at{};
    for (std::size_t axis = 3; axis-- > 0; tap /= windows[axis].taps) {
      at[axis] = first_tap[axis] + tap % windows[axis].taps * tap_stride[axis];
    }
    return (at[0] * kernel[1] + at[1]) * kernel[2] + at[2];
  }
};

Correlation forward_correlation(const ConvolutionGeometry& g) {
  const std::int64_t sources = g.channels / g.groups;
  const std::int64_t results = g.results / g.groups;
  Correlation c{.groups = g.groups,
                .sources = sources,
                .results = results,
                .source_step = g.taps(),
                .result_step = sources * g.taps(),
                .group_step = results * sources * g.taps(),
                .windows = windows_of(g),
                .kernel = g.kernel,
                .image = g.output};
  return c;
}

/// Elements first, first + stride, … of one axis of an input. They are reached by tap `tap` and
/// every tap that follows in steps of the geometry's tap stride.
struct Residue {
  std::int64_t first, tap;
};

std::int64_t tap_stride(const ConvolutionGeometry& g, std::size_t axis) {
  return g.stride[axis] / std::gcd(g.stride[axis], g.dilation[axis]);
}

/// The residues that any tap reaches; at most as many as taps.
std::vector<Residue> residues(const ConvolutionGeometry& g, std::size_t axis) {
  const std::int64_t stride = g.stride[axis];
  std::vector<Residue> reached;
  for (std::int64_t tap = 0; tap < std::min(tap_stride(g, axis), g.kernel[axis]); ++tap) {
    const std::int64_t place = (tap * g.dilation[axis] - g.padding[axis]) % stride;
    const std::int64_t first = place < 0 ? place + stride : place;
    if (first < g.input[axis]) reached.push_back({first, tap});
  }
  return reached;
}

/// Input h = first + stride·q reads output (h + padding − tap·dilation)/stride where that is an
/// integer.
Correlation transposed_correlation(const ConvolutionGeometry& g,
                                   const std::array<Residue, 3>& residues) {
  Correlation c = forward_correlation(g);
  std::swap(c.sources, c.results);
  std::swap(c.source_step, c.result_step);
  c.image = g.input;
  c.stride = g.stride;
  for (std::size_t a = 0; a < 3; ++a) {
    const std::int64_t stride = g.stride[a];
    const auto [first, tap] = residues[a];
    c.first[a] = first;
    c.tap_stride[a] = tap_stride(g, a);
    c.first_tap[a] = tap;
    Window& w = c.windows[a];
    w.grid.positions = (g.input[a] - first - 1) / stride + 1;
    w.grid.source = g.output[a];
    w.grid.step = 1;
    w.grid.base = (first + g.padding[a] - tap * g.dilation[a]) / stride;
    w.taps = (g.kernel[a] - tap - 1) / c.tap_stride[a] + 1;
    w.tap_step = -c.tap_stride[a] * g.dilation[a] / stride;
  }
  return c;
}

/// One correlation with its work partition, which depends on the sizes only.
template <class T>
class Plan {
 public:
  Plan(const Correlation& correlation, std::int64_t batch, int threads)
      : c_(correlation),
        batch_(batch),
        patches_(c_.windows, batch, c_.sources, most_patches, sizeof(T)),
        in_place_(patches_.most_columns() <= positions_of(c_.windows) &&
                  c_.image_size() == positions_of(c_.windows)),
        depth_(patches_.channels() * taps_of(c_.windows)),
        rows_at_once_(rows_at_once()),
        shares_(make_shares(threads)) {}

  Bytes bytes() const { return table_bytes() + shares_.bytes(); }

  /// True when `run` can apply the epilogue to blocks that are still in the cache.
  bool finishes() const { return in_place_; }

  void run(const T* source, const T* weight, const T* bias, T* result,
           std::span<std::byte> workspace, const EpilogueKernel* finish) const {
    auto* table = reinterpret_cast<std::int64_t*>(workspace.data());
    fill_table(table);
    shares_.run(workspace.subspan(static_cast<std::size_t>(table_bytes())),
                [&](std::int64_t begin, std::int64_t end, std::byte* share) {
                  for (std::int64_t task = begin; task < end; ++task) {
                    block(patches_.block(task / c_.groups), task % c_.groups, source, weight, bias,
                          result, table, reinterpret_cast<T*>(share), finish);
                  }
                });
  }

 private:
  std::int64_t rows_at_once() const {
    if (in_place_ || depth_ == 0) return c_.results;
    const Bytes row = patches_.most_columns() * static_cast<Bytes>(sizeof(T));
    return std::clamp<std::int64_t>(most_beside / row / 6 * 6, 6,
                                    std::max<std::int64_t>(c_.results, 6));
  }

  Bytes table_bytes() const {
    return round_up(2 * depth_ + c_.results, 16) * static_cast<Bytes>(sizeof(std::int64_t));
  }

  Shares make_shares(int threads) const {
    const std::int64_t beside =
        in_place_ ? 0 : std::min(rows_at_once_, c_.results) * patches_.most_columns();
    const double flops = 2.0 * static_cast<double>(c_.results) * static_cast<double>(c_.sources) *
                         static_cast<double>(taps_of(c_.windows)) *
                         static_cast<double>(patches_.most_columns());
    return Shares(patches_.blocks() * c_.groups,
                  std::max<std::int64_t>(1, static_cast<std::int64_t>(chunk_flops / (flops + 1e4))),
                  patches_.bytes() + round_up(beside, 16) * static_cast<Bytes>(sizeof(T)), threads);
  }

  /// Three tables: depth offsets of the weights, of the patches, and row offsets of the weights.
  void fill_table(std::int64_t* table) const {
    const std::int64_t taps = taps_of(c_.windows);
    for (std::int64_t i = 0; i < depth_; ++i) {
      table[i] = i / taps * c_.source_step + c_.weight_offset(i % taps);
      table[depth_ + i] = patches_.offset(i / taps, i % taps);
    }
    for (std::int64_t i = 0; i < c_.results; ++i) table[2 * depth_ + i] = i * c_.result_step;
  }

  void block(const Patches::Block& block, std::int64_t group, const T* source, const T* weight,
             const T* bias, T* result, const std::int64_t* table, T* space,
             const EpilogueKernel* finish) const {
    const T* const whole = result;
    std::int64_t plane = 1;
    for (const Window& window : c_.windows) plane *= window.grid.source;
    source += group * c_.sources * plane;
    weight += group * c_.group_step;
    result += (block.first_image * c_.groups + group) * c_.results * c_.image_size();
    T* beside = space + patches_.bytes() / static_cast<Bytes>(sizeof(T));
    OffsetProduct<T> product{};
    product.n = block.columns();
    product.a_depth = table;
    product.b_depth = table + depth_;
    for (std::int64_t first = 0; first < c_.sources; first += patches_.channels()) {
      const std::int64_t channels = std::min(patches_.channels(), c_.sources - first);
      product.b = patches_.fill(block, source + first * plane, c_.groups * c_.sources * plane,
                                channels, space);
      product.k = channels * taps_of(c_.windows);
      product.a = weight + first * c_.source_step;
      const bool add = first > 0;
      for (std::int64_t row = 0; row < c_.results; row += rows_at_once_) {
        product.m = std::min(rows_at_once_, c_.results - row);
        product.a_row = table + 2 * depth_ + row;
        product.start = add || bias == nullptr ? nullptr : bias + group * c_.results + row;
        T* target = result + row * c_.image_size();
        product.accumulate = in_place_ && add;
        product.c = in_place_ ? target + block.first_position : beside;
        product.c_row = in_place_ ? c_.image_size() : block.columns();
        kernels().convolution<T>().product(product);
        if (finish != nullptr && first + channels == c_.sources) {
          for (std::int64_t i = 0; i < product.m; ++i) {
            (*finish)(product.c + i * product.c_row - whole, block.columns());
          }
        }
        if (in_place_) continue;
        for (std::int64_t i = 0; i < product.m; ++i) {
          place(block, beside + i * block.columns(), target + i * c_.image_size(), add);
        }
      }
    }
  }

  /// Writes one channel's results to their positions in its images.
  void place(const Patches::Block& block, const T* from, T* image, bool add) const {
    const std::int64_t width = c_.windows[2].grid.positions;
    const std::int64_t height = c_.windows[1].grid.positions;
    const std::int64_t last = block.first_position + block.positions;
    for (std::int64_t b = 0; b < block.images; ++b) {
      for (std::int64_t at = block.first_position; at < last;) {
        const std::int64_t row = at / width;
        const std::int64_t begin = at - row * width;
        const std::int64_t end = std::min(width, begin + last - at);
        const std::int64_t i = c_.first[0] + row / height * c_.stride[0];
        const std::int64_t j = c_.first[1] + row % height * c_.stride[1];
        T* to = image + (i * c_.image[1] + j) * c_.image[2] + c_.first[2];
        for (std::int64_t q = begin; q < end; ++q, ++from) {
          T& target = to[q * c_.stride[2]];
          target = add ? target + *from : *from;
        }
        at += end - begin;
      }
      image += c_.groups * c_.results * c_.image_size();
    }
  }

  Correlation c_;
  std::int64_t batch_;
  Patches patches_;
  bool in_place_;  // products are written to the result itself
  std::int64_t depth_;
  std::int64_t rows_at_once_;
  Shares shares_;
};

/// Calls `f` with the correlations of a transposed convolution. Returns whether they cover the
/// whole input.
template <class F>
bool for_transposed(const ConvolutionGeometry& g, F f) {
  const std::vector<Residue> axes[] = {residues(g, 0), residues(g, 1), residues(g, 2)};
  for (const Residue& i : axes[0]) {
    for (const Residue& j : axes[1]) {
      for (const Residue& k : axes[2]) f(transposed_correlation(g, {i, j, k}));
    }
  }
  bool all = true;
  for (std::size_t a = 0; a < 3; ++a) {
    all &= std::ssize(axes[a]) == std::min(g.stride[a], g.input[a]);
  }
  return all;
}

/// Results that no tap reaches are the bias.
template <class T>
void fill_with_bias(std::int64_t batch, std::int64_t channels, std::int64_t size, const T* bias,
                    T* result) {
  const auto planes = batch * channels;
  parallel_chunks(
      planes, grain_for(static_cast<double>(size)), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          std::fill_n(result + i * size, size, bias == nullptr ? T(0) : bias[i % channels]);
        }
      });
}

/// Applies the epilogue to all n elements of a result.
void finish_all(const EpilogueKernel& finish, std::int64_t n) {
  parallel_chunks(n, grain_for(1),
                  [&](std::int64_t begin, std::int64_t end) { finish(begin, end - begin); });
}

}  // namespace

template <class T>
void convolve(const ConvolutionGeometry& g, const T* x, const T* weight, const T* bias, T* y,
              std::span<std::byte> workspace, int threads, const EpilogueKernel* finish) {
  const Plan<T> plan(forward_correlation(g), g.batch, threads);
  const bool by_block = plan.finishes();
  plan.run(x, weight, bias, y, workspace, by_block ? finish : nullptr);
  if (finish != nullptr && !by_block) finish_all(*finish, g.batch * g.results * g.output_size());
}

template <class T>
Bytes convolve_workspace(const ConvolutionGeometry& g, int threads) {
  return Plan<T>(forward_correlation(g), g.batch, threads).bytes();
}

template <class T>
void convolve_transposed(const ConvolutionGeometry& g, const T* y, const T* weight, const T* bias,
                         T* x, std::span<std::byte> workspace, int threads,
                         const EpilogueKernel* finish) {
  std::vector<Correlation> parts;
  const bool all = for_transposed(g, [&](const Correlation& part) { parts.push_back(part); });
  if (!all) fill_with_bias(g.batch, g.channels, g.input_size(), bias, x);
  bool by_block = false;
  for (const Correlation& part : parts) {
    const Plan<T> plan(part, g.batch, threads);
    by_block = all && parts.size() == 1 && plan.finishes();
    plan.run(y, weight, bias, x, workspace, by_block ? finish : nullptr);
  }
  if (finish != nullptr && !by_block) finish_all(*finish, g.batch * g.channels * g.input_size());
}

template <class T>
Bytes convolve_transposed_workspace(const ConvolutionGeometry& g, int threads) {
  Bytes most = 0;
  for_transposed(g, [&](const Correlation& part) {
    most = std::max(most, Plan<T>(part, g.batch, threads).bytes());
  });
  return most;
}

template void convolve(const ConvolutionGeometry&, const float*, const float*, const float*, float*,
                       std::span<std::byte>, int, const EpilogueKernel*);
template void convolve(const ConvolutionGeometry&, const double*, const double*, const double*,
                       double*, std::span<std::byte>, int, const EpilogueKernel*);
template Bytes convolve_workspace<float>(const ConvolutionGeometry&, int);
template Bytes convolve_workspace<double>(const ConvolutionGeometry&, int);
template void convolve_transposed(const ConvolutionGeometry&, const float*, const float*,
                                  const float*, float*, std::span<std::byte>, int,
                                  const EpilogueKernel*);
template void convolve_transposed(const ConvolutionGeometry&, const double*, const double*,
                                  const double*, double*, std::span<std::byte>, int,
                                  const EpilogueKernel*);
template Bytes convolve_transposed_workspace<float>(const ConvolutionGeometry&, int);
template Bytes convolve_transposed_workspace<double>(const ConvolutionGeometry&, int);

}  // namespace palimpsest
