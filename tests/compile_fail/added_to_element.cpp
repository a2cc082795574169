// x[0] += y would change neither x nor its value.
#include "autodiff/operations/binary.h"
#include "autodiff/operations/shape.h"

#ifdef WRONG
void add(palimpsest::Var& x, const palimpsest::Var& y) { x[0] += y; }
#else
void add(palimpsest::Var& x, const palimpsest::Var& y) { x += y[0]; }
#endif
