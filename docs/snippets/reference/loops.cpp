// Examples of docs/reference/loops.md.
#include <palimpsest/checkpoint/stores/spill_file.h>

#include "docs/snippets/reference/example.h"

namespace reference {

EXAMPLE(scan, LoopStep, LoopResult) {
  Tape tape;
  const Var start = tape.parameter(Tensor::scalar(1));
  // Compound interest over 10 years; one node of the tape.
  const Var end = scan(start, 10, [](const Var& x, const StepNumber&) { return 1.05 * x; });
  print(end, backward(end)[start]);  // → 1.629 1.629
  // With inputs of each step, and outputs that are kept.
  const Var rates = tape.constant(Tensor::vector({1, 2, 3}));
  const LoopResult result =
      scan({start}, 3, {rates},
           [](std::span<const Var> state, std::span<const Var> inputs, const StepNumber&) {
             const Var next = state[0] * inputs[0];
             return LoopStep{.state = {next}, .outputs = {next}};
           });
  print(result.state[0], result.outputs[0]);  // → 6 [1, 2, 6]
}

EXAMPLE(StepNumber, StepNumber::as) {
  Tape tape;
  const Var zero = tape.constant(Tensor::scalar(0));
  print(scan(zero, 5, [](const Var& x, const StepNumber& n) { return x + n.as(DType::f32); }));
  // → 10
}

EXAMPLE(LoopOptions) {
  Tape tape;
  const Var start = tape.parameter(Tensor::ones({100}));
  const auto step = [](const Var& x, const StepNumber&) { return sin(x); };
  // At most 16 KiB for the states of this loop and one step; others may go to the disk.
  const Var end = scan(start, 1000, step, {.memory_budget = 16_KiB, .spill = "."});
  print(backward(sum(end))[start].shape());  // → (100)
}

EXAMPLE(while_loop, WhileResult) {
  Tape tape;
  const Var start = tape.parameter(Tensor::scalar(100));
  const WhileResult halved = while_loop(
      {&start, 1}, [](std::span<const Var> x, const StepNumber&) { return x[0] > 1; },
      [](std::span<const Var> x, std::span<const Var>, const StepNumber&) {
        return LoopStep{{x[0] / 2}};
      });
  print(halved.state[0], halved.steps);  // → 0.7812 7
}

EXAMPLE(encode, decode, stored_bytes, stored_dtype, name_of, Codec) {
  print(name_of(Codec::half), stored_dtype(DType::f64, Codec::half));  // → half f32
  print(stored_bytes(800, DType::f64, Codec::half));                   // → 400
}

EXAMPLE(SpillFile, SpillFile::write, SpillFile::prefetch, SpillFile::wait, SpillFile::finish,
        SpillFile::path, SpillFile::bytes_written, SpillFile::bytes_read, SpillFile::memory_bytes,
        RecordPiece, SpillOptions) {
  const std::vector<RecordPiece> record{{.bytes = 800, .dtype = DType::f64}};
  std::vector<double> state(100, 1.5), again(100);
  SpillFile file(".", record);
  const std::span<const std::byte> from[] = {std::as_bytes(std::span(state))};
  const std::span<std::byte> to[] = {std::as_writable_bytes(std::span(again))};
  file.write(/*slot=*/0, /*step=*/7, from);  // `state` must not change until it is written
  file.prefetch(0, 7, to);
  file.wait(0);
  file.finish();
  print(again == state, file.bytes_written() >= 800, file.bytes_read() >= 800);  // → true true true
  print(file.path().ends_with(".spill"), SpillFile::memory_bytes(10, record, 1) < 1_MiB);
  // → true true
}

EXAMPLE(measure_disk, DiskSeconds) {
  const DiskSeconds seconds = measure_disk(".", /*bytes=*/64_KiB, /*total=*/1_MiB);
  print(seconds.write > 0, seconds.read > 0);  // → true true
}

EXAMPLE(require_valid, DiskCosts) {
  require_valid(DiskCosts{.write = 2, .read = 1.5});
  try {
    require_valid(DiskCosts{.write = -1});
  } catch (const ArgumentError&) {
    print("negative");  // → negative
  }
}

}  // namespace reference
