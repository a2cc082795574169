// A flag in the place of the axes is not taken for axis 1.
#include "autodiff/operations/reduce.h"

#ifdef WRONG
palimpsest::Var total(const palimpsest::Var& x) { return sum(x, true); }
#else
palimpsest::Var total(const palimpsest::Var& x) { return sum(x, 0, true); }
#endif
