#pragma once

#include <cstddef>
#include <cstdint>

#include "checkpoint/reverse/reverse_group.h"

// Decisions of a run that all processes of its group must take alike. Without a group, this process
// decides alone.

namespace palimpsest {

/// Whether it holds in all processes.
inline bool holds_for_all(ReverseGroup* group, bool holds) {
  if (group == nullptr) return holds;
  std::int64_t votes[] = {holds ? 1 : 0};
  group->least(votes);
  return votes[0] == 1;
}

/// Replaces each number by the largest one of all processes.
template <class T, std::size_t count>
void take_largest(ReverseGroup* group, T (&numbers)[count]) {
  if (group == nullptr) return;
  for (T& number : numbers) number = -number;
  group->least(numbers);
  for (T& number : numbers) number = -number;
}

}  // namespace palimpsest
