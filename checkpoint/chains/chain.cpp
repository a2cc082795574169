#include "checkpoint/chains/chain.h"

#include <algorithm>
#include <optional>
#include <string>

#include "autodiff/number_text.h"
#include "checkpoint/schedule.h"

namespace palimpsest {

void check_chain(std::span<const ChainStage> stages) {
  if (stages.empty()) throw ArgumentError("[chain] there are no stages; give at least one");
  Bytes before = 0;
  for (std::size_t k = 0; k < stages.size(); ++k) {
    const ChainStage& stage = stages[k];
    const auto refuse = [k](const std::string& problem) {
      throw ArgumentError("[chain] stage " + std::to_string(k) + " " + problem);
    };
    const auto require_time = [&](double seconds, const char* what) {
      if (seconds >= 0) return;
      refuse(std::string("has a ") + what + " time of " + number_text(seconds) +
             " seconds; give 0 or more");
    };
    const auto require_bytes = [&](Bytes bytes, const char* what, Bytes least, const char* held) {
      if (bytes >= least) return;
      refuse(std::string("has ") + what + " of " + std::to_string(bytes) +
             " bytes; give at least " + std::to_string(least) + held);
    };
    if (stage.records.empty()) refuse("has no records; give at least one");
    require_time(stage.forward, "forward");
    require_bytes(stage.output, "an output", 0, "");
    require_bytes(stage.gradient, "a gradient", 0, "");
    require_bytes(stage.forward_peak, "a forward peak", stage.output, ", its output");
    for (const ChainStage::Record& record : stage.records) {
      require_time(record.forward, "forward");
      require_time(record.backward, "backward");
      require_bytes(record.saved, "a record", stage.output, ", the output");
      require_bytes(record.forward_peak, "a forward peak", record.saved, ", the saved bytes");
      require_bytes(record.backward_peak, "a backward peak",
                    std::max(record.saved + stage.gradient, before),
                    ", the bytes live before or after it");
    }
    before = stage.gradient;
  }
}

namespace {

const char* name_of(ChainOperation::Kind kind) {
  switch (kind) {
    case ChainOperation::Kind::pass:
      return "pass";
    case ChainOperation::Kind::pass_on:
      return "pass on";
    case ChainOperation::Kind::record:
      return "record";
    case ChainOperation::Kind::backward:
      return "backward";
  }
  return "";
}

class ChainMachine {
 public:
  explicit ChainMachine(std::span<const ChainStage> stages)
      : stages_(stages),
        output_(stages.size()),
        record_(stages.size()),
        left_(stages.size()),
        held_(stages.back().gradient) {}

  void run(const ChainOperation& operation) {
    const std::size_t k = operation.stage;
    const auto refuse = [&](const std::string& problem) {
      throw ScheduleError("[chain] operation " + std::to_string(count_) + ", " +
                          name_of(operation.kind) + " of stage " + std::to_string(k) + ": " +
                          problem);
    };
    const auto require = [&](bool condition, const char* problem) {
      if (!condition) refuse(problem);
    };
    require(k < left_, "the stage is already reversed, or does not exist; leave this out");
    const ChainStage& stage = stages_[k];
    if (operation.record >= stage.records.size()) {
      refuse("the stage has no such record; it has " + std::to_string(stage.records.size()) +
             " records");
    }
    require(k == 0 || output_[k - 1] || record_[k - 1], "the input is not live; make it first");
    const ChainStage::Record& record = stage.records[operation.record];
    if (operation.kind == ChainOperation::Kind::backward) {
      require(record_[k] == operation.record,
              "the stage is not recorded with this record; record it first");
      require(k + 1 == left_, "a later stage must be reversed first");
      held_ -= record.saved + stage.gradient;
      spend(record.backward, record.backward_peak);
      if (k > 0) held_ += stages_[k - 1].gradient;
      record_[k].reset();
      drop_input(k);
      --left_;
    } else {
      require(!output_[k] && !record_[k], "the output is already live; leave this out");
      if (operation.kind == ChainOperation::Kind::record) {
        spend(record.forward, record.forward_peak);
        held_ += record.saved;
        record_[k] = operation.record;
      } else {
        spend(stage.forward, stage.forward_peak);
        held_ += stage.output;
        output_[k] = true;
        if (operation.kind == ChainOperation::Kind::pass) drop_input(k);
      }
    }
    ++count_;
  }

  ChainUse finish() const {
    if (left_ > 0) {
      throw ScheduleError("[chain] at the end stage " + std::to_string(left_ - 1) +
                          " is not reversed; add its backward operation");
    }
    if (output_.back())
      throw ScheduleError(
          "[chain] at the end the last stage's output is live; record the stage instead");
    return use_;
  }

 private:
  void spend(double seconds, Bytes peak) {
    use_.cost += seconds;
    use_.peak = std::max(use_.peak, held_ + peak);
  }
  void drop_input(std::size_t k) {
    if (k == 0 || !output_[k - 1]) return;
    output_[k - 1] = false;
    held_ -= stages_[k - 1].output;
  }

  std::span<const ChainStage> stages_;
  std::vector<bool> output_;  // held on its own
  std::vector<std::optional<std::uint32_t>> record_;
  std::size_t left_;  // stages not reversed yet
  Bytes held_;        // bytes live between operations
  std::size_t count_ = 0;
  ChainUse use_;
};

}  // namespace

ChainUse run_chain(std::span<const ChainStage> stages, std::span<const ChainOperation> operations) {
  check_chain(stages);
  ChainMachine machine(stages);
  for (const ChainOperation& operation : operations) machine.run(operation);
  return machine.finish();
}

}  // namespace palimpsest
