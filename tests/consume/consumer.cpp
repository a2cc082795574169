// A program of an external user: the derivative of x² at 3.
#include <palimpsest.h>
#include <palimpsest/autodiff/gradcheck.h>

// Another library may have a folder of this name in the search path.
#if __has_include(<autodiff/tape.h>)
#error "headers of the library are found without palimpsest/"
#endif

int main() {
  palimpsest::Tape tape;
  const palimpsest::Var x = tape.parameter(palimpsest::Tensor::scalar(3));
  return palimpsest::gradient(x * x, x).item() == 6 ? 0 : 1;
}
