#include "checkpoint/chains/optimal.h"

#include <algorithm>
#include <array>
#include <limits>
#include <queue>
#include <random>
#include <unordered_map>

#include "checkpoint/chains/binomial.h"
#include "checkpoint/plan.h"
#include "tests/catch.h"

namespace optimal_test {

using namespace palimpsest;
using Catch::Matchers::Contains;
using Kind = ChainOperation::Kind;

namespace {

struct Limits {
  std::uint32_t stages;
  std::uint32_t records;
  std::uint32_t size;  ///< largest size, in multiples of `unit` bytes
  Bytes unit = 1;
};

std::vector<ChainStage> random_chain(std::uint32_t seed, Limits limits) {
  std::mt19937 random(seed);
  const auto below = [&](std::uint32_t limit) {
    return static_cast<std::uint32_t>(random()) % limit;
  };
  const auto size = [&] { return below(limits.size + 1) * limits.unit; };
  std::vector<ChainStage> stages(limits.stages);
  Bytes before = size();
  for (ChainStage& stage : stages) {
    stage.forward = 1 + below(9);
    stage.output = size();
    stage.forward_peak = stage.output + size() * below(2);
    stage.gradient = size();
    for (std::uint32_t r = 1 + below(limits.records); r > 0; --r) {
      ChainStage::Record record;
      record.forward = stage.forward + below(2);
      record.backward = 1 + below(9);
      record.saved = stage.output + size();
      record.forward_peak = record.saved + size() * below(2);
      record.backward_peak = record.saved + stage.gradient + before + size() * below(2);
      stage.records.push_back(record);
    }
    before = stage.gradient;
  }
  return stages;
}

/// The lowest time of any persistent schedule, by searching over the live values: outputs kept for
/// a later backward, one output that may be dropped, and records. Infinite when nothing fits.
class Search {
 public:
  Search(const std::vector<ChainStage>& stages, Bytes limit) : stages_(stages), limit_(limit) {}

  double least() {
    State start;
    start.left = static_cast<std::uint8_t>(stages_.size());
    reach(start, 0);
    while (!open_.empty()) {
      const auto [seconds, key] = open_.top();
      open_.pop();
      if (seconds > best_[key]) continue;
      const State state = unpack(key);
      if (state.left == 0) return seconds;
      expand(state, seconds);
    }
    return std::numeric_limits<double>::infinity();
  }

 private:
  static constexpr std::uint8_t nothing = 15;
  struct State {
    std::uint8_t left = 0;
    std::uint8_t loose = nothing;          // the stage whose output may be dropped
    std::uint8_t kept = 0;                 // stages whose outputs are kept
    std::array<std::uint8_t, 8> record{};  // the number of the record plus one; 0 for none
  };
  using Key = std::uint64_t;

  static Key pack(const State& s) {
    Key key = s.left | Key{s.loose} << 4 | Key{s.kept} << 8;
    for (std::size_t k = 0; k < 8; ++k) key |= Key{s.record[k]} << (16 + 2 * k);
    return key;
  }
  static State unpack(Key key) {
    State s;
    s.left = key & 15;
    s.loose = key >> 4 & 15;
    s.kept = key >> 8 & 255;
    for (std::size_t k = 0; k < 8; ++k) s.record[k] = key >> (16 + 2 * k) & 3;
    return s;
  }

  Bytes held(const State& s) const {
    Bytes bytes = s.left > 0 ? stages_[s.left - 1].gradient : 0;
    for (std::size_t k = 0; k < stages_.size(); ++k) {
      if ((s.kept >> k & 1) != 0 || s.loose == k) bytes += stages_[k].output;
      if (s.record[k] > 0) bytes += stages_[k].records[s.record[k] - 1].saved;
    }
    return bytes;
  }

  void reach(const State& state, double seconds) {
    const Key key = pack(state);
    const auto [at, fresh] = best_.try_emplace(key, seconds);
    if (!fresh && at->second <= seconds) return;
    at->second = seconds;
    open_.emplace(seconds, key);
  }

  void expand(const State& state, double seconds) {
    const Bytes bytes = held(state);
    if (state.loose != nothing) {
      State other = state;
      other.loose = nothing;
      reach(other, seconds);
      other.kept |= static_cast<std::uint8_t>(1u << state.loose);
      reach(other, seconds);
    }
    for (std::uint8_t k = 0; k < state.left; ++k) {
      const bool stays = k == 0 || (state.kept >> (k - 1) & 1) != 0 || state.record[k - 1] > 0;
      const bool live = (state.kept >> k & 1) != 0 || state.record[k] > 0 || state.loose == k;
      const ChainStage& stage = stages_[k];
      if (live && state.record[k] > 0 && k + 1 == state.left && stays && state.loose == nothing) {
        const ChainStage::Record& record = stage.records[state.record[k] - 1];
        if (bytes - record.saved - stage.gradient + record.backward_peak > limit_) continue;
        State other = state;
        other.record[k] = 0;
        --other.left;
        if (k > 0) other.kept &= static_cast<std::uint8_t>(~(1u << (k - 1)));
        reach(other, seconds + record.backward);
      }
      if (live) continue;
      const bool consumes = k > 0 && state.loose == k - 1;
      if ((consumes || (stays && state.loose == nothing)) && bytes + stage.forward_peak <= limit_) {
        State other = state;
        other.loose = k;
        reach(other, seconds + stage.forward);
      }
      if (!stays || state.loose != nothing) continue;
      for (std::uint8_t r = 0; r < stage.records.size(); ++r) {
        if (bytes + stage.records[r].forward_peak > limit_) continue;
        State other = state;
        other.record[k] = static_cast<std::uint8_t>(r + 1);
        reach(other, seconds + stage.records[r].forward);
      }
    }
  }

  const std::vector<ChainStage>& stages_;
  Bytes limit_;
  std::unordered_map<Key, double> best_;
  std::priority_queue<std::pair<double, Key>, std::vector<std::pair<double, Key>>, std::greater<>>
      open_;
};

/// n equal stages with outputs of one byte; one stage is recorded at a time.
std::vector<ChainStage> uniform_chain(std::uint32_t n, Bytes record) {
  ChainStage stage{1, 1, 1, 0, {{1, 0, record, record, record}}};
  return std::vector<ChainStage>(n, stage);
}

double cost_within(const OptimalChain& chain, Bytes budget) { return chain.plan(budget).cost; }

}  // namespace

TEST_CASE("optimal chain: the least of all persistent schedules") {
  for (std::uint32_t seed = 0; seed < 240; ++seed) {
    const std::uint32_t length = 1 + seed % 8;
    const std::vector<ChainStage> stages = random_chain(seed, {length, 1 + seed / 8 % 3, 4});
    const OptimalChain chain(stages, 1000);
    REQUIRE(Search(stages, chain.smallest_budget() - 1).least() ==
            std::numeric_limits<double>::infinity());
    CHECK_THROWS_AS(chain.plan(chain.smallest_budget() - 1), BudgetError);
    const Bytes range = chain.largest_budget() - chain.smallest_budget();
    for (int part = 0; part <= 2; ++part) {
      const Bytes budget = chain.smallest_budget() + range * part / 3;
      const ChainPlan plan = chain.plan(budget);
      CAPTURE(seed, budget);
      REQUIRE(plan.peak <= budget);
      REQUIRE(plan.cost == Search(stages, budget).least());
      REQUIRE(plan.lower_bound == plan.cost);
    }
  }
}

TEST_CASE("optimal chain: binomial where the models agree") {
  // Here the first state is free, but the current one counts.
  for (const auto& [steps, snapshots] :
       {std::pair{2u, 1u}, {10u, 3u}, {40u, 1u}, {60u, 4u}, {100u, 3u}, {100u, 7u}}) {
    const Bytes budget = 1000 + snapshots;
    const OptimalChain chain(uniform_chain(steps, 1000), budget, {.slots = 2000});
    const ChainPlan plan = chain.plan(budget);
    CAPTURE(steps, snapshots);
    CHECK(plan.cost == static_cast<double>(binomial_forward_steps(steps, snapshots)));
    CHECK(plan.lower_bound == plan.cost);
    CHECK(plan.peak <= budget);
    CHECK(chain.smallest_budget() == 1001);
  }
}

TEST_CASE("optimal chain: counting memory in slots loses no more than reported") {
  double worst = 1;
  for (std::uint32_t seed = 0; seed < 12; ++seed) {
    const std::vector<ChainStage> stages = random_chain(seed, {20, 2, 40});
    const OptimalChain exact(stages, 100'000, {.slots = 100'000});
    const Bytes smallest = exact.smallest_budget();
    const Bytes largest = exact.largest_budget();
    for (int part = 0; part <= 4; ++part) {
      const Bytes budget = smallest + (largest - smallest) * part / 4;
      const double least = cost_within(exact, budget);
      for (const std::uint32_t slots : {1u, 30u, 300u}) {
        const OptimalChain chain(stages, budget, {.slots = slots});
        const ChainPlan plan = chain.plan(budget);
        CAPTURE(seed, part, slots);
        CHECK(chain.smallest_budget() == smallest);
        CHECK(plan.peak <= budget);
        CHECK(plan.cost >= least);
        CHECK(plan.lower_bound <= least);
        if (slots == 300) worst = std::max(worst, plan.cost / plan.lower_bound);
      }
    }
    CHECK(cost_within(exact, largest) == exact.plan(largest).lower_bound);
  }
  INFO("worst ratio to the bound " << worst);
  CHECK(worst > 1);
  CHECK(worst < 1.05);
}

TEST_CASE("optimal chain: sizes that share a divisor are exact in few slots") {
  const std::vector<ChainStage> stages = random_chain(3, {12, 2, 6, 1 << 20});
  const std::vector<ChainStage> units = random_chain(3, {12, 2, 6, 1});
  for (Bytes budget = OptimalChain(units, 0).smallest_budget(); budget < 60; budget += 4) {
    const Bytes bytes = (budget << 20) + 12345;
    const OptimalChain chain(stages, bytes, {.slots = 60});
    const ChainPlan plan = chain.plan(bytes);
    CHECK(plan.lower_bound == plan.cost);
    CHECK(plan.cost == cost_within(OptimalChain(units, budget), budget));
  }
}

TEST_CASE("optimal chain: a table serves all budgets up to its own") {
  const std::vector<ChainStage> stages = random_chain(8, {15, 2, 9});
  const OptimalChain chain(stages, 70, {.slots = 70});
  double cost = std::numeric_limits<double>::infinity();
  for (Bytes budget = chain.smallest_budget(); budget <= 70; ++budget) {
    const ChainPlan plan = chain.plan(budget);
    CHECK(plan.cost <= cost);
    CHECK(plan.operations == OptimalChain(stages, budget).plan(budget).operations);
    cost = plan.cost;
  }
  CHECK(chain.plan(1'000'000).operations == chain.plan(70).operations);
}

TEST_CASE("chain: operations that do not fit each other are errors") {
  const std::vector<ChainStage> stages = uniform_chain(2, 3);
  const auto error = [&](std::vector<ChainOperation> operations) -> std::string {
    try {
      run_chain(stages, operations);
    } catch (const ScheduleError& problem) {
      return problem.what();
    }
    return "";
  };
  const ChainOperation r0{Kind::record, 0}, r1{Kind::record, 1}, b0{Kind::backward, 0},
      b1{Kind::backward, 1}, p0{Kind::pass, 0};
  CHECK(error({r0, r1, b1, b0}).empty());
  CHECK(error({p0, r1, b1, r0, b0}).empty());
  CHECK(run_chain(stages, std::vector{p0, r1, b1, r0, b0}).cost == 3);
  CHECK(run_chain(stages, std::vector{p0, r1, b1, r0, b0}).peak == 4);
  CHECK_THAT(error({r1}), Contains("operation 0, record of stage 1") && Contains("not live"));
  CHECK_THAT(error({r0, r1, b0}), Contains("operation 2") && Contains("later stage"));
  CHECK_THAT(error({r0, b1}), Contains("not recorded"));
  CHECK_THAT(error({p0, p0}), Contains("already live"));
  CHECK_THAT(error({r0, r1, b1, b1}), Contains("already reversed"));
  CHECK_THAT(error({r0, {Kind::record, 1, 1}}), Contains("no such record"));
  CHECK_THAT(error({r0, r1, b1}), Contains("stage 0 is not reversed"));
}

TEST_CASE("optimal chain: stages that make no sense are errors") {
  CHECK_THROWS_WITH(OptimalChain({}, 5), Contains("no stages"));
  CHECK_THROWS_WITH(OptimalChain(uniform_chain(3, 3), 5, {.slots = 0}), Contains("no slots"));
  struct Row {
    const char* words;
    void (*spoil)(ChainStage&);
  };
  const Row rows[] = {
      {"forward time of -1 seconds", [](ChainStage& s) { s.forward = -1; }},
      {"output of -1 bytes; give at least 0", [](ChainStage& s) { s.output = -1; }},
      {"forward peak of 0 bytes; give at least 1, its output",
       [](ChainStage& s) { s.forward_peak = 0; }},
      {"no records", [](ChainStage& s) { s.records.clear(); }},
      {"record of 0 bytes; give at least 1, the output",
       [](ChainStage& s) { s.records[0].saved = 0; }},
      {"forward peak of 1 bytes; give at least",
       [](ChainStage& s) { s.records[0].forward_peak = 1; }},
      {", the bytes live before or after it", [](ChainStage& s) { s.gradient = 1; }}};
  for (const auto& [words, spoil] : rows) {
    std::vector<ChainStage> stages = uniform_chain(3, 3);
    spoil(stages[1]);
    CHECK_THROWS_WITH(OptimalChain(stages, 5), Contains("stage 1") && Contains(words));
  }
}

}  // namespace optimal_test
