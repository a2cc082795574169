// A tape has one identity, which its Vars name.
#include "autodiff/tape.h"

#ifdef WRONG
using Parameter = palimpsest::Tape;
#else
using Parameter = palimpsest::Tape&;
#endif

void take(Parameter tape);
void give(palimpsest::Tape& tape) { take(tape); }
