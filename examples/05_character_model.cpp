// Trains a small causal transformer on the characters of the King James Bible, within 40 % of the
// memory that keeping everything would take. Then generates text with it.
//
//   05_character_model [--quick] [--steps N]
#include <palimpsest.h>
#include <palimpsest/data/data.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <random>

#include "examples/support/text.h"
#include "examples/support/transformer.h"

using namespace palimpsest;
using namespace examples;

namespace {

struct Settings {
  std::int64_t steps = 600;
  std::int64_t batch = 16;
  std::int64_t written = 400;  ///< characters to generate at the end
  double budget_fraction = 0.4;
  Transformer::Options model;
};

/// Passages of equal length from one part of a text: characters [first, last).
class Passages {
 public:
  Passages(const Text& text, std::int64_t first, std::int64_t last, std::int64_t length)
      : text_(text), starts_(first, last - length - 1), length_(length) {}

  struct Batch {
    Tensor tokens;  ///< i32 (n, length)
    Tensor next;    ///< the characters after them
  };

  Batch draw(std::int64_t n) {
    Batch batch{Tensor({n, length_}, DType::i32), Tensor({n, length_}, DType::i32)};
    const auto characters = text_.numbers().data<std::int32_t>();
    for (std::int64_t i = 0; i < n; ++i) {
      const auto start = characters.begin() + starts_(random_);
      std::copy_n(start, length_, batch.tokens.data<std::int32_t>().begin() + i * length_);
      std::copy_n(start + 1, length_, batch.next.data<std::int32_t>().begin() + i * length_);
    }
    return batch;
  }

 private:
  const Text& text_;
  std::uniform_int_distribution<std::int64_t> starts_;
  std::int64_t length_;
  std::mt19937_64 random_{11};
};

Var record_loss(Tape& tape, const Transformer& model, const Passages::Batch& batch) {
  const Var logits = model.logits(tape, tape.constant(batch.tokens));
  return cross_entropy(logits, tape.constant(batch.next));
}

/// Bits per character, over passages that training did not use.
double bits_per_character(const Transformer& model, Passages& passages) {
  Tape tape;
  double sum = 0;
  constexpr int batches = 8;
  for (int i = 0; i < batches; ++i) {
    tape.clear();
    sum += record_loss(tape, model, passages.draw(16)).item();
  }
  return sum / batches / std::log(2.0);
}

/// Samples characters one by one, each from as many preceding characters as the context holds.
std::string write(const Transformer& model, const Text& text, std::int64_t count) {
  std::mt19937_64 random(5);
  std::vector<std::int32_t> tokens{text.numbers().data<std::int32_t>()[0]};
  std::string written;
  Tape tape;
  while (static_cast<std::int64_t>(written.size()) < count) {
    tape.clear();
    const auto seen = std::min<std::int64_t>(std::ssize(tokens), model.options().context);
    const Tensor input({1, seen}, DType::i32);
    std::copy(tokens.end() - seen, tokens.end(), input.data<std::int32_t>().begin());
    const Var logits = model.logits(tape, tape.constant(input));
    const Tensor likely = softmax(select(logits, 1, -1) / 0.8).value();
    const auto weights = likely.data<float>();
    std::discrete_distribution<std::int32_t> distribution(weights.begin(), weights.end());
    tokens.push_back(distribution(random));
    written.push_back(text.character(tokens.back()));
  }
  return written;
}

int run(Settings settings) {
  const Text text(read_king_james_bible());
  settings.model.tokens = text.alphabet_size();
  const Transformer model(settings.model);
  const std::int64_t learned = text.size() / 10 * 9;
  Passages training(text, 0, learned, settings.model.context);
  Passages others(text, learned, text.size(), settings.model.context);

  Tape tape;
  const Bytes everything =
      plan_backward(record_loss(tape, model, training.draw(settings.batch))).keep_all_peak;
  const auto budget =
      static_cast<Bytes>(settings.budget_fraction * static_cast<double>(everything));
  std::printf("%lld characters; keeping everything, a step takes %s, the budget is %s.\n",
              static_cast<long long>(text.size()), format_bytes(everything).c_str(),
              format_bytes(budget).c_str());

  const double before = bits_per_character(model, others);
  const auto optimizer = adamw({.learning_rate = 2e-3, .weight_decay = 0.01});
  Bytes largest = 0;
  {
    ProgressBar progress("train", settings.steps);
    for (std::int64_t step = 1; step <= settings.steps; ++step) {
      tape.clear();
      const Var loss = record_loss(tape, model, training.draw(settings.batch));
      const Gradients gradients = backward(loss, {.memory_budget = budget});
      clip_by_norm(gradients, 1);
      optimizer->step(gradients);
      largest = std::max(largest, gradients.report().measured_peak);
      char state[64];
      std::snprintf(state, sizeof state, "loss %.3f, %s", gradients.loss().item(),
                    format_bytes(gradients.report().measured_peak).c_str());
      progress.show(step, state);
    }
  }
  const double after = bits_per_character(model, others);
  std::cout << write(model, text, settings.written) << '\n';
  std::printf("\n%.2f bits a character before, %.2f after; at most %s of %s\n", before, after,
              format_bytes(largest).c_str(), format_bytes(budget).c_str());
  return largest <= budget && after < before ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag == "--quick") {
      settings.steps = 12;
      settings.batch = 8;
      settings.written = 8;
      settings.model = {.context = 64, .width = 32, .blocks = 2};
    } else if (flag == "--steps" && i + 1 < argc && std::atoll(argv[i + 1]) > 0) {
      settings.steps = std::atoll(argv[++i]);
    } else {
      std::cerr << "usage: 05_character_model [--quick] [--steps N]\n";
      return 2;
    }
  }
  try {
    return run(settings);
  } catch (const Error& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
