// A size must be an integer.
#include "autodiff/shape.h"

#ifdef WRONG
palimpsest::Shape shape{2, 1.5};
#else
palimpsest::Shape shape{2, 1};
#endif
