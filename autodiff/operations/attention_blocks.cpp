#include "autodiff/operations/attention_blocks.h"

#include <algorithm>
#include <vector>

#include "autodiff/convert.h"
#include "autodiff/execute.h"
#include "autodiff/operations/attention_block.h"
#include "autodiff/parallel.h"

namespace palimpsest {
namespace {

using namespace attention_block;

template <class T>
Scratch<T> scratch_of(const KernelCall& call, const Attention& attention, const Sizes& sizes,
                      bool adjoint) {
  const Bytes share = Scratch<T>::bytes(sizes, attention, adjoint);
  return {call.workspace.data() + thread_index() * share, sizes, attention, adjoint};
}

template <class T>
void forward(const KernelCall& call, const Attention& attention, const Sizes& s, const Mask& mask) {
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

/// Adds one block's part to dk and dv of its head, and writes its rows of dq. With the weights w
/// before and p after dropout: dv = pᵀ·do, dp = do·vᵀ, ds = w·(dw − Σ w·dw), dq = scale·ds·k,
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
void adjoint(const KernelCall& call, const Attention& attention, const Sizes& s, const Mask& mask) {
  const std::int64_t key_sums = s.keys * s.depth;
  const std::int64_t value_sums = s.keys * s.width;
  T* dk = call.output(1).as<T>();
  T* dv = call.output(2).as<T>();
  // The first part of a head accumulates in the result, the others in the workspace.
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

/// Bytes of scratch for `threads` threads.
template <class T>
Bytes scratch_bytes(const Sizes& s, const Attention& attention, int threads, bool is_adjoint) {
  const std::int64_t sums = s.heads * (s.parts - 1) * s.keys * (s.depth + s.width);
  return Scratch<T>::bytes(s, attention, is_adjoint) * threads +
         (is_adjoint ? Scratch<T>::part(sums) : 0);
}

/// 16-bit operands are widened to f32 for some heads at a time. These give enough work for all
/// threads, and the bits do not depend on their number.
Sizes at_once(const Sizes& all, bool is_adjoint) {
  constexpr std::int64_t elements = 1 << 17;
  const std::int64_t one =
      (is_adjoint ? 2 : 1) * (all.queries + all.keys) * (all.depth + all.width);
  const std::int64_t least =
      is_adjoint ? 8 : 1;  // the blocks of a head are sequential in the adjoint
  Sizes some = all;
  some.heads = std::min(all.heads, std::max(least, elements / std::max<std::int64_t>(1, one)));
  return some;
}

/// The elements of some heads within an operand that holds all heads.
class Heads {
 public:
  Heads(const Operand& all, const Sizes& sizes, const Sizes& some)
      : all_(all),
        of_one_(all.elements() / std::max<std::int64_t>(1, sizes.heads)),
        elements_(some.heads * of_one_),
        first_(some.first_head * of_one_) {}

  Bytes wide_bytes() const { return aligned(elements_ * size_of(DType::f32)); }
  Operand at_hand() const {
    return {all_.data + first_ * size_of(all_.dtype()), {Shape{elements_}, all_.dtype()}};
  }
  /// The same number of elements at the beginning of another operand.
  Operand in(const Operand& other) const { return {other.data, {Shape{elements_}, other.dtype()}}; }

 private:
  const Operand& all_;
  std::int64_t of_one_;
  std::int64_t elements_;
  std::int64_t first_;
};

/// The forward kernel, or its adjoint, which has the output's adjoint as first input.
template <bool is_adjoint>
struct Kernel {
  static constexpr std::size_t mask_at = is_adjoint ? 4 : 3;

  static Sizes sizes(std::span<const Operand> inputs) {
    return {inputs[mask_at - 3].shape(), inputs[mask_at - 1].shape()};
  }

  static void compute(const KernelCall& call) {
    Attention attention = call.attributes.as<Attention>();
    attention.stream = in_round(attention.stream, call.round);
    const Sizes s = sizes(call.inputs);
    if (is_half(call.output().dtype())) return compute_some_at_once(call, attention, s);
    const Mask mask = call.inputs.size() > mask_at ? mask_of(call, call.input(mask_at), s) : Mask();
    visit_floating(call.output().dtype(), [&]<class T>(T) { run<T>(call, attention, s, mask); });
  }

  static Bytes workspace(const NodeView& node, int threads) {
    const auto& attention = node.attributes().as<Attention>();
    std::vector<Operand> operands;
    for (std::size_t i = 0; i < node.input_count(); ++i)
      operands.push_back({nullptr, node.input(i)});
    const Sizes s = sizes(operands);
    if (!is_half(node.output().dtype)) {
      return visit_floating(node.output().dtype, [&]<class T>(T) {
        return scratch_bytes<T>(s, attention, threads, is_adjoint);
      });
    }
    const Sizes some = at_once(s, is_adjoint);
    Bytes bytes = aligned(scratch_bytes<float>(some, attention, threads, is_adjoint));
    for (std::size_t i = 0; i < node.output_count(); ++i) {
      operands.push_back({nullptr, node.output(i)});
    }
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (i == mask_at && i < node.input_count()) {
        bytes += wide_mask_bytes(operands[i]);
      } else {
        bytes += Heads(operands[i], s, some).wide_bytes();
      }
    }
    return bytes;
  }

 private:
  static Mask mask_of(const KernelCall& call, const Operand& mask, const Sizes& s) {
    return {mask, call.inputs[mask_at - 3].shape(), s.keys};
  }
  static Bytes wide_mask_bytes(const Operand& mask) {
    return is_half(mask.dtype()) ? aligned(mask.elements() * size_of(DType::f32)) : 0;
  }

  template <class T>
  static void run(const KernelCall& call, const Attention& attention, const Sizes& s,
                  const Mask& mask) {
    if constexpr (is_adjoint) {
      adjoint<T>(call, attention, s, mask);
    } else {
      forward<T>(call, attention, s, mask);
    }
  }

  static void compute_some_at_once(const KernelCall& call, const Attention& attention,
                                   const Sizes& s) {
    Sizes some = at_once(s, is_adjoint);
    std::byte* free = call.workspace.data() +
                      aligned(scratch_bytes<float>(some, attention, call.threads, is_adjoint));
    const auto take = [&](Bytes bytes) {
      std::byte* const taken = free;
      free += bytes;
      return taken;
    };
    Mask mask;
    Operand wide_mask;
    if (call.inputs.size() > mask_at) {
      wide_mask = call.input(mask_at);
      if (is_half(wide_mask.dtype())) {
        const Operand narrow = wide_mask;
        wide_mask = {take(wide_mask_bytes(narrow)), {narrow.shape(), DType::f32}};
        convert(narrow, wide_mask);
      }
      mask = mask_of(call, wide_mask, s);
    }
    const auto with_heads = call.inputs.first(mask_at);
    std::vector<Operand> wide;
    for (const auto& operands : {with_heads, call.outputs}) {
      for (const Operand& operand : operands) {
        const Bytes bytes = Heads(operand, s, some).wide_bytes();
        wide.push_back({take(bytes), {Shape{bytes / size_of(DType::f32)}, DType::f32}});
      }
    }
    const std::span<const Operand> all(wide);
    const KernelCall part{call.attributes, all.first(mask_at), all.subspan(mask_at),
                          call.workspace,  call.threads,       call.round};
    for (; some.first_head < s.heads; some.first_head += some.heads) {
      some.heads = std::min(some.heads, s.heads - some.first_head);
      for (std::size_t i = 0; i < mask_at; ++i) {
        const Heads heads(call.inputs[i], s, some);
        convert(heads.at_hand(), heads.in(wide[i]));
      }
      run<float>(part, attention, some, mask);
      for (std::size_t i = 0; i < call.outputs.size(); ++i) {
        const Heads heads(call.outputs[i], s, some);
        convert(heads.in(wide[mask_at + i]), heads.at_hand());
      }
    }
  }
};

}  // namespace

void compute_attention(const KernelCall& call) { Kernel<false>::compute(call); }

Bytes attention_workspace(const NodeView& node, int threads) {
  return Kernel<false>::workspace(node, threads);
}

void compute_attention_adjoint(const KernelCall& call) { Kernel<true>::compute(call); }

Bytes attention_adjoint_workspace(const NodeView& node, int threads) {
  return Kernel<true>::workspace(node, threads);
}

}  // namespace palimpsest
