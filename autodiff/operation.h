#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <typeinfo>
#include <vector>

#include "autodiff/arithmetic.h"
#include "autodiff/attribute_words.h"
#include "autodiff/export.h"
#include "autodiff/philox.h"
#include "autodiff/tensor.h"

namespace palimpsest PALIMPSEST_EXPORT {

class Tape;
class Var;
class NodeView;
class Pullback;

/// True for equal bits: a NaN is equal to itself, 0 is not equal to −0.
inline bool same_number(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

/// Attributes that do not fully determine what their node computes, such as those that hold a
/// user's function.
template <class T>
concept OfOneTape = requires { typename T::IsOfOneTape; };

/// The parameters of one node apart from its inputs, such as axes, strides or a random key. Holds
/// any value type. Immutable once recorded, and shared between copies of the node.
class Attributes {
 public:
  Attributes() = default;
  template <class T>
    requires(!std::is_same_v<std::remove_cvref_t<T>, Attributes>)
  // NOLINTNEXTLINE(google-explicit-constructor): an attribute struct is what callers pass
  Attributes(T value) : value_(std::make_shared<const T>(std::move(value))), kind_(&kind<T>) {}

  template <class T>
  const T& as() const {
    internal_check(kind_ != nullptr && kind_->type == typeid(T), "attributes of another type");
    return *static_cast<const T*>(value_.get());
  }
  bool empty() const { return value_ == nullptr; }

  /// True only if a node computes the same with either. Types without padding or alternative
  /// representations are compared bytewise, others by `==`, which must distinguish all numbers that
  /// `same_number` does. Without `==`, only copies that share the value are equal.
  bool operator==(const Attributes& other) const {
    if (value_ == other.value_) return true;
    return kind_ == other.kind_ && kind_->equal(value_.get(), other.value_.get());
  }
  /// True only if a node does with `other` what it does with these attributes, after its tape was
  /// cleared `round` more times and recorded the same program.
  bool are_in_round(std::uint32_t round, const Attributes& other) const {
    if (empty() || kind_ != other.kind_) return *this == other;
    return kind_->are_in_round(value_.get(), round, other.value_.get());
  }
  /// False for types with a member `IsOfOneTape`, which do not determine what a node computes.
  bool may_come_again() const { return empty() || kind_->may_come_again; }
  /// Appends numbers that are equal in all processes for equal attributes. Source lines and random
  /// streams are left out. Returns false if the type cannot be described by numbers, for example
  /// because it holds a function; a member function `described()` may return what stands for it.
  bool describe(std::vector<std::uint64_t>& words) const {
    return empty() || kind_->describe(value_.get(), words);
  }

 private:
  struct Kind {
    const std::type_info& type;
    bool (*equal)(const void* a, const void* b);
    bool (*are_in_round)(const void* a, std::uint32_t round, const void* b);
    bool (*describe)(const void* value, std::vector<std::uint64_t>& words);
    bool may_come_again;
  };
  template <class T>
  static bool equal(const void* a, const void* b) {
    if constexpr (std::has_unique_object_representations_v<T>) {
      return std::memcmp(a, b, sizeof(T)) == 0;
    } else if constexpr (std::equality_comparable<T>) {
      return *static_cast<const T*>(a) == *static_cast<const T*>(b);
    } else {
      return false;
    }
  }
  template <class T>
  static bool are_in_round(const void* a, std::uint32_t round, const void* b) {
    if constexpr (requires(const T& attributes) { in_round(attributes, round); }) {
      const T later = in_round(*static_cast<const T*>(a), round);
      return equal<T>(&later, b);
    } else {
      return equal<T>(a, b);
    }
  }
  template <class T>
  static bool describe(const void* value, std::vector<std::uint64_t>& words) {
    return detail::describe(*static_cast<const T*>(value), words);
  }
  template <class T>
  static constexpr Kind kind{typeid(T), equal<T>, are_in_round<T>, describe<T>, !OfOneTape<T>};

  std::shared_ptr<const void> value_;
  const Kind* kind_ = nullptr;
};

/// One input or output of a running kernel.
struct Operand {
  std::byte* data = nullptr;
  ValueType type;

  const Shape& shape() const { return type.shape; }
  DType dtype() const { return type.dtype; }
  std::int64_t elements() const { return type.shape.elements(); }
  /// The elements; `T` must be the C++ type of the dtype.
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data);
  }
};

/// Elements [0, n) of an elementwise operation's output. Each input has as many elements, or one
/// repeated element if its step is 0. The output may alias an input whose step is 1.
struct PointwiseCall {
  const Attributes& attributes;
  std::array<const std::byte*, 3> inputs;
  std::array<std::int64_t, 3> steps;
  std::byte* output;
  std::int64_t n;

  template <class T>
  const T* input(std::size_t i = 0) const {
    return reinterpret_cast<const T*>(inputs[i]);
  }
  template <class T>
  T* to() const {
    return reinterpret_cast<T*>(output);
  }
};
/// A kernel for `PointwiseCall`. Without `steps`, all steps must be 1. A null `run` means that
/// there is no such kernel.
struct PointwiseKernel {
  void (*run)(const PointwiseCall&) = nullptr;
  bool steps = false;
  /// The arithmetic that the kernel does, if it is no more than one step on inputs 0 and 1, or on
  /// input 0 and `number`.
  ArithmeticStep arithmetic = ArithmeticStep::none;
  /// Writes the constant stored in the node's attributes, in the dtype of its input.
  void (*number)(const Attributes& attributes, std::byte* to) = nullptr;
};

/// A streaming reduction with the same bits as `compute`. Rows of `columns` contiguous elements are
/// reduced to `columns` adjacent results, each of which takes one element of each row. The rows of
/// these results are `elements` contiguous elements; those of the next results follow. Null
/// functions mean that there is none.
///
/// The elements of such results are split into segments of `segment` elements (the last may be
/// shorter), which are whole rows and may be folded concurrently. Between `begin` and `end` a
/// segment is passed in pieces, in order. Each piece is a multiple of `piece` elements or ends the
/// segment.
struct FoldKernel {
  std::int64_t elements = 0;
  std::int64_t columns = 1;
  std::int64_t segment = 0;
  std::int64_t piece = 0;
  std::int64_t state_bytes = 0;  ///< of a segment being folded, aligned to 64
  void (*begin)(std::byte* state, std::int64_t elements, std::int64_t columns) = nullptr;
  void (*add)(std::byte* state, const std::byte* x, std::int64_t n) = nullptr;
  /// Writes `columns` totals.
  void (*end)(std::byte* state, std::byte* totals) = nullptr;
  /// Computes `columns` results from the totals of their segments, which it may overwrite.
  void (*finish)(const Attributes& attributes, std::byte* totals, std::int64_t segments,
                 std::int64_t columns, std::byte* to) = nullptr;
  /// Computes `count` results of `elements` elements each, at once. Null if `elements` is larger
  /// than `piece`, or `columns` than 1, and optional otherwise. The other functions serve results
  /// of 16-bit types.
  void (*rows)(const Attributes& attributes, const std::byte* x, std::int64_t count,
               std::int64_t elements, std::byte* to) = nullptr;

  /// Distance between the totals of two segments.
  std::int64_t total_bytes() const { return columns * 8; }
};

/// An epilogue: an elementwise operation applied in place to a kernel's output while that is still
/// in the cache.
struct EpilogueKernel {
  void (*run)(const PointwiseCall&);
  PointwiseCall whole;                ///< inputs and output, pointing at their first elements
  std::array<std::int64_t, 3> bytes;  ///< per element of each input
  std::int64_t output_bytes;

  void operator()(std::int64_t first, std::int64_t n) const {
    PointwiseCall call = whole;
    for (std::size_t i = 0; i < bytes.size(); ++i) call.inputs[i] += first * bytes[i];
    call.output += first * output_bytes;
    call.n = n;
    run(call);
  }
};

class RunScope;

/// Everything a kernel may touch: inputs to read, outputs to fill and the scratch it asked for.
struct KernelCall {
  const Attributes& attributes;
  std::span<const Operand> inputs;
  std::span<const Operand> outputs;
  /// As many bytes as the operation's `workspace` returned for `threads`, aligned to 64.
  std::span<std::byte> workspace;
  /// Upper bound on threads that run at once in the arena in which the kernel is called.
  int threads = 1;
  /// The current run of a program that is recorded once and run many times. Kernels that draw
  /// random numbers use another stream in each run; see `in_round`.
  Round round = {};
  /// Epilogue for the elements of the output, or null. Only for operations with `fuses_epilogues`.
  const EpilogueKernel* epilogue = nullptr;
  /// State shared by kernels of one run; null outside planned runs, and for accumulations and
  /// epilogues.
  RunScope* scope = nullptr;

  /// Kernels with `fuses_epilogues` call this once for every element, when its value is final.
  void finished(std::int64_t first, std::int64_t n) const {
    if (epilogue != nullptr) (*epilogue)(first, n);
  }
  const Operand& input(std::size_t i = 0) const { return inputs[i]; }
  const Operand& output(std::size_t i = 0) const { return outputs[i]; }
};

/// The access pattern of an operation that only moves elements. Element i of the output is element
/// `offset` + Σ iₐ·`strides`ₐ of the input.
struct Access {
  Strides strides{};
  std::int64_t offset = 0;
};

/// Elements [begin, end) of the output of an operation that only moves elements. They are
/// consecutive elements of an input, starting at `from`, or all the same number.
struct Stretch {
  std::int64_t begin;
  std::int64_t end;
  int input;  ///< −1: every element is `number`
  double number = 0;
  std::int64_t from = 0;
};

/// Cost estimate of running a node, for the planners.
struct Cost {
  double flops = 0;  ///< floating-point operations; a transcendental function counts as 10 to 30
  double bytes = 0;  ///< bytes read and written
};

/// How kernels handle 16-bit floating types.
enum class HalfSupport : std::uint8_t {
  widened,  ///< kernels support f32 and f64; 16-bit operands are converted before and after
  native,   ///< kernels support every dtype, for example because they only move elements
};

/// Which dtype of a mixed precision an operation is computed in: the wide one or the narrow one,
/// which has half its width. Other dtypes are not changed.
enum class MixedPrecision : std::uint8_t {
  wide,      ///< wide: reductions, losses, functions that magnify errors or overflow early
  narrow,    ///< narrow: matrix products, which accumulate in f32
  follows,   ///< narrow if an input is, unless the result is a single number: operations that move
             ///< elements, and most elementwise operations
  reads,     ///< reads inputs in their own dtype; results are wide
  first,     ///< the dtype of input 0 for output 0 too; other inputs are wide, other outputs have
             ///< the compute dtype of the wide one
  recorded,  ///< as recorded, also in a precision of one dtype: programs, custom operations
};

/// One kind of operation, defined in one place. A file of `autodiff/operations/` holds this record,
/// the public function that checks shapes and records nodes, and the kernel.
struct Operation {
  std::string_view name;
  std::string_view formula;  ///< mathematical definition of value and derivative
  std::string_view summary;  ///< one line for the documentation

  /// Fills the outputs. Deterministic: the bits depend on inputs and attributes, never on threads.
  void (*compute)(const KernelCall&) = nullptr;
  /// Computes the single output and adds one more input to it. That input comes last and has the
  /// output's dtype and as many elements. The bits equal computing and then adding, except that
  /// either of two NaNs may result. Not widened. Null: not supported.
  void (*accumulate)(const KernelCall&) = nullptr;
  /// Whether `accumulate` may write its output over the added input. Null: never.
  bool (*accumulates_in_place)(const NodeView&) = nullptr;
  /// Records the adjoints of the inputs. Null when no derivative flows (comparisons, argmax, sign).
  void (*vjp)(const Pullback&) = nullptr;
  /// Null: one operation per output element, and each operand is moved once.
  Cost (*cost)(const NodeView&) = nullptr;
  /// Bytes of scratch needed with up to `threads` threads. Null: none.
  Bytes (*workspace)(const NodeView&, int threads) = nullptr;

  /// For elementwise operations with broadcasting inputs: the kernel for a run of elements, with
  /// the same bits as `compute`. A null kernel for unsupported operands.
  PointwiseKernel (*pointwise)(const NodeView&) = nullptr;
  /// For reductions; a null kernel if the rows of a result are not adjacent, and where streaming
  /// would not pay.
  FoldKernel (*fold)(const NodeView&) = nullptr;
  /// For operations of one input that read each output element from one position of it.
  Access (*access)(const NodeView&) = nullptr;
  /// For operations that concatenate stretches of their inputs: those of the output, in order, or
  /// those of its first rows. Later rows repeat them, further on. Empty if there are none.
  std::vector<Stretch> (*stretches)(const NodeView&) = nullptr;

  /// True for a node whose attributes make its output equal its input, bit for bit. Null: never.
  /// Here and below, a signalling NaN may stay signalling.
  bool (*is_identity)(const NodeView&) = nullptr;
  /// For operations of two inputs: the neutral element. If input i is this number, the output
  /// equals the other input, bit for bit.
  std::array<std::optional<double>, 2> neutral{};

  /// Position of the input whose buffer the output may reuse (in-place), provided that it is not
  /// read again; −1 if none. Both take as many bytes. Null: never.
  int (*in_place)(const NodeView&, std::size_t output) = nullptr;

  HalfSupport half = HalfSupport::widened;
  MixedPrecision mixed = MixedPrecision::wide;
  /// True when the last output is memory that no user sees. The planner chooses its shape: as large
  /// as the plan has room for.
  bool has_state_budget = false;

  bool serial = false;   ///< long-running, mostly on one thread
  bool opaque = false;   ///< neither its use of threads nor its run time is known
  bool of_user = false;  ///< custom operation: lives only as long as the nodes that hold it
  bool random = false;   ///< draws random numbers from streams that its attributes name
  /// `compute` applies `epilogue`. Only for operations of one output.
  bool fuses_epilogues = false;

  bool view = false;  ///< output 0 shares the storage of input 0; `compute` is not called
  bool leaf = false;  ///< supplied by the user: no inputs, nothing to compute
};

/// Every built-in operation, in the order of the documentation.
std::span<const Operation* const> operations();

}  // namespace palimpsest
