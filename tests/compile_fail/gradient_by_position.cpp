// A gradient has no position: 0 would be an empty name.
#include "strategy/backward.h"

#ifdef WRONG
palimpsest::Tensor first(const palimpsest::Gradients& gradients) { return gradients[0]; }
#else
palimpsest::Tensor first(const palimpsest::Gradients& gradients) { return gradients["first"]; }
#endif
