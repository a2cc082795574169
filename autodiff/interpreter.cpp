#include "autodiff/interpreter.h"

#include <vector>

#include "autodiff/execute.h"

namespace palimpsest {
namespace {

/// How many reads each value will see when `target` is made from what is present; 0 for the rest.
std::vector<std::uint32_t> count_reads(const Tape& tape, ValueId target) {
  std::vector<std::uint32_t> reads(tape.value_count());
  reads[target] = 1;  // the caller's
  for (NodeId node = tape.producer(target) + 1; node-- > 0;) {
    const ValueId first = tape.first_output(node);
    bool needed = false;
    for (ValueId i = 0; i < tape.output_count(node); ++i) {
      needed |= reads[first + i] > 0 && !tape.has_value(first + i);
    }
    if (!needed) continue;
    for (const ValueId input : tape.inputs(node)) ++reads[input];
  }
  return reads;
}

}  // namespace

void interpret(Tape& tape, ValueId value) {
  std::vector<std::uint32_t> reads = count_reads(tape, value);
  std::vector<bool> made(tape.value_count());
  for (NodeId node = 0; node <= tape.producer(value); ++node) {
    const ValueId first = tape.first_output(node);
    const std::uint32_t outputs = tape.output_count(node);
    bool needed = false;
    for (ValueId i = 0; i < outputs; ++i) {
      needed |= reads[first + i] > 0 && !tape.has_value(first + i);
    }
    if (!needed) continue;
    std::vector<bool> present;
    for (ValueId i = 0; i < outputs; ++i) present.push_back(tape.has_value(first + i));
    execute_on_tape(tape, node);
    for (ValueId i = 0; i < outputs; ++i) {
      made[first + i] = !present[i];
      if (reads[first + i] == 0 && !present[i]) tape.drop(first + i);
    }
    for (const ValueId input : tape.inputs(node)) {
      if (--reads[input] == 0 && made[input]) tape.drop(input);
    }
  }
}

}  // namespace palimpsest
