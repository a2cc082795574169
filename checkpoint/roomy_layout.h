#pragma once

#include <optional>

#include "checkpoint/layout.h"

namespace palimpsest {

/// `layout` with some intervals moved, so that independent steps wait less for memory to be reused.
/// Takes at most `most` bytes. Returns nothing when a run would not become noticeably shorter: on
/// one thread, in a chain of dependent steps, or when kernels share nearly all work among threads
/// themselves.
///
/// List scheduling decides the moves. It finds intervals whose place another interval would still
/// occupy on 64, 8 or 2 threads if steps did not wait for memory. Intervals that delay most per
/// byte are moved first. O(n log n) in steps, and O(n) for each of a bounded number of moves.
/// Returns nothing for more than 50,000 steps.
std::optional<Layout> roomy_layout(const Graph& graph, const Schedule& schedule,
                                   const Layout& layout, Bytes most);

/// False when looking for room takes longer than one run of so many `seconds`. True when there are
/// user-defined operations, which may take any time.
bool may_room_pay_at_once(const Graph& graph, const Schedule& schedule, double seconds);

/// Bytes that a layout may take when no limit is set, so that steps can run concurrently: a tenth
/// more than `packed`. With user-defined operations, which may take any time, at least 1 MiB more.
Bytes with_room(const Graph& graph, Bytes packed);

}  // namespace palimpsest
