#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "autodiff/tape.h"
#include "strategy/export/c_text.h"

namespace palimpsest {

/// One node, as an emitter sees it.
struct CNode {
  const Operation& operation;
  const Attributes& attributes;
  std::span<const ValueType> inputs;
  std::span<const ValueType> outputs;

  const Shape& input_shape(std::size_t i = 0) const { return inputs[i].shape; }
  const Shape& output_shape(std::size_t i = 0) const { return outputs[i].shape; }
  DType dtype(std::size_t output = 0) const { return outputs[output].dtype; }
  /// The C type of the first output's elements.
  std::string type() const { return c_type(dtype()); }
};

/// The body of a C function that computes a node: `x0`, `x1` … are pointers to the inputs, `y0`,
/// `y1` … to the outputs, and `w` to the workspace.
class CBody {
 public:
  /// Adds lines, indented by the blocks that are open. A leading line break is ignored.
  void add(std::string_view pattern, Blanks blanks = {});
  /// Adds a line that opens a block, as in `for (…)`.
  void open(std::string_view pattern, Blanks blanks = {});
  void close();

  /// Declares that the body calls a helper function, which is defined once in the file. `text` is
  /// its definition.
  void use(const std::string& text);
  /// Declares that the body returns a status in some cases. A `return 0` is added to its end.
  void may_fail() { fails_ = true; }
  /// Lets `x0` point to this element of the input, so that bodies for other elements are equal.
  void start_at(std::int64_t element) { start_ = element; }

  const std::string& text() const { return text_; }
  const std::vector<std::string>& helpers() const { return helpers_; }
  bool fails() const { return fails_; }
  std::int64_t start() const { return start_; }

 private:
  std::string text_;
  std::size_t depth_ = 1;
  std::vector<std::string> helpers_;
  bool fails_ = false;
  std::int64_t start_ = 0;
};

/// Loops over the elements of a shape. Several operands are walked through, each with strides of
/// its own. Axes that follow each other in all operands become one loop.
class CLoops {
 public:
  CLoops(const Shape& shape, const std::vector<Strides>& strides, std::string letter = "i");

  void open(CBody& body) const;
  void close(CBody& body) const;
  /// The offset of the current element in operand `operand`, as in `12*i0 + i1`.
  std::string offset(std::size_t operand) const;

 private:
  std::string letter_;
  std::vector<std::int64_t> sizes_;
  std::vector<std::vector<std::int64_t>> strides_;  // by operand, then by loop
};

/// Strides with which an operand of shape `from` is read as a tensor of shape `to`.
Strides broadcast_strides(const Shape& from, const Shape& to);

/// `a + b` of two offsets as text.
std::string sum_of(const std::string& a, const std::string& b);

}  // namespace palimpsest
