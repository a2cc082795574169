// Prints what is live at the peak of a small encoder. docs/how-to.md shows the output.
#include <palimpsest.h>
#include <palimpsest/nn/nn.h>

#include <iostream>

using namespace palimpsest;

namespace {

/// A layer of a transformer. `Stack` calls it in the scope of its parameters.
struct EncoderLayer {
  nn::LayerNorm before_attention, before_hidden;
  nn::Attention attention;
  nn::Linear hidden, output;

  explicit EncoderLayer(const nn::Parameters& p)
      : before_attention(p / "before_attention", 32),
        before_hidden(p / "before_hidden", 32),
        attention(p / "attention", 32, /*head_count=*/4),
        hidden(p / "hidden", 32, 128),
        output(p / "output", 128, 32) {}

  Var operator()(const Var& x) const {
    const Var y = x + attention(before_attention(x));
    return y + output(gelu(hidden(before_hidden(y))));
  }
};

}  // namespace

int main() {
  nn::Parameters parameters(/*seed=*/1);
  const nn::Stack<EncoderLayer> encoder(parameters / "encoder", 3);
  const nn::Linear head(parameters / "head", 32, 10);
  Tape tape;
  const Var x = tape.constant(Tensor::normal({8, 64, 32}, /*seed=*/2));
  const Var loss = mean(square(head(encoder(x))));
  std::cout << backward(loss, {.threads = 1}).report().explain();
}
