// The elements of a temporary tensor would end before they are read.
#include "autodiff/gradient.h"

double sum(const palimpsest::Var& y, const palimpsest::Var& x) {
  double sum = 0;
#ifdef WRONG
  for (const double each : jacobian(y, x).data<double>()) sum += each;
#else
  const palimpsest::Tensor matrix = jacobian(y, x);
  for (const double each : matrix.data<double>()) sum += each;
#endif
  return sum;
}
