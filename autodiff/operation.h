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
#include "autodiff/tensor.h"

namespace palimpsest {

class Tape;
class Var;
class NodeView;
class Pullback;

/// True for equal bits: a NaN is equal to itself, 0 is not equal to −0.
inline bool same_number(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

/// Attributes with which a node does what depends on more than them.
template <class T>
concept OfOneTape = requires { typename T::IsOfOneTape; };

/// What one node was given beside its inputs (axes, strides, a random key): any value type,
/// immutable once recorded, shared between copies of the node.
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

  /// True only if a node does the same with either. Types whose
  /// bytes are their value are compared by them, others by `==`, which must tell any two numbers
  /// apart that `same_number` does; without one, only what is shared is equal.
  bool operator==(const Attributes& other) const {
    if (value_ == other.value_) return true;
    return kind_ == other.kind_ && kind_->equal(value_.get(), other.value_.get());
  }
  /// True only if a node does with `other` what it does with these when its tape has been cleared
  /// `round` times more and records the same.
  bool are_in_round(std::uint32_t round, const Attributes& other) const {
    if (empty() || kind_ != other.kind_) return *this == other;
    return kind_->are_in_round(value_.get(), round, other.value_.get());
  }
  /// False for types with a member `IsOfOneTape`: what a node does with them depends on more.
  bool may_come_again() const { return empty() || kind_->may_come_again; }

 private:
  struct Kind {
    const std::type_info& type;
    bool (*equal)(const void* a, const void* b);
    bool (*are_in_round)(const void* a, std::uint32_t round, const void* b);
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
  static constexpr Kind kind{typeid(T), equal<T>, are_in_round<T>, !OfOneTape<T>};

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

/// Elements [0, n) of an elementwise operation's output, from as many elements of each input, or
/// from its first alone where its step is 0. The output may be one of those whose step is 1.
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
/// A kernel that takes such calls; without `steps` only those whose steps are all 1. Null when
/// there is none.
struct PointwiseKernel {
  void (*run)(const PointwiseCall&) = nullptr;
  bool steps = false;
  /// What it does, where that is no more than this, to inputs 0 and 1 or to input 0 and `number`.
  ArithmeticStep arithmetic = ArithmeticStep::none;
  /// Writes the number that the node was given, in the dtype of its input.
  void (*number)(const Attributes& attributes, std::byte* to) = nullptr;
};

/// A reduction whose results are each made of `elements` elements side by side, one result's behind
/// the other's: carried out piece by piece, with the bits of `compute`. Null when there is none.
///
/// A result is made of segments of `segment` elements, the last one's excepted, which may be folded
/// at the same time. Between `begin` and `end` a segment is given in pieces, in order; each is a
/// multiple of `piece` elements or ends the segment.
struct FoldKernel {
  static constexpr std::int64_t piece = 256;
  static constexpr std::int64_t state_bytes = 640;  ///< of a segment being folded, aligned to 64
  static constexpr std::int64_t total_bytes = 8;    ///< from one segment's total to the next one's

  std::int64_t elements = 0;
  std::int64_t segment = 0;
  void (*begin)(std::byte* state, std::int64_t elements) = nullptr;
  void (*add)(std::byte* state, const std::byte* x, std::int64_t n) = nullptr;
  void (*end)(std::byte* state, std::byte* total) = nullptr;
  /// The result from the totals of its segments, which it may change.
  void (*finish)(const Attributes& attributes, std::byte* totals, std::int64_t segments,
                 std::byte* to) = nullptr;
};

/// An elementwise operation that is carried out, in place, on what a kernel makes while that is in
/// the cache.
struct Finish {
  void (*run)(const PointwiseCall&);
  PointwiseCall whole;                ///< inputs and output from their first elements on
  std::array<std::int64_t, 3> bytes;  ///< of an element of each input
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

/// Everything a kernel may touch: inputs to read, outputs to fill, scratch it asked for.
struct KernelCall {
  const Attributes& attributes;
  std::span<const Operand> inputs;
  std::span<const Operand> outputs;
  /// As many bytes as the operation's `workspace` named for `threads`, aligned to 64.
  std::span<std::byte> workspace;
  /// Most threads that run at once in the arena the kernel is called in.
  int threads = 1;
  /// Counts the runs of a program that is recorded once and run many times. Kernels that draw
  /// random numbers take another stream in each; see `in_round`.
  std::uint32_t round = 0;
  /// For operations that finish: what to do with the elements of the output, or null.
  const Finish* finish = nullptr;
  /// For what is left to kernels of the same run; null outside planned runs and in checkpoints.
  RunScope* scope = nullptr;

  /// To be called for every element once, when its value will not change any more.
  void finished(std::int64_t first, std::int64_t n) const {
    if (finish != nullptr) (*finish)(first, n);
  }
  const Operand& input(std::size_t i = 0) const { return inputs[i]; }
  const Operand& output(std::size_t i = 0) const { return outputs[i]; }
};

/// Where an operation that only moves elements finds them: place i of the output is place
/// `offset` + Σ iₐ·`strides`ₐ of the input.
struct Access {
  Strides strides{};
  std::int64_t offset = 0;
};

/// Elements [begin, end) of the output of an operation that only moves elements: those of an input,
/// from element `from` on in order, or one number.
struct Stretch {
  std::int64_t begin;
  std::int64_t end;
  int input;  ///< −1: `number` in every place
  double number = 0;
  std::int64_t from = 0;
};

/// What running a node takes, for the planners.
struct Cost {
  double flops = 0;  ///< floating-point operations; a transcendental function counts as 10
  double bytes = 0;  ///< bytes read and written
};

/// What the kernels do with 16-bit floating types.
enum class HalfSupport : std::uint8_t {
  widened,  ///< kernels know f32 and f64; 16-bit operands are widened around them
  native,   ///< kernels take every dtype themselves, as one that only moves elements does
};

/// In which of the two floating dtypes of a mixed precision, the wide one and the narrow one of
/// half width, an operation is computed. Other dtypes stay what they are.
enum class MixedPrecision : std::uint8_t {
  wide,      ///< the wide one: reductions, losses, functions that magnify errors or overflow early
  narrow,    ///< the narrow one: products, which sum in f32 inside
  follows,   ///< the narrow one where an input has it, unless it makes but one number: what moves
             ///< elements, and most elementwise operations
  reads,     ///< wide results of what it reads as that comes
  first,     ///< that of input 0, which output 0 has too; inputs beside it are wide, other outputs
             ///< what the wide one is computed in
  recorded,  ///< as it was recorded, also in a precision of one dtype: programs, users' operations
};

/// One kind of operation, defined in one place: a file of `autodiff/operations/` holds the record,
/// the public function that checks shapes and records nodes, and the kernel.
struct Operation {
  std::string_view name;
  std::string_view formula;  ///< value and derivative in mathematics
  std::string_view summary;  ///< one line for the documentation

  /// Fills the outputs. Deterministic: bits depend on inputs and attributes, never on threads.
  void (*compute)(const KernelCall&) = nullptr;
  /// Null, or as `compute` of one output that is not widened, with one more input behind the
  /// others, of as many elements and of its dtype, that is added to it: the bits are those of
  /// computing and then adding, except that of two NaNs either may come out.
  void (*accumulate)(const KernelCall&) = nullptr;
  /// Whether `accumulate` may write its output where the input lies that is added. Null: never.
  bool (*accumulates_in_place)(const NodeView&) = nullptr;
  /// Records the adjoints of the inputs; null when no derivative flows (comparisons, argmax, sign).
  void (*vjp)(const Pullback&) = nullptr;
  /// Null: one operation per output element and every operand moved once.
  Cost (*cost)(const NodeView&) = nullptr;
  /// Bytes of scratch needed when `threads` may run; null: none.
  Bytes (*workspace)(const NodeView&, int threads) = nullptr;

  /// For elementwise operations, whose inputs broadcast: the kernel of a run of elements, which has
  /// the bits of `compute`; a null one for operands it does not take.
  PointwiseKernel (*pointwise)(const NodeView&) = nullptr;
  /// For reductions; a null kernel where elements do not lie side by side.
  FoldKernel (*fold)(const NodeView&) = nullptr;
  /// For operations of one input that take each element from one place of it.
  Access (*access)(const NodeView&) = nullptr;
  /// For operations that put stretches of inputs one behind the other: those of the output, in
  /// order; none where they do not lie so in memory.
  std::vector<Stretch> (*stretches)(const NodeView&) = nullptr;

  /// True for a node whose numbers make its output its input, bit for bit. Null: never. Here, as
  /// below, a signalling NaN may stay one.
  bool (*is_identity)(const NodeView&) = nullptr;
  /// For operations of two inputs: the number that, as input i, makes the output the other input,
  /// bit for bit.
  std::array<std::optional<double>, 2> neutral{};

  /// Position of the input in whose place an output may be made, where nothing reads that any more,
  /// or −1: the two take as many bytes. Null: never.
  int (*overwrites)(const NodeView&, std::size_t output) = nullptr;

  HalfSupport half = HalfSupport::widened;
  MixedPrecision mixed = MixedPrecision::wide;
  /// True when there are outputs that no user sees, whose shapes are decided with the plan: the
  /// last one, memory for what the plan has room for.
  bool has_room = false;
  bool serial = false;    ///< runs for long, most of it on one thread
  bool opaque = false;    ///< how it uses threads is not known, nor for how long it runs
  bool of_user = false;   ///< lives only as long as nodes that hold it
  bool random = false;    ///< draws numbers from streams that its attributes name
  bool finishes = false;  ///< `compute` obeys `finish`; of operations of one output
  bool view = false;      ///< output 0 shares the storage of input 0; `compute` is not called
  bool leaf = false;      ///< supplied by the user: no inputs, nothing to compute
};

/// Every operation of the library, in the order of the documentation.
std::span<const Operation* const> operations();

}  // namespace palimpsest
