// A tape cannot be copied: its Vars refer to this one tape.
#include "autodiff/tape.h"

#ifdef WRONG
using Parameter = palimpsest::Tape;
#else
using Parameter = palimpsest::Tape&;
#endif

void take(Parameter tape);
void give(palimpsest::Tape& tape) { take(tape); }
