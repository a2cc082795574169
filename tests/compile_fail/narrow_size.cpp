// A size is a whole number.
#include "autodiff/shape.h"

#ifdef WRONG
palimpsest::Shape shape{2, 1.5};
#else
palimpsest::Shape shape{2, 1};
#endif
