// x[0] is a new value: assigning to it would not change x.
#include "autodiff/operations/shape.h"

#ifdef WRONG
void assign(palimpsest::Var x, const palimpsest::Var& y) { x[0] = y; }
#else
void assign(palimpsest::Var x, const palimpsest::Var& y) { x = y[0]; }
#endif
