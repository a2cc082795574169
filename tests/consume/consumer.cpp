// A program of an external user: the derivative of x² at 3.
#include <palimpsest.h>

int main() {
  palimpsest::Tape tape;
  const palimpsest::Var x = tape.parameter(palimpsest::Tensor::scalar(3));
  return palimpsest::gradient(x * x, x).item() == 6 ? 0 : 1;
}
