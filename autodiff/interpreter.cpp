#include "autodiff/interpreter.h"

#include <algorithm>
#include <vector>

#include "autodiff/error.h"
#include "autodiff/execute.h"

namespace palimpsest {
namespace {

/// Whether an output of the node is read and not present.
bool is_needed(const Tape& tape, NodeId node, std::span<const std::uint32_t> reads) {
  const ValueId first = tape.first_output(node);
  for (ValueId i = 0; i < tape.output_count(node); ++i) {
    if (reads[first + i] > 0 && !tape.has_value(first + i)) return true;
  }
  return false;
}

/// Counts the reads of each value while `targets` are computed from the values present; 0 for the
/// rest.
std::vector<std::uint32_t> count_reads(const Tape& tape, std::span<const ValueId> targets) {
  std::vector<std::uint32_t> reads(tape.value_count());
  for (const ValueId target : targets) ++reads[target];  // the caller's reads
  for (NodeId node = tape.producer(std::ranges::max(targets)) + 1; node-- > 0;) {
    if (!is_needed(tape, node, reads)) continue;
    for (const ValueId input : tape.inputs(node)) ++reads[input];
  }
  return reads;
}

[[noreturn]] void throw_without_value(const Tape& tape, NodeId leaf) {
  throw TapeError("var",
                  "this Var depends on an argument of a loop body, which has a value only while "
                  "the loop runs; return what you need from the body",
                  tape.where(leaf));
}

}  // namespace

/// The values computed so far. The destructor drops the remaining ones, also after an exception.
class Made {
 public:
  explicit Made(Tape& tape) : tape_(tape), made_(tape.value_count()) {}
  ~Made() {
    for (ValueId value = 0; value < made_.size(); ++value) drop(value);
  }
  Made(const Made&) = delete;
  Made& operator=(const Made&) = delete;

  void add(ValueId value) { made_[value] = true; }
  void keep(ValueId value) { made_[value] = false; }
  void drop(ValueId value) {
    if (made_[value]) tape_.drop(value);
  }

 private:
  Tape& tape_;
  std::vector<bool> made_;
};

void interpret(Tape& tape, ValueId value) { interpret(tape, {&value, 1}); }

void interpret(Tape& tape, std::span<const ValueId> values) {
  if (values.empty()) return;
  tape.notice_writes();
  std::vector<std::uint32_t> reads = count_reads(tape, values);
  Made made(tape);
  for (NodeId node = 0; node <= tape.producer(std::ranges::max(values)); ++node) {
    const ValueId first = tape.first_output(node);
    const std::uint32_t outputs = tape.output_count(node);
    if (!is_needed(tape, node, reads)) continue;
    if (tape.is_leaf(node)) throw_without_value(tape, node);
    std::vector<bool> present;
    for (ValueId i = 0; i < outputs; ++i) present.push_back(tape.has_value(first + i));
    execute_on_tape(tape, node);
    for (ValueId i = 0; i < outputs; ++i) {
      if (!present[i]) made.add(first + i);
      if (reads[first + i] == 0) made.drop(first + i);
    }
    for (const ValueId input : tape.inputs(node)) {
      if (--reads[input] == 0) made.drop(input);
    }
  }
  for (const ValueId value : values) made.keep(value);
}

void require_leaves(const Tape& tape, std::span<const ValueId> values) {
  if (values.empty()) return;
  const auto lacks_value = [&](NodeId node) {
    return tape.is_leaf(node) && !tape.has_value(tape.first_output(node));
  };
  const NodeId end = tape.producer(std::ranges::max(values)) + 1;
  NodeId first = 0;
  while (first < end && !lacks_value(first)) ++first;
  if (first == end) return;  // the usual case
  const std::vector<std::uint32_t> reads = count_reads(tape, values);
  for (NodeId node = first; node < end; ++node) {
    if (lacks_value(node) && is_needed(tape, node, reads)) throw_without_value(tape, node);
  }
}

}  // namespace palimpsest
