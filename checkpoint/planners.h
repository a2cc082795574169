#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "autodiff/export.h"
#include "checkpoint/planner.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// A range of nodes [first, last] planned as a unit. Its values are dropped after the forward part
/// and recomputed when the backward part needs them.
struct Segment {
  NodeId first;
  NodeId last;
};

/// Computes each needed node once and drops each value after its last use.
PlannerPtr keep_all();

/// Computes each needed node once, like `keep_all`, in an order in which fewer bytes are live.
PlannerPtr reordered();

/// Follows an existing schedule, for instance one read from a file or that of a plan. The program
/// is planned in the form that the schedule was made for. A schedule without a form names the nodes
/// of the tape. Planning throws `ScheduleError` when the schedule is not valid for the graph, was
/// made for another graph, which the message describes, or for a form that `RunOptions` forbid.
PlannerPtr given(Schedule schedule);

/// Cuts the forward part of the planned graph into equal segments and recomputes all but the last.
/// Give exactly one of the two settings. A fused group counts as one node.
struct Uniform {
  std::uint32_t segments = 0;  ///< number of segments
  std::uint32_t every = 0;     ///< nodes in each segment
};
/// Throws `ArgumentError` when both settings or neither are given.
PlannerPtr uniform(Uniform settings);

/// Recomputes exactly the nodes of the given segments, which are ranges of nodes of the tape.
/// Planning throws `ArgumentError` for segments that overlap, repeat, are reversed, or reach beyond
/// the forward part.
PlannerPtr selected(std::vector<Segment> segments);

/// √n segments of equal size (Chen et al., 2016).
PlannerPtr square_root();

/// Binomial checkpointing (revolve; Griewank and Walther, 2000). Cuts the forward part into stages
/// where little crosses, and reverses them with a given number of snapshots of what crosses.
/// Recomputation is least when stages are equal.
struct BinomialSettings {
  std::uint32_t snapshots = 0;  ///< held at a time, including the input of the first stage
};
/// Throws `ArgumentError` for no snapshots. Planning throws it for a graph without a backward part,
/// and when so few snapshots make a schedule of more than 10⁸ steps.
PlannerPtr binomial(BinomialSettings settings);

/// Optimal checkpointing of a chain of unequal stages (after Beaumont et al., 2019). Cuts the
/// forward part into stages where little crosses, and finds the optimal persistent schedule at
/// several levels of memory. A stage is recorded whole, or with more and more of its saved values
/// dropped and recomputed in its backward part, the cheap ones first.
struct ChainSettings {
  /// Most stages. Chains of at most this many stages and of a fourth of it are tried, cut where
  /// fewest bytes cross. Graphs of 512 nodes or more get fewer stages when a table would take more
  /// than 1 KiB per node. With the default settings this happens up to 2,400 nodes.
  std::uint32_t stages = 64;
  std::uint32_t records = 8;  ///< ways of recording a stage other than whole
  std::uint32_t slots = 300;  ///< number of units in which memory is counted
};
/// Throws `ArgumentError` for no stages or no slots. Planning throws it for a graph without a
/// backward part.
PlannerPtr chain(ChainSettings settings = {});

/// A minimum cut chooses which values to keep at the end of the forward part; the rest is
/// recomputed. For every price of a byte, this is the least recomputation for the bytes kept there.
PlannerPtr min_cut();

/// The cheapest plan within both the budget and `fraction` of keep-all's peak. Monotone like
/// `automatic` without moves.
/// When no plan is that small, `BudgetError` says which fraction is large enough. Throws
/// `ArgumentError` unless `fraction` lies in [0, 1].
PlannerPtr fraction(double fraction);

/// Dynamic tensor rematerialisation as its authors simulate it (DTR, Kirisame et al., 2021). The
/// plan is that of an eager tape with this budget, except that a storage is dropped after its last
/// read. Otherwise it does not look ahead in the program, so its plans serve as a baseline for
/// planners that do. Not monotone: a larger budget may cost more, and may even have no plan where a
/// smaller one has.
PlannerPtr online();

/// Offline eviction at many levels of bytes (after DTR, Kirisame et al., 2021, and Belady, 1966).
/// It walks the nodes in order and drops values when memory runs short. Values that are cheap to
/// recompute, for the bytes and the time they free, go first; their next use is known. Monotone:
/// the levels do not depend on the budget.
PlannerPtr greedy();

/// Offline eviction like `greedy`, at one level slightly below the budget, or at several when that
/// does not fit. Takes some microseconds per node, and its plans usually have a few per cent more
/// recomputation. May find nothing when the budget is tight. Not monotone: a larger budget may cost
/// more.
PlannerPtr quick();

/// How long a search continues.
struct SearchSettings {
  /// Most moves tried; the same number gives the same plan. When neither this nor `seconds` is
  /// given, 2000, or fewer where these would take more than about a second. Unless a number above 0
  /// is given, an engine looks for better plans while it runs those it has.
  std::optional<std::uint64_t> moves = {};
  /// Time since the beginning after which no more moves are tried. When nothing fits, looking for
  /// the smallest budget takes a few seconds more on a thousand nodes.
  std::optional<double> seconds = {};
  /// False when the budget limits live bytes only, as in most of the literature. Plans may then
  /// need an arena that is 1 or 2 % larger, and be refused for it.
  bool lay_out = true;
  std::uint64_t seed = 1;
};

/// Improves the plan of `greedy` for the budget by large neighbourhood search (Shaw, 1998) under
/// simulated annealing: random parts of the recomputation are removed and replaced in other ways.
/// Monotone without moves. With moves, a larger budget costs no more when plans for smaller ones
/// are passed to `make_plan`, as an engine does, and seldom more when they are not. Throws
/// `ArgumentError` unless seconds ≥ 0.
PlannerPtr search(SearchSettings settings = {});

struct ExactSettings {
  std::uint32_t most_sets = 3'000'000;  ///< limit on the sets of live values visited, of about 100
                                        ///< bytes each
  bool lay_out = true;                  ///< as in `SearchSettings`
};

/// The oracle for the other planners, for small graphs. It finds the least cost of all schedules
/// whose live bytes are within the budget, in any order of computing. When there is none, it finds
/// the least peak. It runs A* over sets of live values. The usual mixed-integer programme (Jain et
/// al., 2020) needs a solver and fixes the order.
///
/// When the layout of the cheapest schedule fits, its cost is the true optimum. When the layout is
/// larger than the budget, schedules of fewer live bytes and all proposals of `automatic` are
/// proposed too. The plan is the best of these: it is never more expensive than that of
/// `automatic`, but need not be optimal.
///
/// Throws `ArgumentError` for no sets. Planning throws it for more than 64 values that targets
/// depend on, not counting sources. It also throws when more than `most_sets` sets would have to be
/// visited, or more than a third of those left for one step towards the least peak.
PlannerPtr exact(ExactSettings settings = {});

/// The default planner: the best of the planners here, improved like `search`. It starts from
/// greedy, chain, min-cut and uniform segments. When another order of the nodes lowers the peak, it
/// starts from greedy in that order too. Online eviction is added when it goes below the peaks of
/// all these.
///
/// On a small graph that `exact` accepts, the optimum is searched first, provided moves are
/// allowed. When it is found in a second or two and its layout fits, it is the plan. When nothing
/// fits, a schedule of the least peak is searched in the same way. A plan says which planner made
/// it and how the others did.
///
/// Without moves the plan is monotone: a larger budget never costs more. With moves it nearly is,
/// and it is entirely when plans for smaller budgets are passed to `make_plan`, as an engine does.
/// Throws `ArgumentError` unless seconds ≥ 0.
PlannerPtr automatic(SearchSettings settings = {});

/// Settings of a planner that was requested by name.
struct PlannerSettings {
  std::string text;               ///< as requested: `uniform:8`
  std::optional<double> number;   ///< after the colon, if there is one
  std::optional<double> seconds;  ///< time limit of the search for a plan, if any

  /// The number as a count, `otherwise` when there is none. Throws `ArgumentError` unless it is a
  /// whole number that is not negative.
  std::uint32_t count(std::uint32_t otherwise = 0) const;
};

/// A planner that can be requested by name.
struct NamedPlanner {
  std::string_view name;
  /// The setting after the name: nothing, `:WORD` for a required number, `[:WORD]` for an optional
  /// one.
  std::string_view setting;
  std::string_view summary;  ///< one line
  PlannerPtr (*make)(const PlannerSettings& settings);
  bool timed;            ///< respects `PlannerSettings::seconds`
  bool any_size = true;  ///< accepts graphs of any size
};

/// All named planners. To add one, add a line to planner_names.cpp.
std::span<const NamedPlanner> named_planners();

/// The planner that `text` names, such as `auto` or `uniform:8`. Throws `ArgumentError` listing all
/// names.
const NamedPlanner& named_planner(std::string_view text);

/// Makes the planner that `text` names. Throws `ArgumentError` for an unknown name or setting, and
/// for a time limit when the planner has no use for one.
PlannerPtr planner_named(std::string_view text, std::optional<double> seconds = {});

}  // namespace palimpsest
