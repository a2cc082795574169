#pragma once

#include <functional>
#include <memory>

#include <palimpsest/nn/nn.h>
#include <palimpsest/strategy/training/training.h>
#include "examples/support/classifier_options.h"
#include "palimpsest.h"

namespace examples {

/// A model of Fashion-MNIST, and how it is trained.
struct ClassifierTask {
  palimpsest::nn::Parameters parameters;
  /// Logits (n, 10) of images (n, 1, 28, 28), which have a mean of about 0 and a deviation of
  /// about 1.
  std::function<palimpsest::Var(const palimpsest::Var& images)> logits;
  std::unique_ptr<palimpsest::Optimizer> optimizer;
  palimpsest::RateSchedule rate;
};

/// Makes the task of a run with this many steps.
using MakeTask = std::function<ClassifierTask(std::int64_t steps)>;

/// Trains on images of which a random half is mirrored, and tests after each epoch. Prints the
/// loss, the accuracies, the peak of a step's bytes, and the time of each epoch. Saves the state
/// after each epoch and continues from it, as `ClassifierOptions::state` says; the weights at the
/// end have the same bits as without the interruption.
///
/// Returns the exit code of the program: 0, 1 after an error or if the required accuracy is not
/// reached, 2 for wrong arguments.
int classifier_main(int argc, char** argv, const ClassifierOptions& defaults,
                    const MakeTask& make_task);

}  // namespace examples
