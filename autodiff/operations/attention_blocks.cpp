#include "autodiff/operations/attention_blocks.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "autodiff/execute.h"
#include "autodiff/kernels/kernels.h"
#include "autodiff/parallel.h"

namespace palimpsest {
namespace {

/// Sizes, and how the work is cut: by the shapes alone, never by the number of threads.
struct Sizes {
  std::int64_t heads = 1;  ///< all axes in front
  std::int64_t queries, keys, depth, width;
  std::int64_t rows;    ///< queries of a block
  std::int64_t blocks;  ///< of a head
  /// Parts in which the adjoint goes through a head's blocks, each with sums of dk and dv of its
  /// own; one where there are heads enough.
  std::int64_t parts;

  Sizes(const Shape& q, const Shape& v)
      : queries(q.size(-2)), keys(v.size(-2)), depth(q.size(-1)), width(v.size(-1)) {
    for (int axis = 0; axis + 2 < q.rank(); ++axis) heads *= q[axis];
    constexpr std::int64_t scores = 1 << 17;  // of a block: half a MiB of f32
    const std::int64_t fitting = scores / std::max<std::int64_t>(1, keys);
    rows = std::clamp<std::int64_t>(queries, 1, std::clamp<std::int64_t>(fitting, 16, 64));
    blocks = (queries + rows - 1) / rows;
    constexpr std::int64_t enough = 8;
    const std::int64_t wanted = heads == 0 ? 1 : (enough + heads - 1) / heads;
    parts = std::clamp<std::int64_t>(wanted, 1, std::max<std::int64_t>(1, blocks));
  }

  double block_cost() const {
    return static_cast<double>(rows * keys) * static_cast<double>(depth + width + 10);
  }
};

/// The mask as it is read for one head.
class Mask {
 public:
  Mask() = default;
  Mask(const Operand& mask, const Shape& q, std::int64_t keys) : mask_(&mask) {
    shape_ = q;
    shape_[q.rank() - 1] = keys;
    const auto dense = strides_of(mask.shape());
    const int extra = shape_.rank() - mask.shape().rank();
    for (int axis = 0; axis < mask.shape().rank(); ++axis) {
      if (mask.shape()[axis] == 1) continue;
      stride_[static_cast<std::size_t>(axis + extra)] = dense[static_cast<std::size_t>(axis)];
    }
  }

  /// Applies it to the first `n` scores of one query; false where no key is left to see. Keys it
  /// hides get −∞.
  template <class T>
  bool apply(T* scores, std::int64_t head, std::int64_t query, std::int64_t n) const {
    if (mask_ == nullptr) return n > 0;
    const int rank = shape_.rank();
    const auto stride = [&](int axis) { return stride_[static_cast<std::size_t>(axis)]; };
    std::int64_t offset = query * stride(rank - 2);
    for (int axis = rank - 3; axis >= 0; --axis) {
      offset += head % shape_[axis] * stride(axis);
      head /= shape_[axis];
    }
    const std::int64_t step = stride(rank - 1);
    constexpr T hidden = -std::numeric_limits<T>::infinity();
    bool any = false;
    for (std::int64_t j = 0; j < n; ++j) {
      if (mask_->dtype() == DType::boolean) {
        if (!mask_->as<bool>()[offset + j * step]) scores[j] = hidden;
      } else {
        scores[j] += mask_->as<T>()[offset + j * step];
      }
      any |= scores[j] != hidden;
    }
    return any;
  }

 private:
  const Operand* mask_ = nullptr;
  Shape shape_;
  std::array<std::int64_t, max_rank> stride_{};
};

/// One thread's share of the workspace.
template <class T>
struct Scratch {
  T* query;           // a block of scale·q
  T* weights;         // a block of attention weights
  T* slopes;          // a block of their adjoints
  float* random;      // the numbers of one query's dropped weights
  std::byte* packed;  // for matrix products

  static Bytes part(std::int64_t elements) {
    return aligned(elements * static_cast<Bytes>(sizeof(T)));
  }
  static Bytes packing(const Sizes& s) {
    return std::max(
        {gemm_workspace<T>(s.rows, s.keys, s.depth), gemm_workspace<T>(s.rows, s.keys, s.width),
         gemm_workspace<T>(s.rows, s.width, s.keys), gemm_workspace<T>(s.rows, s.depth, s.keys),
         gemm_workspace<T>(s.keys, s.depth, s.rows), gemm_workspace<T>(s.keys, s.width, s.rows)});
  }
  static Bytes bytes(const Sizes& s, const Attention& a, bool adjoint) {
    const Bytes random = a.dropout > 0 ? aligned((s.keys + 4) * Bytes{sizeof(float)}) : 0;
    return part(s.rows * s.depth) + part(s.rows * s.keys) * (adjoint ? 2 : 1) + random +
           aligned(packing(s));
  }
  Scratch(std::byte* data, const Sizes& s, const Attention& a, bool adjoint) {
    const auto take = [&](Bytes bytes) {
      std::byte* taken = data;
      data += bytes;
      return taken;
    };
    query = reinterpret_cast<T*>(take(part(s.rows * s.depth)));
    weights = reinterpret_cast<T*>(take(part(s.rows * s.keys)));
    slopes = adjoint ? reinterpret_cast<T*>(take(part(s.rows * s.keys))) : nullptr;
    random = reinterpret_cast<float*>(
        take(a.dropout > 0 ? aligned((s.keys + 4) * Bytes{sizeof(float)}) : 0));
    packed = data;
  }
};

/// The queries [first, first + rows) of one head.
template <class T>
class Block {
 public:
  Block(const Sizes& sizes, const Attention& attention, const Mask& mask, const Scratch<T>& scratch,
        std::int64_t head, std::int64_t block)
      : s_(sizes),
        a_(attention),
        mask_(mask),
        scratch_(scratch),
        head_(head),
        first_(block * sizes.rows),
        rows_(std::min(sizes.rows, sizes.queries - block * sizes.rows)) {
    keys_ = std::min(s_.keys, visible(first_ + rows_ - 1));
  }

  std::int64_t first_query() const { return head_ * s_.queries + first_; }
  std::int64_t first_key() const { return head_ * s_.keys; }
  std::int64_t rows() const { return rows_; }
  /// Keys that some query of the block may see: the first so many.
  std::int64_t keys() const { return keys_; }

  /// c = op(a)·op(b), or added to c.
  void multiply(Gemm<T> product) const {
    const Bytes bytes = gemm_workspace<T>(product.m, product.n, product.k);
    gemm_serial(product, {scratch_.packed, static_cast<std::size_t>(bytes)});
  }

  /// Fills the block of weights, not yet dropped: softmax of scale·q·kᵀ + mask.
  void make_weights(const T* q, const T* k) const {
    const T scale = static_cast<T>(a_.scale);
    const T* from = q + first_query() * s_.depth;
    for (std::int64_t i = 0; i < rows_ * s_.depth; ++i) scratch_.query[i] = from[i] * scale;
    multiply({.transpose_b = true,
              .m = rows_,
              .n = keys_,
              .k = s_.depth,
              .a = scratch_.query,
              .lda = s_.depth,
              .b = k + first_key() * s_.depth,
              .ldb = s_.depth,
              .c = scratch_.weights,
              .ldc = s_.keys});
    for (std::int64_t i = 0; i < rows_; ++i) {
      T* row = scratch_.weights + i * s_.keys;
      const std::int64_t n = std::min(keys_, visible(first_ + i));
      const bool any = mask_.apply(row, head_, first_ + i, n);
      if (any) kernels().softmax<T>().softmax({n, 1, 1}, row, row);
      std::fill(row + (any ? n : 0), row + keys_, T(0));
    }
  }

  /// to = from with the weights dropped that the random stream names.
  void drop(const T* from, T* to) const {
    const T scale = static_cast<T>(1 / (1 - a_.dropout));
    const auto limit = static_cast<float>(a_.dropout);
    for (std::int64_t i = 0; i < rows_; ++i) {
      const std::int64_t number = (first_query() + i) * s_.keys;
      const std::int64_t skipped = number % 4;
      fill_uniform(a_.stream, scratch_.random, keys_ + skipped, number - skipped);
      const T* weights = from + i * s_.keys;
      T* kept = to + i * s_.keys;
      for (std::int64_t j = 0; j < keys_; ++j) {
        kept[j] = scratch_.random[j + skipped] < limit ? T(0) : weights[j] * scale;
      }
    }
  }

 private:
  /// How many keys query `i` may see, by causality.
  std::int64_t visible(std::int64_t i) const {
    if (!a_.causal) return s_.keys;
    return std::max<std::int64_t>(0, i + 1 + s_.keys - s_.queries);
  }

  const Sizes& s_;
  const Attention& a_;
  const Mask& mask_;
  const Scratch<T>& scratch_;
  std::int64_t head_;
  std::int64_t first_;
  std::int64_t rows_;
  std::int64_t keys_;
};

Mask mask_of(const KernelCall& call, std::size_t position, const Sizes& sizes) {
  if (call.inputs.size() <= position) return {};
  return {call.inputs[position], call.inputs[position - 3].shape(), sizes.keys};
}

template <class T>
Scratch<T> scratch_of(const KernelCall& call, const Attention& attention, const Sizes& sizes,
                      bool adjoint) {
  const Bytes share = Scratch<T>::bytes(sizes, attention, adjoint);
  return {call.workspace.data() + thread_index() * share, sizes, attention, adjoint};
}

template <class T>
void forward(const KernelCall& call, const Attention& attention) {
  const Sizes s(call.input(0).shape(), call.input(2).shape());
  const Mask mask = mask_of(call, 3, s);
  const T* v = call.input(2).as<T>();
  T* o = call.output().as<T>();
  const auto run = [&](std::int64_t head, std::int64_t number) {
    const auto scratch = scratch_of<T>(call, attention, s, false);
    const Block<T> block(s, attention, mask, scratch, head, number);
    block.make_weights(call.input(0).as<T>(), call.input(1).as<T>());
    if (attention.dropout > 0) block.drop(scratch.weights, scratch.weights);
    block.multiply({.m = block.rows(),
                    .n = s.width,
                    .k = block.keys(),
                    .a = scratch.weights,
                    .lda = s.keys,
                    .b = v + block.first_key() * s.width,
                    .ldb = s.width,
                    .c = o + block.first_query() * s.width,
                    .ldc = s.width});
  };
  parallel_chunks(s.heads * s.blocks, grain_for(s.block_cost()),
                  [&](std::int64_t begin, std::int64_t end) {
                    for (std::int64_t i = begin; i < end; ++i) run(i / s.blocks, i % s.blocks);
                  });
}

/// Adds one block's part to dk and dv of its head, and fills its rows of dq. With the weights w
/// before and p after dropping: dv = pᵀ·do, dp = do·vᵀ, ds = w·(dw − Σ w·dw), dq = scale·ds·k,
/// dk = scale·dsᵀ·q.
template <class T>
void adjoint_block(const KernelCall& call, const Sizes& s, const Attention& attention,
                   const Scratch<T>& scratch, const Block<T>& block, T* dk, T* dv) {
  const T* d = call.input(0).as<T>() + block.first_query() * s.width;
  const T* k = call.input(2).as<T>();
  const T* v = call.input(3).as<T>();
  T* dq = call.output(0).as<T>() + block.first_query() * s.depth;
  block.make_weights(call.input(1).as<T>(), k);
  const bool drops = attention.dropout > 0;
  if (drops) block.drop(scratch.weights, scratch.slopes);
  block.multiply({.transpose_a = true,
                  .m = block.keys(),
                  .n = s.width,
                  .k = block.rows(),
                  .a = drops ? scratch.slopes : scratch.weights,
                  .lda = s.keys,
                  .b = d,
                  .ldb = s.width,
                  .c = dv,
                  .ldc = s.width,
                  .accumulate = true});
  block.multiply({.transpose_b = true,
                  .m = block.rows(),
                  .n = block.keys(),
                  .k = s.width,
                  .a = d,
                  .lda = s.width,
                  .b = v + block.first_key() * s.width,
                  .ldb = s.width,
                  .c = scratch.slopes,
                  .ldc = s.keys});
  if (drops) block.drop(scratch.slopes, scratch.slopes);
  for (std::int64_t i = 0; i < block.rows(); ++i) {
    T* row = scratch.slopes + i * s.keys;
    kernels().softmax<T>().softmax_adjoint({block.keys(), 1, 1}, row, scratch.weights + i * s.keys,
                                           row);
  }
  block.multiply({.m = block.rows(),
                  .n = s.depth,
                  .k = block.keys(),
                  .a = scratch.slopes,
                  .lda = s.keys,
                  .b = k + block.first_key() * s.depth,
                  .ldb = s.depth,
                  .c = dq,
                  .ldc = s.depth});
  const T scale = static_cast<T>(attention.scale);
  for (std::int64_t i = 0; i < block.rows() * s.depth; ++i) dq[i] *= scale;
  block.multiply({.transpose_a = true,
                  .m = block.keys(),
                  .n = s.depth,
                  .k = block.rows(),
                  .a = scratch.slopes,
                  .lda = s.keys,
                  .b = scratch.query,
                  .ldb = s.depth,
                  .c = dk,
                  .ldc = s.depth,
                  .accumulate = true});
}

template <class T>
void adjoint(const KernelCall& call, const Attention& attention) {
  const Sizes s(call.input(1).shape(), call.input(3).shape());
  const Mask mask = mask_of(call, 4, s);
  const std::int64_t key_sums = s.keys * s.depth;
  const std::int64_t value_sums = s.keys * s.width;
  T* dk = call.output(1).as<T>();
  T* dv = call.output(2).as<T>();
  // The first part of a head sums in the result, the others in the workspace.
  T* partial = reinterpret_cast<T*>(call.workspace.data() +
                                    Scratch<T>::bytes(s, attention, true) * call.threads);
  const auto sums_of = [&](std::int64_t head, std::int64_t part) {
    return partial + (head * (s.parts - 1) + part - 1) * (key_sums + value_sums);
  };
  const auto run = [&](std::int64_t head, std::int64_t part) {
    const auto scratch = scratch_of<T>(call, attention, s, true);
    T* key_sum = part == 0 ? dk + head * key_sums : sums_of(head, part);
    T* value_sum = part == 0 ? dv + head * value_sums : sums_of(head, part) + key_sums;
    std::fill_n(key_sum, key_sums, T(0));
    std::fill_n(value_sum, value_sums, T(0));
    const std::int64_t last = s.blocks * (part + 1) / s.parts;
    for (std::int64_t number = s.blocks * part / s.parts; number < last; ++number) {
      const Block<T> block(s, attention, mask, scratch, head, number);
      adjoint_block(call, s, attention, scratch, block, key_sum, value_sum);
    }
  };
  const double cost = 3 * s.block_cost() * static_cast<double>(s.blocks / s.parts);
  parallel_chunks(s.heads * s.parts, grain_for(cost), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) run(i / s.parts, i % s.parts);
  });
  if (s.parts == 1) return;
  const auto collect = [&](T* result, std::int64_t size, std::int64_t offset) {
    parallel_chunks(s.heads * size, grain_for(static_cast<double>(s.parts)),
                    [&](std::int64_t begin, std::int64_t end) {
                      for (std::int64_t i = begin; i < end; ++i) {
                        for (std::int64_t part = 1; part < s.parts; ++part) {
                          result[i] += sums_of(i / size, part)[offset + i % size];
                        }
                      }
                    });
  };
  collect(dk, key_sums, 0);
  collect(dv, value_sums, key_sums);
}

/// Calls `f(T)` with the type the node computes in.
template <class F>
Bytes in_compute_type(const NodeView& node, F f) {
  return visit_floating(compute_dtype(node.output().dtype), f);
}

Attention attention_of(const KernelCall& call) {
  Attention attention = call.attributes.as<Attention>();
  attention.stream = in_round(attention.stream, call.round);
  return attention;
}

}  // namespace

void compute_attention(const KernelCall& call) {
  const Attention attention = attention_of(call);
  visit_floating(call.output().dtype(), [&]<class T>(T) { forward<T>(call, attention); });
}

Bytes attention_workspace(const NodeView& node, int threads) {
  const Sizes s(node.input(0).shape, node.input(2).shape);
  return in_compute_type(node, [&]<class T>(T) {
    return Scratch<T>::bytes(s, node.attributes().as<Attention>(), false) * threads;
  });
}

void compute_attention_adjoint(const KernelCall& call) {
  const Attention attention = attention_of(call);
  visit_floating(call.output().dtype(), [&]<class T>(T) { adjoint<T>(call, attention); });
}

Bytes attention_adjoint_workspace(const NodeView& node, int threads) {
  const Sizes s(node.input(1).shape, node.input(3).shape);
  return in_compute_type(node, [&]<class T>(T) {
    const std::int64_t sums = s.heads * (s.parts - 1) * s.keys * (s.depth + s.width);
    return Scratch<T>::bytes(s, node.attributes().as<Attention>(), true) * threads +
           Scratch<T>::part(sums);
  });
}

}  // namespace palimpsest
