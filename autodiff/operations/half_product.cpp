#include "autodiff/operations/half_product.h"

#include <algorithm>

#include "autodiff/convert.h"
#include "autodiff/execute.h"
#include "autodiff/operations/batched_product.h"

namespace palimpsest {
namespace {

bool is_read_narrow(DType dtype) { return dtype == DType::bf16 && multiplies_bf16(); }

/// Splits an extent into parts of `size`; the last part is at least as large.
struct Parts {
  std::int64_t size;
  std::int64_t last;

  /// A single part if the extent is less than 2·`least`.
  Parts(std::int64_t extent, std::int64_t least) : size(extent), last(extent) {
    if (extent < 2 * least) return;
    size = least;
    last = least + extent % least;
  }
};

/// The part computed at a time: some rows of one product, some terms of all its sums if op(A) is
/// transposed, or the whole batch.
struct Cut {
  enum class Along { nothing, rows, depth } along = Along::nothing;
  Parts rows;
  Parts depth;

  Cut(const BatchedProduct& p, const MatmulOptions& options, bool narrow)
      : rows(p.m, p.m + 1), depth(p.k, p.k + 1) {
    constexpr std::int64_t least = 256;  // the packing for each part is small compared with it
    constexpr std::int64_t elements = 1 << 17;
    const auto of_width = [&](std::int64_t width) {
      return std::max(least, elements / std::max<std::int64_t>(1, width));
    };
    if (p.output_count != 1 || p.term_count != 1) return;
    if (narrow || !options.transpose_a) {
      along = Along::rows;
      rows = Parts(p.m, of_width(narrow ? p.n : std::max(p.n, p.k)));
    } else if (!options.transpose_b) {
      along = Along::depth;
      depth = Parts(p.k, of_width(std::max(p.m, p.n)));
    }
  }
};

Bytes wide_bytes(std::int64_t elements) { return aligned(elements * size_of(DType::f32)); }

/// Bytes of packing space for the largest part.
template <class T>
Bytes packing_bytes(const BatchedProduct& p, const Cut& cut, int threads) {
  Bytes most = 0;
  for (const std::int64_t m : {cut.rows.size, cut.rows.last}) {
    for (const std::int64_t k : {cut.depth.size, cut.depth.last}) {
      most =
          std::max(most, gemm_batch_workspace<T>(m, p.n, k, p.output_count, p.term_count, threads));
    }
  }
  return aligned(most);
}

/// Memory for widened operands and for f32 sums.
struct Room {
  Bytes sums;
  Bytes a = 0;
  Bytes b = 0;

  Room(const BatchedProduct& p, const Cut& cut, std::int64_t a_elements, std::int64_t b_elements,
       bool narrow)
      : sums(wide_bytes(p.output_count * cut.rows.last * p.n)) {
    if (narrow) return;
    const bool is_one = cut.along != Cut::Along::nothing;
    a = wide_bytes(is_one ? cut.rows.last * cut.depth.last : a_elements);
    b = wide_bytes(is_one ? cut.depth.last * p.n : b_elements);
  }
  Bytes all() const { return sums + a + b; }
};

Operand elements_of(const Operand& operand, std::int64_t first, std::int64_t count) {
  return {operand.data + first * size_of(operand.dtype()), {Shape{count}, operand.dtype()}};
}

class HalfProduct {
 public:
  HalfProduct(const KernelCall& call, bool narrow)
      : call_(call),
        all_(product_of(call)),
        cut_(all_, call.attributes.as<MatmulOptions>(), narrow),
        room_(all_, cut_, call.input(0).elements(), call.input(1).elements(), narrow),
        packing_(call.workspace.subspan(static_cast<std::size_t>(room_.all()))),
        sums_{call.workspace.data(),
              {Shape{all_.output_count * cut_.rows.last * all_.n}, DType::f32}} {}

  void multiply_narrow() {
    Gemm<BFloat16> part = first_of<BFloat16>(call_, all_, sums_.as<float>());
    for_parts(cut_.rows, all_.m, [&](std::int64_t first, std::int64_t rows) {
      part.m = rows;
      gemm_batch(part, all_.outputs(), all_.terms(), packing_);
      part.a += rows * (part.transpose_a ? 1 : part.lda);
      round(first, rows);
    });
  }

  void multiply_widened() {
    const Operand& a = call_.input(0);
    const Operand& b = call_.input(1);
    const Operand wide_a{sums_.data + room_.sums, {Shape{room_.a / 4}, DType::f32}};
    const Operand wide_b{wide_a.data + room_.a, {Shape{room_.b / 4}, DType::f32}};
    Gemm<float> part = first_of<float>(call_, all_, sums_.as<float>());
    part.a = wide_a.as<float>();
    part.b = wide_b.as<float>();
    const auto widen = [](const Operand& from, std::int64_t first, std::int64_t count,
                          const Operand& to) {
      convert(elements_of(from, first, count), elements_of(to, 0, count));
    };
    if (cut_.along != Cut::Along::depth) widen(b, 0, b.elements(), wide_b);
    if (cut_.along == Cut::Along::nothing) widen(a, 0, a.elements(), wide_a);
    for_parts(cut_.rows, all_.m, [&](std::int64_t first, std::int64_t rows) {
      part.m = rows;
      if (cut_.along == Cut::Along::rows) widen(a, first * all_.k, rows * all_.k, wide_a);
      for_parts(cut_.depth, all_.k, [&](std::int64_t start, std::int64_t terms) {
        part.k = terms;
        part.accumulate = start > 0;
        if (cut_.along == Cut::Along::depth) {
          widen(a, start * all_.m, terms * all_.m, wide_a);
          widen(b, start * all_.n, terms * all_.n, wide_b);
        }
        gemm_batch(part, all_.outputs(), all_.terms(), packing_);
      });
      round(first, rows);
    });
  }

 private:
  /// Calls `f(first, size)` for each part; once if the extent is not split.
  template <class F>
  static void for_parts(const Parts& parts, std::int64_t extent, F f) {
    for (std::int64_t first = 0, size = 0; first == 0 || first < extent; first += size) {
      size = extent - first == parts.last ? parts.last : parts.size;
      f(first, size);
      if (size == 0) return;
    }
  }

  void round(std::int64_t first, std::int64_t rows) const {
    const std::int64_t count = all_.output_count * rows * all_.n;
    convert(elements_of(sums_, 0, count), elements_of(call_.output(), first * all_.n, count));
  }

  const KernelCall& call_;
  BatchedProduct all_;
  Cut cut_;
  Room room_;
  std::span<std::byte> packing_;
  Operand sums_;
};

}  // namespace

void compute_half_product(const KernelCall& call) {
  if (is_read_narrow(call.output().dtype())) {
    HalfProduct(call, true).multiply_narrow();
  } else {
    HalfProduct(call, false).multiply_widened();
  }
}

Bytes half_product_workspace(const NodeView& node, int threads) {
  const BatchedProduct p(node);
  const bool narrow = is_read_narrow(node.output().dtype);
  const Cut cut(p, node.attributes().as<MatmulOptions>(), narrow);
  const Room room(p, cut, node.input(0).shape.elements(), node.input(1).shape.elements(), narrow);
  return room.all() + (narrow ? packing_bytes<BFloat16>(p, cut, threads)
                              : packing_bytes<float>(p, cut, threads));
}

}  // namespace palimpsest
