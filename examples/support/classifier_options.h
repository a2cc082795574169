#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "examples/support/idx.h"
#include "palimpsest.h"

namespace examples {

/// Command-line options of the examples that train an image classifier on Fashion-MNIST.
struct ClassifierOptions {
  std::int64_t epochs = 1;
  std::int64_t batch = 128;                          ///< images of a step
  std::int64_t images = 60'000;                      ///< for training; the first ones of the file
  std::int64_t test_images = 10'000;                 ///< likewise
  palimpsest::Bytes budget = palimpsest::unlimited;  ///< of a step
  /// The file of the training state. It is written after each epoch, and if it exists, training
  /// continues from it. Empty: none.
  std::string state = {};
  std::int64_t stop_after = 0;  ///< epochs of this run; 0: no limit
  double required = 0;          ///< test accuracy that the last epoch must reach, in percent
  std::string data = fashion_mnist_folder;
};

/// Reads `--epochs N`, `--batch N`, `--images N`, `--test-images N`, `--budget MIB`, `--state
/// FILE`,
/// `--stop-after N`, `--require PERCENT` and `--data FOLDER`; `defaults` are the options that are
/// not given. Prints the usage and returns nothing if an argument is none of these.
std::optional<ClassifierOptions> parse_classifier_options(int argc, char** argv,
                                                          const ClassifierOptions& defaults);

}  // namespace examples
