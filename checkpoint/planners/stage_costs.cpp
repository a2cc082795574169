#include "checkpoint/planners/stage_costs.h"

#include <algorithm>

#include "checkpoint/planners/storage_lives.h"
#include "checkpoint/rematerialize.h"

namespace palimpsest {

namespace {

class StageMeter {
 public:
  explicit StageMeter(const Stages& stages)
      : stages_(stages),
        graph_(stages.graph()),
        lives_(stages),
        used_outside_(graph_.value_count()),
        live_(graph_.value_count(), true),
        missing_(graph_) {
    for (std::uint32_t k = 0; k < stages.count(); ++k) {
      for (const NodeId node : stages.forward(k)) {
        for (const ValueId input : graph_.inputs(node)) {
          if (stages.stage_of(graph_.producer(input)) != k) used_outside_[input] = true;
        }
      }
      for (const NodeId node : stages.backward(k)) {
        for (const ValueId input : graph_.inputs(node)) used_outside_[input] = true;
      }
    }
  }

  StageCosts measure(std::uint32_t records) {
    for (std::uint32_t k = 0; k < stages_.count(); ++k) {
      const Run pass = run_forward(k, [k](const StorageLife& life) { return life.crosses(k); });
      costs_.chain.push_back({pass.cost, lives_.output(k), pass.peak, lives_.gradient(k), {}});
      costs_.backward.emplace_back();
      add_record(k);
      const std::vector<ValueId> candidates = cheapest_first(k);
      Bytes total = 0;
      for (const ValueId root : candidates) total += graph_.bytes(root);
      Bytes dropped = 0;
      std::size_t next = 0;
      for (std::uint32_t r = 1; r <= records; ++r) {
        const std::size_t before = next;
        for (; next < candidates.size() && dropped < total * r / records; ++next) {
          lives_[candidates[next]].dropped = true;
          dropped += graph_.bytes(candidates[next]);
        }
        if (next > before) add_record(k);
      }
      for_values(k, [&](ValueId value) { live_[value] = true; });
    }
    return std::move(costs_);
  }

 private:
  struct Run {
    double cost = 0;
    Bytes left = 0;  // bytes live when it ends
    Bytes peak = 0;
  };

  /// Calls `f` for the values that the forward part of a stage makes.
  template <class F>
  void for_values(std::uint32_t stage, F f) {
    for (const NodeId node : stages_.forward(stage)) {
      for (std::uint32_t i = 0; i < graph_.output_count(node); ++i) {
        f(graph_.first_output(node) + i);
      }
    }
  }

  /// The storages that the stage saves for its own backward part only, in order of the seconds per
  /// byte to recompute them when all others are live.
  std::vector<ValueId> cheapest_first(std::uint32_t stage) {
    std::vector<std::pair<ValueId, ValueId>> values;  // storage and value
    for_values(stage, [&](ValueId value) {
      const ValueId root = graph_.storage(value);
      const StorageLife& life = lives_[root];
      const bool own = life.made == stage && life.lowest == stage && !life.crosses(stage);
      if (own && !life.held && life.bytes > 0 && used_outside_[value]) {
        values.push_back({root, value});
      }
    });
    std::sort(values.begin(), values.end());
    std::vector<std::pair<double, ValueId>> prices;
    std::vector<ValueId> again;
    for (std::size_t k = 0; k < values.size(); ++k) {
      const ValueId root = values[k].first;
      again.push_back(values[k].second);
      live_[values[k].second] = false;
      if (k + 1 < values.size() && values[k + 1].first == root) continue;
      double cost = 0;
      for (const NodeId node : missing_.find(again, live_)) cost += graph_.cost(node);
      prices.push_back({cost / static_cast<double>(graph_.bytes(root)), root});
      for (const ValueId value : again) live_[value] = true;
      again.clear();
    }
    std::sort(prices.begin(), prices.end());
    std::vector<ValueId> roots;
    for (const auto& [price, root] : prices) roots.push_back(root);
    return roots;
  }

  /// Adds the record that saves everything not dropped.
  void add_record(std::uint32_t stage) {
    for_values(stage, [&](ValueId value) {
      const StorageLife& life = lives_[value];
      live_[value] = life.held || (life.is_saved(stage) && used_outside_[value]);
    });
    std::vector<NodeId> nodes;
    for (const NodeId node : stages_.backward(stage)) {
      for (const NodeId again : missing_.find(graph_.inputs(node), live_)) {
        nodes.push_back(again);
        for (std::uint32_t i = 0; i < graph_.output_count(again); ++i) {
          live_[graph_.first_output(again) + i] = true;
        }
      }
      nodes.push_back(node);
    }
    const auto saved = [stage](const StorageLife& life) { return life.is_saved(stage); };
    const Run recording = run_forward(stage, saved);
    const Run backward = run_backward(stage, nodes);
    const Bytes before = stage > 0 ? lives_.gradient(stage - 1) : 0;
    const Bytes after = recording.left + lives_.gradient(stage);
    costs_.chain[stage].records.push_back({recording.cost, backward.cost, recording.left,
                                           recording.peak,
                                           std::max({backward.peak, before, after})});
    costs_.backward[stage].push_back(std::move(nodes));
  }

  /// Runs the forward nodes of a stage that make `wanted` storages.
  template <class Wanted>
  Run run_forward(std::uint32_t stage, Wanted wanted) {
    const std::span<const NodeId> nodes = stages_.forward(stage);
    std::vector<bool> runs(nodes.size());
    ++walk_;
    for (std::uint32_t k = narrow(nodes.size()); k-- > 0;) {
      lives_.for_made(nodes[k], [&](const StorageLife& life) {
        runs[k] = runs[k] || life.seen == walk_ || (wanted(life) && !life.held);
      });
      if (runs[k]) note_use(nodes[k], k);
    }
    Run run;
    run.left = run.peak = lives_.through(stage);
    for (std::uint32_t k = 0; k < nodes.size(); ++k) {
      if (!runs[k]) continue;
      add(run, nodes[k], [](const StorageLife& life) { return !life.held; });
      remove(run, nodes[k], k, [&](const StorageLife& life) {
        return life.made == stage && !life.held && !wanted(life);
      });
    }
    return run;
  }

  /// Runs the backward nodes of a stage and the nodes recomputed for them.
  Run run_backward(std::uint32_t stage, std::span<const NodeId> nodes) {
    ++walk_;
    for (std::uint32_t k = narrow(nodes.size()); k-- > 0;) note_use(nodes[k], k);
    Run run;
    run.left = lives_.gradient(stage);
    for (const NodeId node : stages_.forward(stage)) {
      lives_.for_own(node, [&](const StorageLife& life) {
        if (life.is_saved(stage) && !life.held && life.lowest <= stage) run.left += life.bytes;
      });
    }
    run.peak = run.left;
    for (std::uint32_t k = 0; k < nodes.size(); ++k) {
      add(run, nodes[k], [&](const StorageLife& life) {
        return life.backward || !(life.held || life.is_saved(stage));
      });
      remove(run, nodes[k], k, [&](const StorageLife& life) {
        return !life.target && std::min(life.made, life.lowest) >= stage;
      });
    }
    return run;
  }

  /// For backward walks over nodes: the last use is met first.
  void note_use(NodeId node, std::uint32_t place) {
    lives_.for_all(node, [&](StorageLife& life) {
      if (life.seen != walk_) life.last_use = place;
      life.seen = walk_;
    });
  }
  template <class Counts>
  void add(Run& run, NodeId node, Counts counts) {
    run.cost += graph_.cost(node);
    lives_.for_own(node,
                   [&](const StorageLife& life) { run.left += counts(life) ? life.bytes : 0; });
    run.peak = std::max(run.peak, run.left + graph_.workspace(node));
  }
  template <class Goes>
  void remove(Run& run, NodeId node, std::uint32_t place, Goes goes) {
    lives_.for_all(node, [&](StorageLife& life) {
      if (life.last_use != place || !goes(life)) return;
      run.left -= life.bytes;
      life.last_use = none;
    });
  }

  static std::uint32_t narrow(std::size_t size) { return static_cast<std::uint32_t>(size); }

  const Stages& stages_;
  const Graph& graph_;
  StorageLives lives_;
  std::vector<bool> used_outside_;  // values that another stage, or the backward part, reads
  std::vector<bool> live_;          // values live before the backward part of the stage
  MissingNodes missing_;
  StageCosts costs_;
  std::uint32_t walk_ = 0;
};

}  // namespace

StageCosts measure_stages(const Stages& stages, std::uint32_t records) {
  return StageMeter(stages).measure(records);
}

}  // namespace palimpsest
