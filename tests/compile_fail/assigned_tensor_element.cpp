// t[0] is a copy: assigning to it would not change t.
#include "autodiff/operations/shape.h"
#include "autodiff/operations/tensor_operators.h"

#ifdef WRONG
void assign(palimpsest::Tensor t, const palimpsest::Tensor& u) { t[0] = u; }
#else
void assign(palimpsest::Tensor t, const palimpsest::Tensor& u) { t = u[0]; }
#endif
