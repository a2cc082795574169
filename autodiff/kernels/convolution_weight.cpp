#include <algorithm>

#include "autodiff/kernels/convolution.h"
#include "autodiff/kernels/patches.h"
#include "autodiff/kernels/shares.h"

namespace palimpsest {
namespace {

constexpr Bytes most_turned = Bytes{128} << 10;
constexpr Bytes most_partial = Bytes{1} << 20;
// Number of tasks that keeps many threads busy.
constexpr std::int64_t enough_tasks = 16;
constexpr std::int64_t most_slices = 16;
// With fewer rows of patches, transposing y does not pay.
constexpr std::int64_t least_rows = 64;
// Up to this many results per group, products along positions are faster than along results.
constexpr std::int64_t few_results = 4;

/// w(o, c, tap) = Σ y(o, position)·patch(c, tap, position) over the positions of the batch. Tasks
/// are slices of the batch × groups × ranges of channels. With many results, the sum is a product
/// of patches with y transposed to position × result, so that vectors hold results. With few, it
/// consists of dot products along positions.
template <class T>
class WeightPlan {
 public:
  explicit WeightPlan(const ConvolutionGeometry& g)
      : g_(g),
        channels_(g.channels / g.groups),
        results_(g.results / g.groups),
        turned_(results_ > few_results),
        width_(turned_ ? round_up(results_, vector) : results_),
        slices_(wanted_slices()),
        range_(wanted_range()),
        patches_(windows_of(g), g.batch, range_, most_columns(), sizeof(T)) {
    slices_ = std::clamp<std::int64_t>(patches_.blocks(), 1, slices_);
  }

  Bytes bytes(int threads) const {
    return table_bytes() + partial_bytes() + shares(threads).bytes();
  }

  void run(const T* x, const T* y, T* weight, std::span<std::byte> workspace, int threads) const {
    if (patches_.blocks() == 0) {
      std::fill_n(weight, g_.results * depth(), T(0));
      return;
    }
    auto* table = reinterpret_cast<std::int64_t*>(workspace.data());
    auto* partial = reinterpret_cast<T*>(workspace.data() + table_bytes());
    if (partial_bytes() == 0) partial = weight;
    fill_table(table);
    shares(threads).run(
        workspace.subspan(static_cast<std::size_t>(table_bytes() + partial_bytes())),
        [&](std::int64_t begin, std::int64_t end, std::byte* share) {
          for (std::int64_t task = begin; task < end; ++task) {
            sum(task, x, y, partial, table, reinterpret_cast<T*>(share));
          }
        });
    if (partial_bytes() > 0) combine(partial, weight);
  }

 private:
  static constexpr std::int64_t vector = 64 / sizeof(T);

  std::int64_t depth() const { return channels_ * g_.taps(); }
  std::int64_t group_size() const { return depth() * width_; }
  Bytes slice_bytes() const {
    return std::max<Bytes>(1, g_.groups * group_size() * static_cast<Bytes>(sizeof(T)));
  }
  Bytes partial_bytes() const {
    return !turned_ && slices_ == 1 ? 0 : round_up(slices_ * slice_bytes(), 64);
  }
  std::int64_t wanted_tasks() const { return (enough_tasks + g_.groups - 1) / g_.groups; }
  std::int64_t wanted_slices() const {
    const std::int64_t parts = g_.batch * (1 + g_.output_size() / 512);
    const std::int64_t affordable = most_partial / slice_bytes();
    return std::clamp<std::int64_t>(std::min({wanted_tasks(), parts, affordable}), 1, most_slices);
  }
  std::int64_t wanted_range() const {
    const std::int64_t ranges = std::clamp<std::int64_t>(
        wanted_tasks() / slices_, 1, std::max<std::int64_t>(1, depth() / least_rows));
    return (channels_ + ranges - 1) / ranges;
  }
  std::int64_t ranges() const { return (channels_ + range_ - 1) / range_; }
  std::int64_t most_columns() const {
    const Bytes row = width_ * static_cast<Bytes>(sizeof(T));
    return turned_ ? std::clamp<std::int64_t>(most_turned / row, vector, 512) : 512;
  }
  /// Offset tables: positions, positions of transposed results, rows of patches.
  Bytes table_bytes() const {
    const std::int64_t rows = patches_.channels() * g_.taps();
    return round_up((2 * patches_.most_columns() + rows) * static_cast<Bytes>(sizeof(std::int64_t)),
                    64);
  }
  std::int64_t turned_size() const { return turned_ ? patches_.most_columns() * width_ : 0; }

  Shares shares(int threads) const {
    const double flops = 2.0 * static_cast<double>(g_.batch * g_.output_size()) /
                         static_cast<double>(slices_) * static_cast<double>(group_size()) /
                         static_cast<double>(ranges());
    return Shares(slices_ * ranges() * g_.groups,
                  std::max<std::int64_t>(1, static_cast<std::int64_t>((1 << 21) / (flops + 1e4))),
                  patches_.bytes() + round_up(turned_size() * static_cast<Bytes>(sizeof(T)), 64),
                  threads);
  }

  void fill_table(std::int64_t* table) const {
    const std::int64_t columns = patches_.most_columns();
    for (std::int64_t i = 0; i < columns; ++i) {
      table[i] = i;
      table[columns + i] = i * width_;
    }
    for (std::int64_t i = 0; i < patches_.channels() * g_.taps(); ++i) {
      table[2 * columns + i] = patches_.offset(i / g_.taps(), i % g_.taps());
    }
  }

  void sum(std::int64_t task, const T* x, const T* y, T* partial, const std::int64_t* table,
           T* space) const {
    const std::int64_t group = task % g_.groups;
    const std::int64_t range = task / g_.groups % ranges();
    const std::int64_t slice = task / g_.groups / ranges();
    const std::int64_t first_channel = range * range_;
    const std::int64_t last_channel = std::min(channels_, first_channel + range_);
    const std::int64_t first_block = patches_.blocks() * slice / slices_;
    const std::int64_t last_block = patches_.blocks() * (slice + 1) / slices_;
    T* target = partial + (slice * g_.groups + group) * group_size();
    T* turned = space + patches_.bytes() / static_cast<Bytes>(sizeof(T));
    std::fill_n(turned, turned_size(), T(0));
    x += group * channels_ * g_.input_size();
    y += group * results_ * g_.output_size();
    for (std::int64_t index = first_block; index < last_block; ++index) {
      const Patches::Block block = patches_.block(index);
      const T* y_block =
          y + block.first_image * g_.results * g_.output_size() + block.first_position;
      if (turned_) turn(block, y_block, turned);
      for (std::int64_t c = first_channel; c < last_channel; c += patches_.channels()) {
        const std::int64_t channels = std::min(patches_.channels(), last_channel - c);
        const T* rows = patches_.fill(block, x + c * g_.input_size(), g_.channels * g_.input_size(),
                                      channels, space);
        const bool add = index > first_block;
        if (turned_) {
          multiply(block, rows, turned, target + c * g_.taps() * width_, channels, table, add);
        } else {
          dot(block, rows, y_block, target + c * g_.taps(), channels, table, add);
        }
      }
    }
  }

  void turn(const Patches::Block& block, const T* y, T* turned) const {
    for (std::int64_t image = 0; image < block.images; ++image) {
      kernels().convolution<T>().transpose(y + image * g_.results * g_.output_size(),
                                           g_.output_size(), results_, block.positions,
                                           turned + image * block.positions * width_, width_);
    }
  }

  void multiply(const Patches::Block& block, const T* rows, const T* turned, T* target,
                std::int64_t channels, const std::int64_t* table, bool add) const {
    OffsetProduct<T> product{};
    product.m = channels * g_.taps();
    product.n = width_;
    product.k = block.columns();
    product.a = rows;
    product.a_row = table + 2 * patches_.most_columns();
    product.a_depth = table;
    product.b = turned;
    product.b_depth = table + patches_.most_columns();
    product.c = target;
    product.c_row = width_;
    product.accumulate = add;
    kernels().convolution<T>().product(product);
  }

  void dot(const Patches::Block& block, const T* rows, const T* y, T* target, std::int64_t channels,
           const std::int64_t* table, bool add) const {
    RowDots<T> dots{};
    dots.m = channels * g_.taps();
    dots.n = block.positions;
    dots.a_row = table + 2 * patches_.most_columns();
    for (std::int64_t image = 0; image < block.images; ++image) {
      for (std::int64_t result = 0; result < results_; ++result) {
        dots.a = rows + image * block.positions;
        dots.b = y + (image * g_.results + result) * g_.output_size();
        dots.c = target + result * depth();
        dots.accumulate = add || image > 0;
        kernels().convolution<T>().dots(dots);
      }
    }
  }

  /// Adds the slices in order and transposes the sums to the layout of the weights.
  void combine(const T* partial, T* weight) const {
    const std::int64_t slice_size = g_.groups * group_size();
    const std::int64_t depth_step = turned_ ? width_ : 1;
    const std::int64_t result_step = turned_ ? 1 : depth();
    const double cost = static_cast<double>(slices_ * results_);
    parallel_chunks(g_.groups * depth(), grain_for(cost),
                    [&](std::int64_t begin, std::int64_t end) {
                      for (std::int64_t i = begin; i < end; ++i) {
                        const std::int64_t group = i / depth();
                        const std::int64_t place = i % depth();
                        const T* from = partial + group * group_size() + place * depth_step;
                        T* to = weight + group * results_ * depth() + place;
                        for (std::int64_t result = 0; result < results_; ++result) {
                          T total = from[result * result_step];
                          for (std::int64_t slice = 1; slice < slices_; ++slice) {
                            total += from[slice * slice_size + result * result_step];
                          }
                          to[result * depth()] = total;
                        }
                      }
                    });
  }

  ConvolutionGeometry g_;
  std::int64_t channels_, results_;  // per group
  bool turned_;
  std::int64_t width_;   // results per group, padded to whole vectors if transposed
  std::int64_t slices_;  // of the batch
  std::int64_t range_;   // channels per task
  Patches patches_;
};

}  // namespace

template <class T>
void convolve_weight(const ConvolutionGeometry& g, const T* x, const T* y, T* weight,
                     std::span<std::byte> workspace, int threads) {
  WeightPlan<T>(g).run(x, y, weight, workspace, threads);
}

template <class T>
Bytes convolve_weight_workspace(const ConvolutionGeometry& g, int threads) {
  return WeightPlan<T>(g).bytes(threads);
}

template void convolve_weight(const ConvolutionGeometry&, const float*, const float*, float*,
                              std::span<std::byte>, int);
template void convolve_weight(const ConvolutionGeometry&, const double*, const double*, double*,
                              std::span<std::byte>, int);
template Bytes convolve_weight_workspace<float>(const ConvolutionGeometry&, int);
template Bytes convolve_weight_workspace<double>(const ConvolutionGeometry&, int);

}  // namespace palimpsest
