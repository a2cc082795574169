// Examples of docs/reference/errors.md.
#include <stop_token>

#include "docs/snippets/reference/example.h"

namespace reference {

EXAMPLE(Error, UsageError, EnvironmentError) {
  try {
    matmul(Tensor::ones({2, 3}), Tensor::ones({2, 3}));
  } catch (const UsageError& error) {
    // a mistake in the program.
    print("wrong use");  // → wrong use
  } catch (const EnvironmentError& error) {
    // Memory, files, budgets.
    print("environment");
  } catch (const Error& error) {
    print("other");
  }
}

EXAMPLE(ShapeError) {
  try {
    Tensor::ones({2}) + Tensor::ones({3});
  } catch (const ShapeError& error) {
    // The operation; then shapes and your line.
    print(std::string(error.what()).substr(0, 5));  // → [add]
  }
}

EXAMPLE(DTypeError, ArgumentError) {
  Tape tape;
  try {
    tape.parameter(Tensor::arange(3));
  } catch (const DTypeError&) {
    print("parameters are floating");  // → parameters are floating
  }
  try {
    Tensor::ones({3}).at(3);
  } catch (const ArgumentError&) {
    print("out of range");  // → out of range
  }
}

EXAMPLE(TapeError) {
  Tape tape;
  const Var x = tape.constant(Tensor::ones({2}));
  tape.clear();
  try {
    x + 1;
  } catch (const TapeError&) {
    print("x is no longer valid");  // → x is no longer valid
  }
}

EXAMPLE(AnomalyError) {
  Tape tape;
  const Var x = tape.parameter(Tensor::zeros({2}));
  try {
    backward(sum(log(x)), {.anomaly = true});
  } catch (const AnomalyError&) {
    print("the first operation with a NaN or infinity");
    // → the first operation with a NaN or infinity
  }
}

EXAMPLE(FileError) {
  try {
    load_safetensors("missing.safetensors");
  } catch (const FileError&) {
    print("no such file");  // → no such file
  }
}

EXAMPLE(to_string) {
  // The file and the line, as in messages.
  print(to_string(Where::current()).find("errors.cpp:") != std::string::npos);  // → true
}

EXAMPLE(StoppedError) {
  std::stop_source source;
  source.request_stop();
  Tape tape;
  try {
    backward(sum(tape.parameter(Tensor::ones({2}))), {.stop = source.get_token()});
  } catch (const StoppedError&) {
    print("stopped");  // → stopped
  }
}

}  // namespace reference
