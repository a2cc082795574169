#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "autodiff/gradient.h"
#include "autodiff/operations/lu.h"
#include "autodiff/operations/registry.h"

/// The determinant is a polynomial, so it has derivatives of every order at every matrix.
///
/// A. Its k-th derivative along e₁ … e_k is the coefficient of t₁·…·t_k in det(a + Σ tᵢ·eᵢ).
/// B. The gradient of that with respect to a is the same coefficient of the cofactors of
///    a + Σ tᵢ·eᵢ.
/// C. It is linear in every eᵢ and symmetric in them, so its adjoints have the same form. The
/// adjoint
///    of eᵢ replaces the direction eᵢ by the output's adjoint; that of a adds it as a direction.
///
/// One operation with any number of directions is therefore enough for every order. It computes B
/// with polynomials in t₁ … t_k, of degree at most 1 in each, as numbers. They have 2ᵏ
/// coefficients; coefficient s belongs to the product of the tᵢ with bit i set in s. A polynomial
/// has a reciprocal unless its constant term is 0.
///
/// The matrix ((b, c), (d, e)) is swept with complete pivoting as long as there is a pivot worth
/// dividing by. Then it is ((b⁻¹, x), (-y, s)) with x = b⁻¹·c, y = d·b⁻¹ and s = e - d·b⁻¹·c. Its
/// adjugate is det b·((det s·b⁻¹ + x·adj s·y, -x·adj s), (-adj s·y, adj s)).
///
/// adj s is computed from minors, without division. The constant terms of a large s are rounding
/// errors of 0, so products of more than k of them vanish: then adj s is 0.
namespace palimpsest {
namespace {

/// Arithmetic of polynomials with `size` = 2ᵏ coefficients.
struct Polynomials {
  std::size_t size;

  /// z += factor·x·y
  void add_product(const double* x, const double* y, double* z, double factor = 1) const {
    for (std::size_t s = 0; s < size; ++s) {
      double sum = 0;
      for (std::size_t part = s;; part = (part - 1) & s) {
        sum += x[part] * y[s & ~part];
        if (part == 0) break;
      }
      z[s] += factor * sum;
    }
  }
  /// x ← factor·x·y. Starts with the last coefficient, since earlier ones are still needed.
  void multiply(double* x, const double* y, double factor = 1) const {
    for (std::size_t s = size; s-- > 0;) {
      double sum = 0;
      for (std::size_t part = s;; part = (part - 1) & s) {
        sum += x[part] * y[s & ~part];
        if (part == 0) break;
      }
      x[s] = factor * sum;
    }
  }
  /// y ← 1/x
  void invert(const double* x, double* y) const {
    y[0] = 1 / x[0];
    for (std::size_t s = 1; s < size; ++s) {
      double sum = 0;
      for (std::size_t part = s; part != 0; part = (part - 1) & s) sum += x[part] * y[s & ~part];
      y[s] = -y[0] * sum;
    }
  }
};

/// Blocks with at most this many rows use minors instead of sweeping if their pivots are small.
constexpr std::int64_t most_minor_rows = 5;
/// In such a block, a pivot is small if it is below this share of the elements that its row and
/// column had initially.
constexpr double smallest_pivot = 0.01;

/// Computes the cofactors of one matrix of polynomials, in memory of `bytes(n, k)`.
class Sweep {
 public:
  static Bytes bytes(std::int64_t n, std::size_t directions) {
    const std::int64_t size = std::int64_t{1} << directions;
    const auto minors = std::max(static_cast<std::int64_t>(directions) + 1, most_minor_rows) + 1;
    return 8 * ((2 * n * n + minors + 4) * size + 4 * n);
  }

  Sweep(std::span<std::byte> space, std::int64_t n, std::size_t directions)
      : n_(n), k_(static_cast<std::int64_t>(directions)), ring_{std::size_t{1} << directions} {
    auto* next = reinterpret_cast<double*>(space.data());
    const auto take = [&](std::int64_t count) { return std::exchange(next, next + count); };
    const auto size = static_cast<std::int64_t>(ring_.size);
    elements_ = take(n * n * size);
    result_ = take(n * n * size);
    factor_ = take(size);
    determinant_ = take(size);
    inverse_ = take(size);
    rest_ = take(size);
    minors_ = take((std::max(k_ + 1, most_minor_rows) + 1) * size);
    row_scale_ = take(n);
    column_scale_ = take(n);
    rows_ = reinterpret_cast<std::int64_t*>(take(n));
    columns_ = reinterpret_cast<std::int64_t*>(take(n));
  }

  double* at(std::int64_t i, std::int64_t j) const {
    return elements_ + (i * n_ + j) * static_cast<std::int64_t>(ring_.size);
  }

  /// Computes the coefficients of the cofactors; `rounding` is the rounding error of the elements,
  /// and `least` the smallest of them whose reciprocal is in their range.
  void run(double rounding, double least) {
    least_ = least;
    prepare();
    std::int64_t rank = 0;
    while (rank < n_ && find_pivot(rank, rounding)) sweep(rank++);
    combine(rank);
  }
  /// The coefficient of t₁·…·t_k of the cofactor at (i, j) of the permuted matrix.
  double last(std::int64_t i, std::int64_t j) const {
    return sign_ * result_[(j * n_ + i + 1) * static_cast<std::int64_t>(ring_.size) - 1];
  }
  /// Original position of row i and column j of the permuted matrix.
  std::int64_t row(std::int64_t i) const { return rows_[i]; }
  std::int64_t column(std::int64_t j) const { return columns_[j]; }

 private:
  double* result(std::int64_t i, std::int64_t j) const {
    return result_ + (i * n_ + j) * static_cast<std::int64_t>(ring_.size);
  }
  void set_number(double* x, double number) const {
    std::fill_n(x, ring_.size, 0.0);
    x[0] = number;
  }

  void prepare() {
    sign_ = 1;
    set_number(determinant_, 1);
    std::fill_n(row_scale_, n_, 0.0);
    std::fill_n(column_scale_, n_, 0.0);
    for (std::int64_t i = 0; i < n_; ++i) {
      rows_[i] = columns_[i] = i;
      for (std::int64_t j = 0; j < n_; ++j) {
        const double magnitude = std::abs(*at(i, j));
        row_scale_[i] = std::max(row_scale_[i], magnitude);
        column_scale_[j] = std::max(column_scale_[j], magnitude);
      }
    }
  }

  /// Moves the largest constant term after the first `rank` rows and columns to their end. Returns
  /// false if all are 0 up to rounding. Also returns false if all are small and minors are cheap,
  /// since a division multiplies errors by the reciprocal once per direction.
  bool find_pivot(std::int64_t rank, double rounding) {
    const bool is_little = n_ - rank <= most_minor_rows;
    const double share = is_little ? smallest_pivot : static_cast<double>(n_) * rounding;
    double largest = 0;
    std::int64_t row = 0;
    std::int64_t column = 0;
    for (std::int64_t i = rank; i < n_; ++i) {
      for (std::int64_t j = rank; j < n_; ++j) {
        const double magnitude = std::abs(*at(i, j));
        const double scale = std::min(row_scale_[rows_[i]], column_scale_[columns_[j]]);
        if (magnitude <= largest || magnitude <= share * scale || magnitude < least_) continue;
        largest = magnitude;
        row = i;
        column = j;
      }
    }
    if (!(largest > 0)) return false;
    const auto size = static_cast<std::int64_t>(ring_.size);
    if (row != rank) {
      std::swap_ranges(at(row, 0), at(row, 0) + n_ * size, at(rank, 0));
      std::swap(rows_[row], rows_[rank]);
      sign_ = -sign_;
    }
    if (column != rank) {
      for (std::int64_t i = 0; i < n_; ++i) {
        std::swap_ranges(at(i, column), at(i, column) + size, at(i, rank));
      }
      std::swap(columns_[column], columns_[rank]);
      sign_ = -sign_;
    }
    return true;
  }

  /// Eliminates with the pivot at (r, r), in place (Gauss-Jordan sweep).
  void sweep(std::int64_t r) {
    const auto size = static_cast<std::int64_t>(ring_.size);
    ring_.multiply(determinant_, at(r, r));
    ring_.invert(at(r, r), inverse_);
    for (std::int64_t j = 0; j < n_; ++j) {
      if (j != r) ring_.multiply(at(r, j), inverse_);
    }
    for (std::int64_t i = 0; i < n_; ++i) {
      if (i == r) continue;
      std::copy_n(at(i, r), size, factor_);
      for (std::int64_t j = 0; j < n_; ++j) {
        if (j != r) ring_.add_product(factor_, at(r, j), at(i, j), -1);
      }
      ring_.multiply(at(i, r), inverse_, -1);
    }
    std::copy_n(inverse_, size, at(r, r));
  }

  /// The determinant of the elements at the marked `rows` and `columns`, counted from `rank` on; 1
  /// if there are none. `spare` holds a number for each row.
  void minor(std::int64_t rank, std::uint64_t rows, std::uint64_t columns, double* to,
             double* spare) const {
    set_number(to, rows == 0 ? 1 : 0);
    if (rows == 0) return;
    const std::int64_t i = rank + std::countr_zero(rows);
    double sign = 1;
    for (std::uint64_t left = columns; left != 0; left &= left - 1) {
      const int place = std::countr_zero(left);
      minor(rank, rows & (rows - 1), columns & ~(std::uint64_t{1} << place), spare,
            spare + ring_.size);
      ring_.add_product(at(i, rank + place), spare, to, std::exchange(sign, -sign));
    }
  }

  /// The adjugate of the permuted matrix.
  void combine(std::int64_t rank) {
    std::fill_n(result_, n_ * n_ * static_cast<std::int64_t>(ring_.size), 0.0);
    const std::int64_t singular = n_ - rank;
    if (singular > std::max(k_ + 1, most_minor_rows)) return;
    // NOLINTNEXTLINE(clang-analyzer-core.BitwiseShift): the rank is at most n
    const std::uint64_t all = (std::uint64_t{1} << singular) - 1;
    minor(rank, all, all, rest_, minors_);
    for (std::int64_t i = 0; i < singular; ++i) {
      for (std::int64_t j = 0; j < singular; ++j) {
        double* const to = result(rank + i, rank + j);
        minor(rank, all & ~(std::uint64_t{1} << j), all & ~(std::uint64_t{1} << i), to, minors_);
        for (std::size_t s = 0; s < ring_.size && (i + j) % 2 != 0; ++s) to[s] = -to[s];
      }
    }
    for (std::int64_t i = 0; i < rank; ++i) {
      for (std::int64_t j = rank; j < n_; ++j) {
        for (std::int64_t k = rank; k < n_; ++k) {
          ring_.add_product(at(i, k), result(k, j), result(i, j), -1);
          ring_.add_product(result(j, k), at(k, i), result(j, i));
        }
      }
    }
    for (std::int64_t i = 0; i < rank; ++i) {
      for (std::int64_t j = 0; j < rank; ++j) {
        ring_.add_product(rest_, at(i, j), result(i, j));
        for (std::int64_t k = rank; k < n_; ++k) {
          ring_.add_product(result(i, k), at(k, j), result(i, j));
        }
      }
    }
    for (std::int64_t i = 0; i < n_; ++i) {
      for (std::int64_t j = 0; j < n_; ++j) ring_.multiply(result(i, j), determinant_);
    }
  }

  std::int64_t n_;
  std::int64_t k_;
  Polynomials ring_;
  double* elements_;
  double* result_;
  double* factor_;
  double* determinant_;
  double* inverse_;
  double* rest_;
  double* minors_;
  double* row_scale_;
  double* column_scale_;
  std::int64_t* rows_;
  std::int64_t* columns_;
  double sign_ = 1;
  double least_ = 0;
};

template <class T>
bool all_finite(const T* x, std::int64_t n) {
  return std::all_of(x, x + n, [](T number) { return std::isfinite(number); });
}

/// Computes the cofactors from the LU factors of a if it is regular. Otherwise returns false.
template <class T>
bool by_factors(std::span<std::byte> own, const T* a, T* y, std::int64_t n, Products<T>& products) {
  const Factors<T> factors(own, a, n);
  if (factor_lu(factors.lu, factors.exchanges, products) >= 0) return false;
  T determinant = 1;
  T least = std::numeric_limits<T>::infinity();
  T largest = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const T pivot = factors.lu(i, i);
    determinant *= factors.exchanges[i] == i ? pivot : -pivot;
    least = std::min(least, std::abs(pivot));
    largest = std::max(largest, std::abs(pivot));
  }
  const T smallest =
      std::max(std::numeric_limits<T>::epsilon() * largest, std::numeric_limits<T>::min());
  if (least < smallest) return false;
  std::fill_n(y, n * n, T(0));
  for (std::int64_t i = 0; i < n; ++i) y[i * (n + 1)] = T(1);
  solve_factored(factors, true, View<T>{y, n, n, n}, products);
  for (std::int64_t i = 0; i < n * n; ++i) y[i] *= determinant;
  return true;
}

template <class T>
void compute_cofactors(const KernelCall& call) {
  const auto batch = batch_for(call.output().shape());
  const std::int64_t n = batch.n;
  const std::size_t directions = call.inputs.size() - 1;
  batch.run<T>(call, std::max(Factors<T>::bytes(n), Sweep::bytes(n, directions)),
               [&](std::int64_t index, std::span<std::byte> own, Products<T>& products) {
                 T* const y = call.output().as<T>() + index * n * n;
                 const auto operand = [&](std::size_t i) {
                   return static_cast<const T*>(call.input(i).as<T>()) + index * n * n;
                 };
                 if (directions == 0 && by_factors(own, operand(0), y, n, products))
                   return std::int64_t{-1};
                 Sweep sweep(own, n, directions);
                 bool finite = true;
                 for (std::size_t i = 0; i <= directions; ++i) {
                   finite = finite && all_finite(operand(i), n * n);
                 }
                 if (!finite) {
                   std::fill_n(y, n * n, std::numeric_limits<T>::quiet_NaN());
                   return std::int64_t{-1};
                 }
                 for (std::int64_t place = 0; place < n * n; ++place) {
                   double* const element = sweep.at(place / n, place % n);
                   std::fill_n(element, std::size_t{1} << directions, 0.0);
                   element[0] = operand(0)[place];
                   for (std::size_t i = 0; i < directions; ++i) {
                     element[std::size_t{1} << i] = operand(i + 1)[place];
                   }
                 }
                 sweep.run(std::numeric_limits<T>::epsilon(), std::numeric_limits<T>::min());
                 for (std::int64_t i = 0; i < n; ++i) {
                   for (std::int64_t j = 0; j < n; ++j) {
                     y[sweep.row(i) * n + sweep.column(j)] = static_cast<T>(sweep.last(i, j));
                   }
                 }
                 return std::int64_t{-1};
               });
}

void pull_back_cofactors(const Pullback& p) {
  std::vector<Var> operands;
  for (std::size_t i = 0; i < p.input_count(); ++i) operands.push_back(p.input(i));
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (!p.wants(i)) continue;
    std::vector<Var> others = operands;
    if (i == 0) {
      others.push_back(p.adjoint());
    } else {
      others[i] = p.adjoint();
    }
    p.set(i, record_cofactors(others, p.where()));
  }
}

const Operation cofactors_operation{
    .name = "cofactors",
    .formula =
        "y = ∇ₐ of the k-th derivative of det a along e₁ … e_k; ā, ēᵢ = the same, also along ȳ",
    .summary = "cofactors of matrices, and derivatives of determinants of every order",
    .compute =
        [](const KernelCall& call) {
          visit_floating(call.output().dtype(), [&]<class T>(T) { compute_cofactors<T>(call); });
        },
    .vjp = pull_back_cofactors,
    .cost =
        [](const NodeView& node) {
          const auto n = static_cast<double>(node.output().shape.size(-1));
          const double terms = std::pow(3, static_cast<double>(node.input_count() - 1));
          return Cost{8 * n / 3 * terms * static_cast<double>(node.output().shape.elements()),
                      bytes_moved(node)};
        },
    .workspace =
        [](const NodeView& node, int threads) {
          return visit_floating(compute_dtype(node.output().dtype), [&]<class T>(T) {
            const auto batch = batch_for(node.output().shape);
            const Bytes own =
                std::max(Factors<T>::bytes(batch.n), Sweep::bytes(batch.n, node.input_count() - 1));
            return batch.workspace<T>(threads, own, [&](Products<T>& products) {
              const View<T> lu{nullptr, batch.n, batch.n, batch.n};
              factor_lu(lu, nullptr, products);
              solve_triangular(lu.transposed(), {}, lu, products);
              solve_triangular(lu.transposed(), {.upper = true}, lu, products);
            });
          });
        },
};

}  // namespace

std::span<const Operation* const> cofactor_operations() {
  static const Operation* const family[] = {&cofactors_operation};
  return family;
}

Var record_cofactors(std::span<const Var> operands, const Where& where) {
  const ValueType type = operands[0].type();
  return operands[0].tape().record(cofactors_operation, operands, {&type, 1}, {}, where);
}

}  // namespace palimpsest
