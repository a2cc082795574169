#pragma once

#include <string>
#include <vector>

#include "palimpsest.h"

namespace examples {

/// A residual convolutional network for small images: a stem, stages of residual blocks that halve
/// the image and double the channels between them, and a linear classifier of the mean over
/// positions. Plain C++ that knows nothing of budgets: it records, whoever calls it decides.
class ResidualNetwork {
 public:
  struct Options {
    std::int64_t channels = 12;        ///< of the first stage
    std::vector<int> blocks = {3, 2};  ///< in each stage
    std::int64_t image_size = 28;
    std::int64_t classes = 10;
    std::uint64_t seed = 1;
  };

  explicit ResidualNetwork(const Options& options);

  /// Logits (n, classes) of images (n, 1, height, width), with all weights as parameters of the
  /// tape.
  palimpsest::Var logits(palimpsest::Tape& tape, const palimpsest::Var& images) const;

  /// The weights by name; they share storage with the network's.
  const palimpsest::NamedTensors& weights() const { return weights_; }

 private:
  Options options_;
  palimpsest::NamedTensors weights_;
};

}  // namespace examples
