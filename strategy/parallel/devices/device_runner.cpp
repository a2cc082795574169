#include "strategy/parallel/devices/device_runner.h"

#include <oneapi/tbb/info.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>

#include "strategy/base/named_errors.h"
#include "strategy/run/report_of.h"
#include "strategy/run/run_control_of.h"

namespace palimpsest {
namespace {

/// The NUMA nodes of the machine if it has several; otherwise empty. It reads Linux's list, such as
/// "0-3" or "0,2", because TBB would load another library just to find a single node.
std::vector<tbb::numa_node_id> several_numa_nodes() {
  std::ifstream list("/sys/devices/system/node/online");
  std::string nodes;
  std::getline(list, nodes);
  if (nodes.find_first_of(",-") == std::string::npos) return {};
  std::vector<tbb::numa_node_id> found = tbb::info::numa_nodes();
  return found.size() > 1 ? found : std::vector<tbb::numa_node_id>{};
}

}  // namespace

struct DeviceRunner::Threads {
  Threads(int devices, int threads, int threads_of_device) : all(threads) {
    const std::vector<tbb::numa_node_id> nodes = several_numa_nodes();
    for (int device = 0; device < devices; ++device) {
      tbb::task_arena::constraints where;
      where.set_max_concurrency(threads_of_device);
      if (!nodes.empty()) where.set_numa_id(nodes[static_cast<std::size_t>(device) % nodes.size()]);
      numa_nodes.push_back(nodes.empty() ? -1 : where.numa_id);
      of_device.push_back(std::make_unique<tbb::task_arena>(where));
    }
  }

  tbb::task_arena all;
  std::vector<std::unique_ptr<tbb::task_arena>> of_device;
  std::vector<int> numa_nodes;  // by device
};

DeviceRunner::DeviceRunner(int devices, int threads, int threads_of_device)
    : threads_(std::make_unique<Threads>(devices, threads, threads_of_device)),
      meters_(static_cast<std::size_t>(devices)),
      blocks_(static_cast<std::size_t>(devices)) {}
DeviceRunner::~DeviceRunner() = default;

Bytes DeviceRunner::kept() const {
  Bytes bytes = 0;
  for (const Arena& block : blocks_) bytes += block.size();
  return bytes;
}

void DeviceRunner::release_memory() {
  prepared_ = nullptr;
  runners_.clear();
  for (Arena& block : blocks_) block = Arena();
}

void DeviceRunner::prepare(const std::shared_ptr<const DevicePlan>& plan) {
  if (prepared_ == plan) return;
  prepared_ = nullptr;
  runners_.clear();
  for (std::size_t d = 0; d < blocks_.size(); ++d) {
    const Bytes bytes = std::max<Bytes>(plan->blocks[d], 1);
    if (blocks_[d].size() == bytes) continue;
    blocks_[d] = Arena();
    blocks_[d] = Arena(meters_[d], bytes);
    if (threads_->numa_nodes[d] < 0) continue;
    // A page is placed on the NUMA node of the thread that touches it first.
    threads_->of_device[d]->execute(
        [&] { std::memset(blocks_[d].at(0), 0, static_cast<std::size_t>(bytes)); });
  }
  for (PieceId p = 0; p < plan->pieces.size(); ++p) {
    const DevicePiece& piece = plan->pieces[p];
    if (piece.program == nullptr) continue;
    const Arena& block = blocks_[static_cast<std::size_t>(piece.piece.stage)];
    const auto bytes = static_cast<std::size_t>(piece.workspace.bytes);
    runners_.try_emplace(p, piece.program, std::span(block.at(piece.workspace.begin), bytes));
  }
  prepared_ = plan;
}

/// One run of a plan.
class DeviceRunner::Run {
 public:
  Run(DeviceRunner& owner, const DevicePlan& plan, const Tape& tape, std::uint32_t round,
      const DeviceOutputs& outputs, const RunOptions& options)
      : owner_(owner),
        plan_(plan),
        tape_(tape),
        round_(round),
        outputs_(outputs),
        devices_(plan.devices.size()),
        done_(plan.tasks.tasks.size()),
        control_(run_control_of(options, steps())),
        native_(decided(options.native)) {}

  void run() {
    run_tasks(owner_.threads_->all, plan_.tasks.edges,
              [this](std::uint32_t task) { carry_out(task); });
  }

  Report report() {
    Report report;
    report.devices = plan_.devices;
    report.device_tasks = std::move(done_);
    for (const auto& [piece, runner] : owner_.runners_) {
      add_native(report.native, native_of(runner.executor()));
    }
    for (std::size_t d = 0; d < devices_.size(); ++d) {
      Report::Device& device = report.devices[d];
      owner_.blocks_[d].note(devices_[d].end, devices_[d].end);
      device.numa_node = owner_.threads_->numa_nodes[d];
      const Bytes taken = owner_.meters_[d].peak_reserved();
      report.measured_peak += taken;
      device.measured_peak = device.predicted_peak - plan_.blocks[d] + taken;
      report.computed += devices_[d].computed;
      report.groups += devices_[d].groups;
      report.kernel_seconds += devices_[d].profiled.kernel_seconds;
      std::ranges::move(devices_[d].profiled.steps, std::back_inserter(report.steps));
    }
    report.recomputed = report.computed - std::min(plan_.keep_all_computed, report.computed);
    return report;
  }

 private:
  std::uint64_t steps() const {
    std::uint64_t steps = 0;
    for (const DevicePiece& piece : plan_.pieces) {
      if (piece.program != nullptr) steps += piece.program->instructions()->steps().size();
    }
    return steps;
  }

  /// Measurements of a device, whose pieces run in sequence.
  struct Measured {
    std::atomic<Bytes> end = 0;  // of the highest byte occupied
    std::uint32_t computed = 0;
    std::uint32_t groups = 0;
    Report profiled;
  };

  std::int64_t now() const { return (std::chrono::steady_clock::now() - start_).count(); }

  void carry_out(std::uint32_t index) {
    const DeviceTask& task = plan_.tasks.tasks[index];
    Report::DeviceTask& done = done_[index];
    done = {task.device, task.piece == none ? task.sender : -1, task.bytes(), now(), 0};
    if (task.piece == none) {
      transfer(task);
    } else {
      const auto device = static_cast<std::size_t>(task.device);
      owner_.threads_->of_device[device]->execute([&] {
        naming_errors("[devices] device " + std::to_string(task.device),
                      [&] { run_piece(task.piece, devices_[device], done.start); });
      });
    }
    done.end = now();
  }

  void transfer(const DeviceTask& task) {
    const Arena& from = owner_.blocks_[static_cast<std::size_t>(task.sender)];
    const auto device = static_cast<std::size_t>(task.device);
    for (const DeviceTask::Move& move : task.moves) {
      if (move.bytes == 0) continue;
      std::memcpy(owner_.blocks_[device].at(move.to), from.at(move.from),
                  static_cast<std::size_t>(move.bytes));
      raise_to(devices_[device].end, move.to + move.bytes);
    }
  }

  void run_piece(PieceId id, Measured& measured, std::int64_t start) {
    const DevicePiece& placed = plan_.pieces[id];
    if (placed.program == nullptr) return;
    const Arena& block = owner_.blocks_[static_cast<std::size_t>(placed.piece.stage)];
    const LentLeaves lent(placed.piece, tape_);
    std::vector<std::byte*> arguments;
    for (const Bytes place : placed.arguments) arguments.push_back(block.at(place));
    std::vector<std::byte*> results;
    for (std::size_t i = 0; i < placed.results.size(); ++i) {
      const Piece::Result& result = placed.piece.results[i];
      if (result.use == Piece::Result::Use::other_pieces) {
        results.push_back(block.at(placed.results[i]));
        const Bytes bytes = placed.piece.tape->bytes(placed.piece.wanted.results[i]);
        raise_to(measured.end, placed.results[i] + bytes);
      } else if (result.use == Piece::Result::Use::outcome) {
        results.push_back(outputs_.outcome);
      } else if (result.use == Piece::Result::Use::output) {
        results.push_back(outputs_.outputs[result.index]);
      } else {
        results.push_back(outputs_.gradients[result.index]);
      }
    }
    BufferRunner& runner = owner_.runners_.at(id);
    runner.set_control(control_ ? &*control_ : nullptr, true);
    runner.set_native(native_);
    runner.run(*placed.piece.tape, arguments, results, round_);
    const Executor& executor = runner.executor();
    if (executor.peak() > 0) raise_to(measured.end, placed.workspace.begin + executor.peak());
    measured.computed += placed.program->computed();
    measured.groups += executor.instructions().lowered().groups();
    if (executor.events().empty()) return;
    const std::size_t first = measured.profiled.steps.size();
    append_steps(measured.profiled, *placed.piece.tape, executor);
    for (Report::Step& step : std::span(measured.profiled.steps).subspan(first)) {
      step.event.start += start;
      step.event.end += start;
      step.event.thread = placed.piece.stage;
    }
  }

  DeviceRunner& owner_;
  const DevicePlan& plan_;
  const Tape& tape_;
  std::uint32_t round_;
  const DeviceOutputs& outputs_;
  std::vector<Measured> devices_;
  std::vector<Report::DeviceTask> done_;  // by task
  std::optional<RunControl> control_;
  NativeCode native_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

Report DeviceRunner::run(const std::shared_ptr<const DevicePlan>& plan, const Tape& tape,
                         std::uint32_t round, const DeviceOutputs& outputs,
                         const RunOptions& options) {
  prepare(plan);
  for (const Meter& meter : meters_) meter.reset_peaks();
  Run run(*this, *plan, tape, round, outputs, options);
  run.run();
  return run.report();
}

}  // namespace palimpsest
