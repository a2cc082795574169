#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "checkpoint/planner.h"

namespace palimpsest {

/// A range of nodes [first, last] planned as a unit: its values are dropped after the forward part
/// and computed again when the backward part needs them.
struct Segment {
  NodeId first;
  NodeId last;
};

/// Computes each needed node once and drops each value after its last use.
PlannerPtr keep_all();

/// Computes each needed node once, like `keep_all`, in an order in which fewer bytes are live.
PlannerPtr reordered();

/// Follows a schedule that is there already, as one read from a file or that of a plan. A program
/// is planned in the form that the schedule was made for: one that says nothing of it names the
/// nodes of the tape. Planning throws `ScheduleError` when it is not valid for the graph, was made
/// for another one, which it then describes, or for a form that `RunOptions` forbid.
PlannerPtr given(Schedule schedule);

/// Cuts the forward part into equal segments and recomputes all but the last.
struct Uniform {
  std::uint32_t segments = 0;  ///< number of segments; or
  std::uint32_t every = 0;     ///< nodes in each: give exactly one of the two
};
/// Throws `ArgumentError` when both or neither setting is given.
PlannerPtr uniform(Uniform settings);

/// Recomputes exactly the nodes of the given segments. Throws `ArgumentError`, at planning, for
/// segments that overlap, repeat, are reversed, or reach beyond the forward part.
PlannerPtr selected(std::vector<Segment> segments);

/// √n segments of equal size (Chen et al., 2016).
PlannerPtr square_root();

/// Cuts the forward part into stages where little crosses, and reverses these with a number of
/// snapshots of what crosses (Griewank and Walther, 2000): the least recomputation when stages are
/// equal.
struct BinomialSettings {
  std::uint32_t snapshots = 0;  ///< held at a time, the input of the first stage counted
};
/// Throws `ArgumentError` for no snapshots; at planning, for a graph without a backward part, and
/// when so few snapshots make a schedule of more than 10⁸ steps.
PlannerPtr binomial(BinomialSettings settings);

/// Cuts the forward part into stages where little crosses, and finds the optimal persistent
/// schedule of this chain of unequal stages at several levels of memory (after Beaumont et al.,
/// 2019). A stage is recorded whole, or with more and more of what it saves dropped and made again
/// in its backward part, what is cheap first.
struct ChainSettings {
  /// At most, and a fourth of it, cut where fewest bytes cross. Fewer for graphs of 512 nodes and
  /// more where a table would take more than 1 KiB a node, with these settings up to 2,400 nodes.
  std::uint32_t stages = 64;
  std::uint32_t records = 8;  ///< ways of recording a stage other than whole
  std::uint32_t slots = 300;  ///< in which memory is counted
};
/// Throws `ArgumentError` for no stages and for no slots; at planning, for a graph without a
/// backward part.
PlannerPtr chain(ChainSettings settings = {});

/// Keeps at the end of the forward part what a minimum cut chooses, and computes the rest again:
/// the least seconds of recomputation for the bytes kept there, at every price of a byte.
PlannerPtr min_cut();

/// The cheapest plan within `fraction` of keep-all's peak, and monotone as `automatic` without
/// moves. Where no plan is that small, `BudgetError` says which fraction is large enough. Throws
/// `ArgumentError` unless it lies in [0, 1].
PlannerPtr fraction(double fraction);

/// What an eager tape with this budget would do (see checkpoint/online_eviction.h), told of each
/// storage's last read: dynamic tensor rematerialisation as its authors simulate it (DTR, Kirisame
/// et al., 2021). Sees nothing of the program ahead, so its plans compare with, and do not beat,
/// those that do. Not monotone: a larger budget may cost more, and may even have no plan where a
/// smaller one has.
PlannerPtr online();

/// Offline eviction at many levels of bytes: walking the nodes in order, values are dropped when
/// memory runs short, those first whose recomputation is cheap for the bytes and the time they
/// free, with the next use known (after DTR, Kirisame et al., 2021, and Belady, 1966). Monotone:
/// the levels do not depend on the budget.
PlannerPtr greedy();

/// Offline eviction as `greedy` does it, at one level a little below the budget, or at several when
/// that does not fit: some microseconds a node, and usually some per cent more recomputation. May
/// find nothing where the budget is tight. Not monotone: a larger budget may cost more.
PlannerPtr quick();

/// How long a search goes on.
struct SearchSettings {
  /// Moves tried at most; the same number gives the same plan. When neither this nor `seconds` is
  /// given, 2000, or fewer where these would take more than about a second. With none, an engine
  /// looks for better plans while it runs those it has.
  std::optional<std::uint64_t> moves = {};
  /// Time since the beginning after which no more moves are tried. Where nothing fits, looking
  /// for the smallest budget takes a few seconds more on a thousand nodes.
  std::optional<double> seconds = {};
  /// False when the budget binds live bytes alone, as in most of the literature: plans may then
  /// turn out to need an arena a per cent or two larger, and be refused for it.
  bool lay_out = true;
  std::uint64_t seed = 1;
};

/// What `greedy` finds for the budget, improved by large neighbourhood search (Shaw, 1998) under
/// simulated annealing: parts of the recomputation are taken out at random and made up for in other
/// ways. Monotone without moves. With moves, a larger budget costs no more where plans for smaller
/// ones are handed to `make_plan`, as an engine does, and seldom more where they are not. Throws
/// `ArgumentError` unless seconds ≥ 0.
PlannerPtr search(SearchSettings settings = {});

struct ExactSettings {
  std::uint32_t most_sets = 3'000'000;  ///< of live values looked at; each takes about 100 bytes
  bool lay_out = true;                  ///< as in `SearchSettings`
};

/// The least cost of all schedules whose live bytes are within the budget, in any order of
/// computing, and the least peak when there is none: the oracle of the other planners, for small
/// graphs. A* over sets of live values, in place of the usual mixed-integer programme (Jain et al.,
/// 2020), which needs a solver and fixes the order. When the layout of the cheapest schedule fits,
/// that is the least cost there is. When it is larger than the budget, some of fewer live bytes are
/// proposed too, and all that `automatic` proposes: the plan is the best of these, never dearer
/// than that of `automatic`, and need not be the best of all. Throws `ArgumentError` for no sets;
/// at planning, for more than 64 values that targets depend on, sources not counted, and when more
/// than `most_sets` sets, or a third of those left for one step towards the least peak, would have
/// to be looked at.
PlannerPtr exact(ExactSettings settings = {});

/// The best of the planners here, improved as `search` does: of greedy, chain, min-cut, uniform
/// segments, greedy again in another order of the nodes where one lowers the peak, and online
/// eviction where all of these stay above it. Where `exact` would take a small graph, moves may be
/// made, and the optimum is found in a second or two, that is the plan if its layout fits; where
/// nothing fits, a schedule of the least peak is looked for in the same way. A plan says which of
/// them made it and how the others did. Without moves the plan is monotone: a larger budget never
/// costs more. With moves it nearly is, and entirely when plans for smaller budgets are handed to
/// `make_plan`, as an engine does. Throws `ArgumentError` unless seconds ≥ 0.
PlannerPtr automatic(SearchSettings settings = {});

}  // namespace palimpsest
