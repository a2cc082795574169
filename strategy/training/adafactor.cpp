#include "strategy/training/adafactor.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

#include "autodiff/parallel.h"
#include "strategy/training/gradient_sums.h"
#include "strategy/training/optimizer.h"
#include "strategy/training/settings.h"

namespace palimpsest {
namespace {

/// A parameter as matrices over its last two axes.
struct MatrixSizes {
  std::int64_t rows;     // of all matrices together
  std::int64_t height;   // rows of one matrix
  std::int64_t columns;  // of each

  explicit MatrixSizes(const Shape& shape)
      : rows(shape.elements() / shape.size(-1)), height(shape.size(-2)), columns(shape.size(-1)) {}
};

/// The sum of f(begin, end) over chunks of [0, n). The chunks depend on n and `grain` only.
template <class F>
double sum_over_chunks(std::int64_t n, std::int64_t grain, F f) {
  std::vector<double> sums(static_cast<std::size_t>(divide_up(n, grain)));
  parallel_chunks(n, grain, [&](std::int64_t begin, std::int64_t end) {
    sums[static_cast<std::size_t>(begin / grain)] = f(begin, end);
  });
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

template <class T>
void move_towards(T& average, double value, double weight) {
  average = static_cast<T>(average + weight * (value - average));
}

/// Moves the means of squares of each row and each column towards those of the gradient.
template <class T>
void update_means(const MatrixSizes& sizes, const T* g, double weight, T* rows, T* columns) {
  const std::int64_t width = sizes.columns;
  parallel_chunks(
      sizes.rows, grain_for(static_cast<double>(width)), [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row) {
          double sum = 0;
          for (const T x : std::span(g + row * width, static_cast<std::size_t>(width))) {
            sum += static_cast<double>(x) * x;
          }
          move_towards(rows[row], sum / static_cast<double>(width), weight);
        }
      });
  const std::int64_t height = sizes.height;
  parallel_chunks(
      sizes.rows / height * width,
      std::max<std::int64_t>(16, grain_for(static_cast<double>(height))),
      [&](std::int64_t begin, std::int64_t end) {
        std::vector<double> sums(static_cast<std::size_t>(end - begin));
        // A chunk may extend over several matrices.
        for (std::int64_t at = begin; at < end;) {
          const std::int64_t matrix = at / width;
          const std::int64_t last = std::min(end, (matrix + 1) * width);
          const T* row = g + matrix * height * width - matrix * width;
          for (std::int64_t i = 0; i < height; ++i, row += width) {
            for (std::int64_t j = at; j < last; ++j) {
              sums[static_cast<std::size_t>(j - begin)] += static_cast<double>(row[j]) * row[j];
            }
          }
          at = last;
        }
        for (std::int64_t j = begin; j < end; ++j) {
          move_towards(columns[j],
                       sums[static_cast<std::size_t>(j - begin)] / static_cast<double>(height),
                       weight);
        }
      });
}

class Adafactor final : public Optimizer {
 public:
  explicit Adafactor(const AdafactorOptions& options)
      : Optimizer({"adafactor", options.learning_rate, options.weight_decay, options.groups}),
        options_(options) {
    require_setting(options.decay_exponent <= 0, "adafactor", "decay_exponent",
                    options.decay_exponent, "0 or less");
    require_not_negative("adafactor", "epsilon1", options.epsilon1.value_or(0));
    require_not_negative("adafactor", "epsilon2", options.epsilon2);
    require_setting(options.clip_threshold > 0, "adafactor", "clip_threshold",
                    options.clip_threshold, positive);
  }

 private:
  std::vector<Slot> slots(const ValueType& parameter) const override {
    const int rank = parameter.shape.rank();
    if (rank < 2) return {{"square", parameter}};
    Slot rows{"rows", parameter};
    Slot columns{"columns", parameter};
    rows.type.shape.erase(rank - 1);
    columns.type.shape.erase(rank - 2);
    return {rows, columns};
  }

  ValueType parameter_of(const NamedTensors& state) const override {
    const auto rows = state.find("rows");
    const auto columns = state.find("columns");
    if (rows == state.end() || columns == state.end() || columns->second.shape().rank() == 0) {
      return Optimizer::parameter_of(state);
    }
    ValueType type = rows->second.type();
    type.shape.push_back(columns->second.shape().size(-1));
    return type;
  }

  void update(const Update& update) const override {
    if (update.parameter.elements() == 0) return;
    visit_floating(update.parameter.dtype(), [&]<class T>(T) { update_in<T>(update); });
  }

  template <class T>
  void update_in(const Update& update) const {
    const T* const g = update.gradient.data<T>().data();
    const double weight = std::pow(static_cast<double>(update.step), options_.decay_exponent);
    const double least = options_.epsilon1.value_or(std::numeric_limits<T>::epsilon());
    const auto least_square = static_cast<T>(least * least);
    const std::int64_t n = update.parameter.elements();
    if (update.parameter.shape().rank() < 2) {
      T* const square = update.state[0].data<T>().data();
      const auto move = [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          move_towards(square[i], static_cast<double>(g[i]) * g[i], weight);
        }
      };
      parallel_chunks(n, grain_for(4), move);
      apply<T>(update, n, 1, [&](std::int64_t i) {
        return [=](std::int64_t) { return g[i] / std::sqrt(std::max(square[i], least_square)); };
      });
      return;
    }
    const MatrixSizes sizes(update.parameter.shape());
    T* const rows = update.state[0].data<T>().data();
    T* const columns = update.state[1].data<T>().data();
    update_means(sizes, g, weight, rows, columns);
    std::vector<double> means;  // of the rows of each matrix
    for (std::int64_t first = 0; first < sizes.rows; first += sizes.height) {
      const double sum = std::accumulate(rows + first, rows + first + sizes.height, 0.0);
      means.push_back(std::max(sum / static_cast<double>(sizes.height), least));
    }
    apply<T>(update, sizes.rows, sizes.columns, [&](std::int64_t row) {
      const std::int64_t matrix = row / sizes.height;
      // Dividing first keeps the product of two small numbers from becoming 0.
      const T share = static_cast<T>(rows[row] / means[static_cast<std::size_t>(matrix)]);
      const T* const of_columns = columns + matrix * sizes.columns;
      const T* const gradient = g + row * sizes.columns;
      return [=](std::int64_t column) {
        return gradient[column] / std::sqrt(std::max(share * of_columns[column], least_square));
      };
    });
  }

  /// Subtracts a multiple of u(row)(column) from the parameter.
  template <class T, class U>
  void apply(const Update& update, std::int64_t rows, std::int64_t columns, U u) const {
    const auto count = static_cast<double>(rows * columns);
    const std::int64_t grain = grain_for(8 * static_cast<double>(columns));
    const double size = std::sqrt(sum_of_squares(update.parameter) / count);
    const double squares = sum_over_chunks(rows, grain, [&](std::int64_t begin, std::int64_t end) {
      double sum = 0;
      for (std::int64_t row = begin; row < end; ++row) {
        const auto of_row = u(row);
        for (std::int64_t column = 0; column < columns; ++column) {
          const auto value = static_cast<double>(of_row(column));
          sum += value * value;
        }
      }
      return sum;
    });
    const double clip = std::max(1.0, std::sqrt(squares / count) / options_.clip_threshold);
    const double rate =
        std::min(update.learning_rate, 1 / std::sqrt(static_cast<double>(update.step)));
    const T factor = static_cast<T>(rate * std::max(options_.epsilon2, size) / clip);
    const T shrink = static_cast<T>(1 - update.learning_rate * update.weight_decay);
    T* const p = update.parameter.data<T>().data();
    parallel_chunks(rows, grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const auto of_row = u(row);
        for (std::int64_t column = 0; column < columns; ++column) {
          T& x = p[row * columns + column];
          x = x * shrink - factor * of_row(column);
        }
      }
    });
  }

  AdafactorOptions options_;
};

}  // namespace

std::unique_ptr<Optimizer> adafactor(AdafactorOptions options) {
  return std::make_unique<Adafactor>(options);
}

}  // namespace palimpsest
