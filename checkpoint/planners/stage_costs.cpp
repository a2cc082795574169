#include "checkpoint/planners/stage_costs.h"

#include <algorithm>

namespace palimpsest {

namespace {

/// Where a storage is made and read.
struct Life {
  Bytes bytes = 0;
  std::uint32_t made = none;    // in which stage; none for what no stage does
  std::uint32_t reach = 0;      // the last stage to read it, forwards, or backwards at its turn
  std::uint32_t lowest = none;  // the last stage to read it going backwards
  std::uint32_t last_read = 0;  // the last place in the backward part that reads it
  std::uint32_t last_run = 0;   // the last place in a stage that reads it
  std::uint32_t seen = 0;       // the last run of a stage that met it
  bool backward = false;        // made by the backward part
  bool target = false;          // live to the end
  bool held = false;            // made by the forward part, and never made again
};

class StageMeter {
 public:
  explicit StageMeter(const Stages& stages)
      : stages_(stages),
        graph_(stages.graph()),
        count_(static_cast<std::uint32_t>(stages.count())),
        lives_(graph_.value_count()),
        output_(count_ + 1),
        gradient_(count_ + 1),
        through_(count_ + 1) {
    find_lives();
    for (const Life& life : lives_) {
      if (life.made != none) count_between_stages(life);
    }
    for (std::vector<Bytes>* sums : {&output_, &gradient_, &through_}) {
      for (std::size_t k = 1; k < sums->size(); ++k) (*sums)[k] += (*sums)[k - 1];
    }
  }

  std::vector<ChainStage> measure() {
    std::vector<ChainStage> result(count_);
    std::uint32_t place = 0;
    for (std::uint32_t k = count_; k-- > 0;) {
      const Run backward = run_backward(k, place);
      const auto crosses = [k](const Life& life) { return life.reach > k; };
      const auto is_saved = [k](const Life& life) { return life.reach > k || life.lowest != none; };
      const Run pass = run_forward(k, crosses);
      const Run recording = run_forward(k, is_saved);
      const Bytes saved_and_gradient = recording.left + gradient_[k];
      const Bytes before = k > 0 ? gradient_[k - 1] : 0;
      result[k].forward = pass.cost;
      result[k].output = output_[k];
      result[k].forward_peak = pass.peak;
      result[k].gradient = gradient_[k];
      result[k].records = {{recording.cost, backward.cost, recording.left, recording.peak,
                            std::max({backward.peak, saved_and_gradient, before})}};
    }
    return result;
  }

 private:
  struct Run {
    double cost = 0;
    Bytes left = 0;  // live when it ends
    Bytes peak = 0;
  };

  Life& life_of(ValueId value) { return lives_[graph_.storage(value)]; }

  /// Calls `f` for the storages of what a node makes.
  template <class F>
  void for_made(NodeId node, F f) {
    for (std::uint32_t i = 0; i < graph_.output_count(node); ++i) {
      f(life_of(graph_.first_output(node) + i));
    }
  }
  /// The same for what it reads and makes.
  template <class F>
  void for_all(NodeId node, F f) {
    for (const ValueId input : graph_.inputs(node)) f(life_of(input));
    for_made(node, f);
  }

  void find_lives() {
    for (ValueId value = 0; value < lives_.size(); ++value) {
      if (graph_.is_target(value)) life_of(value).target = true;
      const NodeId node = graph_.producer(value);
      if (graph_.storage(value) != value || graph_.is_source(node)) continue;
      Life& life = lives_[value];
      life.bytes = graph_.bytes(value);
      life.made = stages_.stage_of(node);
      life.backward = stages_.is_backward(node);
      life.held = stages_.held()[value];
    }
    for (Life& life : lives_) life.held = life.held || (life.target && !life.backward);
    for (std::uint32_t k = 0; k < count_; ++k) {
      for (const NodeId node : stages_.forward(k)) {
        for_all(node, [&](Life& life) { life.reach = k; });
      }
    }
    std::uint32_t place = 0;
    for (std::uint32_t k = count_; k-- > 0;) {
      for (const NodeId node : stages_.backward(k)) {
        for_all(node, [&](Life& life) {
          life.reach = std::max(life.reach, k);
          life.lowest = k;
          life.last_read = place;
        });
        ++place;
      }
    }
  }

  void count_between_stages(const Life& life) {
    const auto add = [&](std::vector<Bytes>& sums, std::uint32_t first, std::uint32_t end) {
      if (first >= end) return;
      sums[first] += life.bytes;
      sums[end] -= life.bytes;
    };
    const std::uint32_t lowest = life.target ? 0 : std::min(life.made, life.lowest);
    if (life.backward || life.held) {
      add(gradient_, lowest, life.held ? count_ : life.made);
    } else {
      add(gradient_, lowest, life.made);
      add(output_, life.made, life.reach);
      add(through_, life.made + 1, life.reach);
    }
  }

  /// The backward nodes of a stage, the first of which is at `place`: moves it on.
  Run run_backward(std::uint32_t stage, std::uint32_t& place) {
    Run run;
    run.left = gradient_[stage];
    for (const NodeId node : stages_.forward(stage)) {
      for (std::uint32_t i = 0; i < graph_.output_count(node); ++i) {
        const Life& life = lives_[graph_.first_output(node) + i];
        if (!life.held && life.lowest <= stage) run.left += life.bytes;
      }
    }
    run.peak = run.left;
    for (const NodeId node : stages_.backward(stage)) {
      run.cost += graph_.cost(node);
      add_made(node, run);
      for_all(node, [&](Life& life) {
        const bool counted = life.backward || life.held || life.made >= stage;
        if (life.made == none || !counted || life.target || life.last_read != place) return;
        run.left -= life.bytes;
        life.last_read = none;
      });
      ++place;
    }
    return run;
  }

  /// The forward nodes of a stage that make storages that are `wanted`.
  template <class Wanted>
  Run run_forward(std::uint32_t stage, Wanted wanted) {
    const std::span<const NodeId> nodes = stages_.forward(stage);
    std::vector<bool> runs(nodes.size());
    ++runs_;
    for (std::uint32_t k = narrow(nodes.size()); k-- > 0;) {
      for_made(nodes[k], [&](const Life& life) {
        runs[k] = runs[k] || life.seen == runs_ || (wanted(life) && !life.held);
      });
      if (!runs[k]) continue;
      for_all(nodes[k], [&](Life& life) {
        if (life.seen != runs_) life.last_run = k;
        life.seen = runs_;
      });
    }
    Run run;
    run.left = run.peak = through_[stage];
    for (std::uint32_t k = 0; k < nodes.size(); ++k) {
      if (!runs[k]) continue;
      run.cost += graph_.cost(nodes[k]);
      add_made(nodes[k], run);
      for_all(nodes[k], [&](Life& life) {
        if (life.made != stage || life.held || wanted(life) || life.last_run != k) return;
        run.left -= life.bytes;
        life.last_run = none;
      });
    }
    return run;
  }

  /// What a node makes, and its workspace.
  void add_made(NodeId node, Run& run) {
    for (std::uint32_t i = 0; i < graph_.output_count(node); ++i) {
      const Life& life = lives_[graph_.first_output(node) + i];
      if (!life.held) run.left += life.bytes;
    }
    run.peak = std::max(run.peak, run.left + graph_.workspace(node));
  }

  static std::uint32_t narrow(std::size_t size) { return static_cast<std::uint32_t>(size); }

  const Stages& stages_;
  const Graph& graph_;
  std::uint32_t count_;
  std::vector<Life> lives_;  // by root value
  // Bytes live between a stage and the next: that the former makes for the latter or for later
  // ones; that the backward part of later stages leaves, or that are held; that cross the stage.
  std::vector<Bytes> output_;
  std::vector<Bytes> gradient_;
  std::vector<Bytes> through_;
  std::uint32_t runs_ = 0;
};

}  // namespace

std::vector<ChainStage> measure_stages(const Stages& stages) {
  return StageMeter(stages).measure();
}

}  // namespace palimpsest
