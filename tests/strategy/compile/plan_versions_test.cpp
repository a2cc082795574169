#include "strategy/compile/plan_versions.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "checkpoint/engine_planner.h"
#include "checkpoint/lanes.h"
#include "checkpoint/planners.h"
#include "tests/catch.h"
#include "tests/checkpoint/counted_planner.h"
#include "tests/checkpoint/graphs.h"

namespace palimpsest::plan_versions_test {
namespace {

Schedule order_in(const Graph& graph, std::uint32_t segments) {
  return uniform({.segments = segments})->propose(graph, unlimited).front().schedule;
}

std::shared_ptr<const Graph> shared(const Graph& graph) {
  return std::make_shared<const Graph>(graph);
}

/// The versions of a program, with plannings and a pace of their own.
struct Store : private KeptPlannings, private Pace, PlanVersions {
  Store()
      : KeptPlannings(4_MiB),
        PlanVersions(static_cast<KeptPlannings&>(*this), static_cast<Pace&>(*this)) {}
};

PlanVersion& find_or_make(PlanVersions& store, const std::shared_ptr<const Graph>& graph,
                          const PlannerPtr& planner, Bytes budget) {
  const PlanVersions::Request request{graph, planner, budget};
  if (const PlanVersionPtr version = store.find(request)) return *version;
  if (const PlanVersionPtr version = store.plan_fast(request)) return *version;
  return *store.plan(request).take();
}

double cost_of(const PlanVersion& version) { return version.plan->simulation.cost; }

/// Makes worse plans for larger budgets.
class Fickle final : public Planner {
 public:
  explicit Fickle(Bytes worse_from) : worse_from_(worse_from) {}
  std::string name() const override { return "fickle"; }
  std::vector<Proposal> propose(const Graph& graph, Bytes budget) const override {
    Schedule schedule = order_in(graph, 8);
    if (budget >= worse_from_) {  // computes the first node many times
      const Step first = schedule.steps.front();
      schedule.steps.insert(schedule.steps.begin(), 10, first);
    }
    return {std::move(schedule)};
  }

 private:
  Bytes worse_from_;
};

/// Finds a better plan in some rounds.
class Improving final : public EnginePlanner {
 public:
  explicit Improving(std::vector<std::uint32_t> segments_by_round)
      : segments_(std::move(segments_by_round)) {}
  std::string name() const override { return "improving"; }
  std::vector<Proposal> propose(const Graph& graph, Bytes) const override {
    return {order_in(graph, segments_.front())};
  }
  PlannerPtr continuing(Schedule, double seconds, std::uint64_t round) const override {
    asked.push_back(seconds);
    const std::size_t last = segments_.size() - 1;
    return uniform({.segments = segments_[std::min<std::size_t>(round, last)]});
  }

  mutable std::vector<double> asked;

 private:
  std::vector<std::uint32_t> segments_;
};

TEST_CASE("a store asks a planner that ignores the budget once for a graph") {
  const auto graph = shared(tests::chain(64));
  const Bytes all = make_plan(*graph, *keep_all()).keep_all_peak;
  for (const bool ignores : {true, false}) {
    const auto planner = std::make_shared<const tests::CountedPlanner>(ignores);
    Store store;
    for (const Bytes percent : {80, 60, 70}) {
      const Bytes budget = all * percent / 100;
      CHECK(find_or_make(store, graph, planner, budget).plan->predicted_peak() <= budget);
    }
    CHECK((planner->times == 1) == ignores);
  }
}

TEST_CASE("a plan for one budget is a candidate for a larger one") {
  const Graph graph = tests::chain(64);
  const Bytes small = make_plan(graph, *uniform({.segments = 8})).predicted_peak();
  const auto fickle = std::make_shared<Fickle>(small + 64);
  Store fresh;
  const double alone = cost_of(find_or_make(fresh, shared(graph), fickle, small + 64));
  Store store;
  const double first = cost_of(find_or_make(store, shared(graph), fickle, small));
  CHECK(first < alone);
  CHECK(cost_of(find_or_make(store, shared(graph), fickle, small + 64)) == first);
  CHECK(store.made() == 2);
  // Plans of another graph or planner are no candidates.
  CHECK(cost_of(find_or_make(store, shared(tests::chain(63)), fickle, small + 64)) > first);
  CHECK(find_or_make(store, shared(graph), uniform({.segments = 2}), unlimited).plan->planner ==
        "uniform, 2 segments");
}

TEST_CASE(
    "plans get better while they serve, in a tenth of the time, until nothing more is found") {
  const Graph graph = tests::chain(64);
  // 64 steps in k segments, all but the last of which are recomputed: few segments cost the least.
  const auto planner = std::make_shared<Improving>(std::vector<std::uint32_t>{8, 8, 4, 16, 2, 2});
  Store store;
  const auto serve = [&](double seconds) -> PlanVersion& {
    PlanVersion& entry = find_or_make(store, shared(graph), planner, unlimited);
    store.served(entry, seconds);
    return entry;
  };
  const double eight = cost_of(serve(0));
  CHECK(serve(0).reused);
  CHECK(planner->asked.empty());
  serve(1000);
  std::vector<double> costs;
  for (int k = 0; k < 10; ++k) costs.push_back(cost_of(serve(1000)));
  const double four = make_plan(graph, *uniform({.segments = 4})).simulation.cost;
  const double two = make_plan(graph, *uniform({.segments = 2})).simulation.cost;
  REQUIRE(two < four);
  REQUIRE(four < eight);
  CHECK(costs == std::vector<double>{eight, four, four, two, two, two, two, two, two, two});
  CHECK(serve(0).improvement.improvements() == 2);
  // A vain round, a better plan, a vain one, a better one, and three vain ones.
  CHECK(planner->asked == std::vector<double>{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64});
  CHECK(store.made() == 1);
}

/// A planner with a fast version.
class Thorough final : public EnginePlanner {
 public:
  explicit Thorough(double share = 1) : share_(share) {}
  std::string name() const override { return "thorough"; }
  Bytes limit(Bytes keep_all_peak, Bytes) const override {
    return static_cast<Bytes>(share_ * static_cast<double>(keep_all_peak));
  }
  std::vector<Proposal> propose(const Graph& graph, Bytes) const override {
    return {order_in(graph, 2), order_in(graph, 8)};
  }
  PlannerPtr fast() const override { return std::make_shared<Fickle>(unlimited); }

 private:
  double share_;
};

TEST_CASE("a fast plan serves until the whole of planning is a tenth of its time") {
  const Graph quick_to_run = tests::chain(64, 64, 1e-9);
  const auto planner = std::make_shared<Thorough>();
  Store store;
  const auto serve = [&](double seconds) {
    PlanVersion& entry = find_or_make(store, shared(quick_to_run), planner, unlimited - 1);
    store.served(entry, seconds);
    return entry.plan->planner;
  };
  CHECK(serve(0) == "fickle");
  CHECK(serve(0.1) == "fickle");
  CHECK(serve(3) == "fickle");
  CHECK(serve(0) == "thorough");
  CHECK(find_or_make(store, shared(quick_to_run), planner, unlimited - 1)
            .improvement.improvements() == 1);
  CHECK(store.made() == 1);

  // A long-running graph is planned thoroughly at once, and so is one whose limit the fast plan
  // does not keep.
  const Graph slow_to_run = tests::chain(64);
  const PlanVersion slow = find_or_make(store, shared(slow_to_run), planner, unlimited - 1);
  CHECK(slow.plan->planner == "thorough");
  const auto limited = std::make_shared<Thorough>(0.01);
  CHECK_THROWS_AS(find_or_make(store, shared(quick_to_run), limited, unlimited - 2), BudgetError);
}

TEST_CASE("a fast plan is not used if it recomputes for longer than planning takes") {
  const auto planner = std::make_shared<Thorough>();
  const auto graph = shared(tests::chain(64, 64, 1e-3));
  const auto another = shared(tests::chain(70, 64, 1e-3));
  for (const double seconds : {0.01, 0.25}) {
    Store store;
    const PlanVersionPtr version = store.plan({graph, planner, unlimited - 1}).take();
    store.served(*version, seconds);
    CHECK(store.needs_fast_first_plan(*another, *planner));
    const PlanVersionPtr fast = store.plan_fast({another, planner, unlimited - 1});
    CHECK((fast != nullptr) == (seconds < 0.1));
  }
}

TEST_CASE("the pace of runs follows the latest ones") {
  const auto is_about = [](double a, double b) { return std::abs(a - b) < 0.01 * b; };
  Pace pace;
  CHECK(pace.seconds(2) == 0.5);
  pace.ran(2, 1);
  CHECK(pace.seconds(2) == 1);
  for (int k = 0; k < 20; ++k) pace.ran(2, 8);
  CHECK(is_about(pace.seconds(2), 8));
  for (int k = 0; k < 30; ++k) pace.ran(1e-6, 1e-3);  // tiny runs weigh little
  CHECK(is_about(pace.seconds(2), 8.0 * (1 + 30 * 1e-3 / 12)));
  for (const double nothing : {0.0, std::numeric_limits<double>::infinity(), -1.0, std::nan("")})
    pace.ran(nothing, 1e-3);
  CHECK(is_about(pace.seconds(2), 8));
}

TEST_CASE("a plan that does not serve is not searched for a better one") {
  const auto graph = shared(tests::chain(64));
  const auto another = shared(tests::chain(63));
  const auto serving = std::make_shared<Improving>(std::vector<std::uint32_t>{8, 4});
  const auto idle = std::make_shared<Improving>(std::vector<std::uint32_t>{8, 4});
  Store store;
  for (int run = 0; run < 5; ++run) {
    find_or_make(store, another, idle, unlimited);
    store.served(find_or_make(store, graph, serving, unlimited), 1000);
  }
  CHECK(serving->asked.size() == 4);
  CHECK(idle->asked.empty());
}

TEST_CASE("planning may take a tenth of the time that a program runs") {
  PlanningTime time;
  CHECK_FALSE(time.allows(0.01));
  time.ran(1);
  CHECK(time.allows(0.1));
  time.planned(0.05);
  CHECK_FALSE(time.allows(0.06));
  CHECK(time.allows(0.04));
}

TEST_CASE("a run counts for the fast plans of the other forms of a program") {
  const auto fused = shared(tests::chain(63, 64, 1e-9));
  const auto unfused = shared(tests::chain(64, 64, 1e-9));
  const auto planner = std::make_shared<Thorough>();
  const Bytes budget = unlimited - 1;
  Store store;
  const PlanVersionPtr serving = store.plan_fast({fused, planner, budget});
  const PlanVersionPtr idle = store.plan_fast({unfused, planner, budget});
  const PlanVersionPtr elsewhere = store.plan_fast({unfused, planner, budget - 1});
  REQUIRE((serving != nullptr && idle != nullptr && elsewhere != nullptr));
  store.served(*serving, 3.1);
  CHECK(store.find({fused, planner, budget})->plan->planner == "thorough");
  CHECK(store.find({unfused, planner, budget})->plan->planner == "thorough");
  CHECK(elsewhere->improvement.is_fast());
  // Its own planner has not been asked, but run time counts for all budgets.
  CHECK(store.find({unfused, planner, budget - 1})->plan->planner == "thorough");
}

TEST_CASE("a fast first plan gets room for steps to run at once when it has served") {
  const PlannerPtr planner = automatic({.moves = 0});
  int shorter = 0;
  for (std::uint32_t seed = 0; seed < 10; ++seed) {
    Graph parallel = tests::random_graph(seed, 40);
    for (NodeId node = 0; node < parallel.node_count(); ++node) {
      if (parallel.cost(node) > 0) parallel.set_cost(node, 1e-6);
    }
    parallel.set_parallel();
    const auto graph = shared(parallel);
    const Bytes budget = make_plan(*graph, *keep_all()).keep_all_peak * 3 / 4;
    Store store;
    const auto plan_after = [&](double seconds) {
      PlanVersion& entry = find_or_make(store, graph, planner, budget);
      store.served(entry, seconds);
      return *entry.plan;
    };
    const auto seconds_of = [&](const Plan& plan) {
      return times_on(*graph, plan.schedule, Dependencies(*graph, plan.schedule, plan.layout), 8)
          .all;
    };
    const Plan first = plan_after(1e4);  // longer than planning takes on any machine
    const Plan later = plan_after(0);
    CHECK(later.simulation.cost <= first.simulation.cost);
    CHECK(later.predicted_peak() <= budget);
    if (!(later.schedule == first.schedule)) continue;
    shorter += seconds_of(later) < 0.99 * seconds_of(first);
  }
  CHECK(shorter >= 3);
}

TEST_CASE("keeping everything needs no fast plan") {
  const Graph graph = tests::chain(64, 64, 1e-9);
  Store store;
  CHECK(find_or_make(store, shared(graph), automatic({.moves = 0}), unlimited).plan->planner ==
        "auto");
}

TEST_CASE("where a fast planner finds nothing the planner itself is asked") {
  const Graph graph = tests::chain(64, 64, 1e-9);
  Store store;
  const Bytes smallest = smallest_budget(graph, *automatic({.moves = 0}));
  const Bytes fast = smallest_budget(graph, *quick());
  REQUIRE(smallest < fast);
  const PlannerPtr planner = automatic({.moves = 0});
  CHECK(find_or_make(store, shared(graph), planner, smallest).plan->predicted_peak() <= smallest);
  CHECK_THROWS_AS(find_or_make(store, shared(graph), planner, smallest - 64), BudgetError);
}

TEST_CASE("a refusal of a fast planner is none of the planner itself") {
  const auto graph = shared(tests::chain(64, 64, 1e-9));
  Store store;
  CHECK_THROWS_AS(find_or_make(store, graph, automatic({.moves = 0}), 1), BudgetError);
  CHECK_THROWS_AS(find_or_make(store, graph, quick(), 1), BudgetError);
  CHECK_THROWS_AS(find_or_make(store, graph, quick(), 1), BudgetError);
}

TEST_CASE("a plan that got better for a smaller budget serves larger ones") {
  const Graph graph = tests::chain(64);
  const auto planner = std::make_shared<Improving>(std::vector<std::uint32_t>{8, 2, 2});
  Store store;
  const Bytes large = unlimited - 1;
  const double before = cost_of(find_or_make(store, shared(graph), planner, large));
  for (int k = 0; k < 2; ++k) {
    store.served(find_or_make(store, shared(graph), planner, unlimited - 2), 1000);
  }
  const double better = cost_of(find_or_make(store, shared(graph), planner, unlimited - 2));
  CHECK(better < before);
  CHECK(cost_of(find_or_make(store, shared(graph), planner, large)) == better);
}

TEST_CASE("a searching planner continues from a schedule") {
  const Graph graph = tests::chain(64);
  const Plan bad = make_plan(graph, *uniform({.segments = 8}));
  const PlannerPtr next = engine_part(automatic({.moves = 0})).continuing(bad.schedule, 0.5, 1);
  const Plan better = make_plan(graph, *next, 2 * bad.predicted_peak());
  CHECK(better.simulation.cost < bad.simulation.cost);
  // A fixed number of moves gives the same plan every time.
  CHECK(engine_part(search({.moves = 5})).continuing(bad.schedule, 0.5, 1) == nullptr);
}

TEST_CASE("plans of a searching planner never get worse while they serve") {
  const Graph graph = tests::random_graph(7, 60);
  const PlannerPtr planner = automatic({.moves = 0});
  const Bytes budget =
      (smallest_budget(graph, *planner) + make_plan(graph, *keep_all()).predicted_peak()) / 2;
  Store store;
  double cost = std::numeric_limits<double>::infinity();
  for (int k = 0; k < 8; ++k) {
    PlanVersion& entry = find_or_make(store, shared(graph), planner, budget);
    CHECK(cost_of(entry) <= cost);
    CHECK(entry.plan->predicted_peak() <= budget);
    CHECK(entry.plan->budget == budget);
    cost = cost_of(entry);
    store.served(entry, 1000);
  }
}

/// Proposes keep-all and counts the calls.
class Counting final : public Planner {
 public:
  std::string name() const override { return "counting"; }
  std::vector<Proposal> propose(const Graph& graph, Bytes budget) const override {
    ++asked;
    return keep_all()->propose(graph, budget);
  }
  mutable int asked = 0;
};

TEST_CASE("a budget refused once is refused at once") {
  const auto graph = shared(tests::chain(16));
  const auto planner = std::make_shared<Counting>();
  Store store;
  CHECK_THROWS_AS(find_or_make(store, graph, planner, 1), BudgetError);
  const int asked = planner->asked;
  REQUIRE(asked > 0);
  CHECK_THROWS_AS(find_or_make(store, graph, planner, 1), BudgetError);
  CHECK(planner->asked == asked);
  CHECK_THROWS_AS(find_or_make(store, graph, planner, 2), BudgetError);
  CHECK(planner->asked > asked);
}

TEST_CASE("a refusal that named no budget is not taken for one that did") {
  const auto graph = shared(tests::chain(16));
  const PlannerPtr planner = std::make_shared<Counting>();
  const auto& counted = dynamic_cast<const Counting&>(*planner);
  Store store;
  const auto refused = [&](Bytes named) {
    return store.plan({graph, planner, 1, named}).refusal().smallest_feasible();
  };
  const Bytes bound = refused(0);
  const int asked = counted.asked;
  CHECK(refused(bound - 1) == bound);
  CHECK(counted.asked == asked);
  const Bytes smallest = refused(unlimited);
  CHECK(counted.asked > asked);
  CHECK(make_plan(*graph, *planner, smallest).predicted_peak() <= smallest);
  const int named = counted.asked;
  CHECK(refused(0) == smallest);
  CHECK(counted.asked == named);
}

}  // namespace
}  // namespace palimpsest::plan_versions_test
