#pragma once

#include <optional>

#include "checkpoint/layout.h"

namespace palimpsest {

/// `layout` with some intervals moved, so that steps that do not depend on each other wait less for
/// memory to be used again. Takes at most `most` bytes. Nothing where a run would not become
/// noticeably shorter: on one thread, where each step depends on the one before, and where kernels
/// share nearly all the work among threads themselves.
///
/// A move is one that list scheduling asks for: of an interval in whose place another one lies
/// that, on 64, 8 or 2 threads without waiting for memory, would still be in use. Those that delay
/// most per byte come first. O(n log n) in steps, and O(n) for each of some moves; nothing for more
/// than 50,000 steps.
std::optional<Layout> roomy_layout(const Graph& graph, const Schedule& schedule,
                                   const Layout& layout, Bytes most);

/// False where looking for room takes longer than one run of so many `seconds`. True where there
/// are operations of users, which may take any time.
bool may_room_pay_at_once(const Graph& graph, const Schedule& schedule, double seconds);

/// Bytes that a layout may take for steps to run at once where no limit is set: a tenth more than
/// `packed`. Where there are operations of users, which may take any time, 1 MiB more if that is
/// more.
Bytes with_room(const Graph& graph, Bytes packed);

}  // namespace palimpsest
