#pragma once

#include <algorithm>
#include <array>
#include <limits>

#include "autodiff/execute.h"
#include "autodiff/kernels/gemm.h"
#include "autodiff/kernels/kernels.h"
#include "autodiff/operations/attention_blocks.h"

/// Building blocks of the attention kernels. They process one block of queries of one head at a
/// time.
namespace palimpsest::attention_block {

/// Sizes and work partition. They depend on the shapes only, never on the number of threads.
///
/// Heads of queries that share a head of keys are adjacent in memory. The kernels treat them as one
/// head, whose queries have several passes over the same positions.
struct Sizes {
  std::int64_t heads = 1;       ///< product of the keys' leading axes, or a subset of these heads,
  std::int64_t first_head = 0;  ///< starting with this one
  std::int64_t pass;            ///< queries of one head of queries
  std::int64_t queries;         ///< queries of all heads that share a head of keys
  std::int64_t keys, depth, width;
  std::int64_t rows;    ///< queries per block
  std::int64_t blocks;  ///< blocks per head
  /// Parts into which the adjoint splits a head's blocks. Each part has partial sums of dk and dv.
  /// One part if there are enough heads.
  std::int64_t parts;

  Sizes(const Shape& q, const Shape& v)
      : pass(q.size(-2)), keys(v.size(-2)), depth(q.size(-1)), width(v.size(-1)) {
    for (int axis = 0; axis + 2 < v.rank(); ++axis) heads *= v[axis];
    const int head_axis = q.rank() - 3;
    queries = head_axis < 0 || v[head_axis] == 0 ? pass : q[head_axis] / v[head_axis] * pass;
    constexpr std::int64_t scores = 1 << 17;  // per block: half a MiB of f32
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

/// Reads the mask for one head at a time.
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

  /// Applies the mask to the first `n` scores of one query of a head of queries; hidden keys get
  /// −∞. Returns false if no key is visible.
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
  float* random;      // random numbers for dropping one query's weights
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
    const std::int64_t last = first_ + rows_ - 1;
    const bool one_pass = rows_ == 0 || first_ / s_.pass == last / s_.pass;
    keys_ = std::min(s_.keys, visible(one_pass ? last : s_.pass - 1));
  }

  /// Position of the block's first query and first key in arrays of all current heads.
  std::int64_t first_query() const { return head_ * s_.queries + first_; }
  std::int64_t first_key() const { return head_ * s_.keys; }
  std::int64_t rows() const { return rows_; }
  /// Number of keys that any query of the block may see; they are the first ones.
  std::int64_t keys() const { return keys_; }

  /// c = op(a)·op(b), or added to c.
  void multiply(Gemm<T> product) const {
    const Bytes bytes = gemm_workspace<T>(product.m, product.n, product.k);
    gemm_serial(product, {scratch_.packed, static_cast<std::size_t>(bytes)});
  }

  /// Computes the block of weights before dropout: softmax of scale·q·kᵀ + mask.
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
      const std::int64_t query = first_ + i;
      const std::int64_t head = (s_.first_head + head_) * (s_.queries / s_.pass) + query / s_.pass;
      const bool any = mask_.apply(row, head, query % s_.pass, n);
      if (any) kernels().softmax<T>().softmax({n, 1, 1}, row, row);
      std::fill(row + (any ? n : 0), row + keys_, T(0));
    }
  }

  /// to = from with dropout, whose mask comes from the random stream.
  void drop(const T* from, T* to) const {
    const T scale = static_cast<T>(1 / (1 - a_.dropout));
    const auto limit = static_cast<float>(a_.dropout);
    for (std::int64_t i = 0; i < rows_; ++i) {
      const std::int64_t query = s_.first_head * s_.queries + first_query() + i;
      const std::int64_t number = query * s_.keys;
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
  /// Number of keys that query `i` may see under causality.
  std::int64_t visible(std::int64_t i) const {
    if (!a_.causal) return s_.keys;
    return std::max<std::int64_t>(0, i % s_.pass + 1 + s_.keys - s_.pass);
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

}  // namespace palimpsest::attention_block
