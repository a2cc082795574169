// A scope must be held in a variable; a temporary would end at once.
#include "autodiff/tape.h"

void record(palimpsest::Tape& tape) {
#ifdef WRONG
  tape.scope("layer1");
#else
  const auto scope = tape.scope("layer1");
#endif
}
