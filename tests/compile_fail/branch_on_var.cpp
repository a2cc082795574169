// A Var has no value yet, so C++ cannot branch on a comparison; `where` chooses elementwise.
#include "autodiff/operations/binary.h"

#ifdef WRONG
palimpsest::Var larger(const palimpsest::Var& x, const palimpsest::Var& y) { return x > y ? x : y; }
#else
palimpsest::Var larger(const palimpsest::Var& x, const palimpsest::Var& y) {
  return where(x > y, x, y);
}
#endif
