#pragma once

#include <string>
#include <vector>

#include "palimpsest.h"

namespace examples {

/// A residual convolutional network for small images: a stem, stages of residual blocks, and a
/// linear classifier. Between stages the image is halved and the number of channels doubled. The
/// code knows nothing of budgets: it only records, and the caller decides how to run the recording.
class ResidualNetwork {
 public:
  struct Options {
    std::int64_t channels = 12;        ///< in the first stage
    std::vector<int> blocks = {3, 2};  ///< number of blocks in each stage
    std::int64_t image_size = 28;
    std::int64_t classes = 10;
    std::uint64_t seed = 1;
  };

  explicit ResidualNetwork(const Options& options);

  /// Logits (n, classes) of images (n, 1, height, width). Records all weights as parameters of the
  /// tape.
  palimpsest::Var logits(palimpsest::Tape& tape, const palimpsest::Var& images) const;

  /// The weights by name. They share storage with the network.
  const palimpsest::NamedTensors& weights() const { return weights_; }

 private:
  Options options_;
  palimpsest::NamedTensors weights_;
};

}  // namespace examples
