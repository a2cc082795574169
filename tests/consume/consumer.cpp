// A program of an external user: the derivative of x² at 3, which comes from a data loader.
#include <palimpsest.h>
#include <palimpsest/autodiff/gradcheck.h>
#include <palimpsest/data/data.h>

// Another library may have a folder of this name in the search path.
#if __has_include(<autodiff/tape.h>)
#error "headers of the library are found without palimpsest/"
#endif

int main() {
  palimpsest::DataLoader loader(palimpsest::in_memory({{"x", palimpsest::Tensor::vector({3})}}));
  for (const palimpsest::Batch& batch : loader) {
    palimpsest::Tape tape;
    const palimpsest::Var x = tape.parameter(batch["x"]);
    if (palimpsest::gradient(x * x, x).item() != 6) return 1;
  }
  return 0;
}
