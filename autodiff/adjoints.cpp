#include "autodiff/adjoints.h"

#include <algorithm>

#include "autodiff/operations/binary.h"
#include "autodiff/operations/placed.h"

namespace palimpsest {

Adjoints::Adjoints(Tape& tape, ValueId begin, ValueId end)
    : tape_(tape), begin_(begin), reached_(end - begin), sums_(end - begin, none) {}

Var Adjoints::sum(ValueId value) {
  if (!inside(value)) return Var();
  if (const auto slices = slices_.find(value); slices != slices_.end()) {
    const Blame blame(tape_, tape_.where(slices->second[0].node()));
    for (const Var& together : put_together(slices->second)) add_whole(value, together);
    slices_.erase(slices);
  }
  const ValueId sum = sums_[value - begin_];
  return sum == none ? Var() : tape_.var(sum);
}

void Adjoints::add(ValueId value, const Var& contribution) {
  if (placed_among_zeros(contribution)) {
    slices_[value].push_back(contribution);
  } else {
    add_whole(value, contribution);
  }
}

void Adjoints::add_whole(ValueId value, const Var& contribution) {
  ValueId& sum = sums_[value - begin_];
  sum = sum == none ? contribution.id() : palimpsest::add(tape_.var(sum), contribution).id();
}

}  // namespace palimpsest
