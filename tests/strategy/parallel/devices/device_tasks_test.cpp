#include "strategy/parallel/devices/device_tasks.h"

#include <algorithm>

#include <rapidcheck.h>

#include "strategy/base/record_model.h"
#include "tests/strategy/execution/random_model.h"
#include "tests/strategy/parallel/devices/devices.h"

namespace palimpsest::device_tasks_test {
namespace {

/// Bytes that a task writes or reads, and the value in them; `none` in a workspace.
struct Touched {
  int device;
  Bytes begin;
  Bytes end;
  bool writes;
  ValueId value;

  bool meets(const Touched& other) const {
    return device == other.device && begin < other.end && other.begin < end;
  }
};

/// A program placed on devices at random.
struct Placed {
  Placed(const SmallModel& model, std::size_t devices, Sending sending, std::uint64_t seed,
         bool again) {
    const Where where = Where::current();
    record_loss(program, record_model(model.loss, tape, model.parameters, model.batch, where).loss);
    const Elements elements(program);
    DevicePlacement placement;
    for (std::size_t e = 0; e < elements.size(); ++e) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      placement.push_back(static_cast<int>((seed >> 33) % devices));
    }
    cut = cut_for_devices(program, elements, placement, devices, sending);
    pieces = pieces_of(program, cut, std::vector<bool>(devices, again));
    for (std::size_t d = 0; d < devices; ++d) {
      memories.push_back(lay_out_device(program, cut, pieces, static_cast<int>(d)));
    }
    for (const DeviceCut::At& at : cut.pieces) {
      const Bytes top =
          memories[static_cast<std::size_t>(at.device)].top(DeviceTime::of_piece(at.level));
      workspaces.push_back({top, 512});
    }
    made = tasks_of(program, cut, pieces, memories, workspaces);
  }

  Bytes offset(int device, ValueId value) const {
    return memories[static_cast<std::size_t>(device)].places.at(value).offset;
  }

  std::vector<Touched> touched(const DeviceTask& task) const {
    std::vector<Touched> list;
    const auto add = [&](int device, ValueId value, bool writes) {
      const Bytes begin = offset(device, value);
      list.push_back({device, begin, begin + program.tape.bytes(value), writes, value});
    };
    for (const DeviceTask::Move& move : task.moves) {
      add(task.sender, move.value, false);
      add(task.device, move.value, true);
    }
    if (task.piece == none) return list;
    for (const ValueId value : pieces[task.piece].arguments) add(task.device, value, false);
    for (const Piece::Result& result : pieces[task.piece].results) {
      if (result.use == Piece::Result::Use::other_pieces) add(task.device, result.value, true);
    }
    const Workspace& workspace = workspaces[task.piece];
    list.push_back({task.device, workspace.begin, workspace.begin + workspace.bytes, true, none});
    return list;
  }

  Tape tape{lazy()};
  RecordedProgram program;
  DeviceCut cut;
  std::vector<Piece> pieces;
  std::vector<DeviceMemory> memories;
  std::vector<Workspace> workspaces;
  DeviceTasks made;
};

Sending any_sending() { return *rc::gen::element(Sending::late, Sending::early); }

/// By task, the tasks that have certainly ended when it begins.
std::vector<std::vector<bool>> ended_before(const DeviceTasks& made) {
  const std::size_t count = made.tasks.size();
  std::vector<std::vector<bool>> before(count, std::vector<bool>(count));
  for (std::uint32_t task = 0; task < count; ++task) {
    for (const std::uint32_t next : made.edges.successors(task)) {
      RC_ASSERT(next > task);
      before[next][task] = true;
      for (std::uint32_t each = 0; each < task; ++each) {
        if (before[task][each]) before[next][each] = true;
      }
    }
  }
  return before;
}

TEST_CASE("device tasks: whatever order they run in, nothing is written where something lies") {
  CHECK(rc::check("any program on any devices", [] {
    const auto seed = *rc::gen::arbitrary<std::uint64_t>();
    const Placed placed(random_model(seed, *rc::gen::inRange(4, 20)),
                        *rc::gen::inRange<std::size_t>(1, 5), any_sending(), seed / 3,
                        *rc::gen::arbitrary<bool>());
    const DeviceTasks& made = placed.made;
    const std::vector<std::vector<bool>> before = ended_before(made);
    std::vector<std::vector<Touched>> touched;
    for (const DeviceTask& task : made.tasks) touched.push_back(placed.touched(task));
    for (std::size_t a = 0; a < touched.size(); ++a) {
      for (std::size_t b = a + 1; b < touched.size(); ++b) {
        if (before[b][a]) continue;
        for (const Touched& one : touched[a]) {
          for (const Touched& other : touched[b]) {
            RC_ASSERT(!one.meets(other) || (!one.writes && !other.writes));
          }
        }
      }
    }
    // In the order of the tasks, every value is present when it is read.
    std::vector<Touched> lying;
    for (const std::vector<Touched>& of_task : touched) {
      for (const Touched& each : of_task) {
        if (each.writes || each.begin == each.end) continue;
        RC_ASSERT(std::ranges::any_of(lying, [&](const Touched& there) {
          return there.meets(each) && there.value == each.value && there.begin == each.begin;
        }));
      }
      for (const Touched& each : of_task) {
        if (!each.writes) continue;
        for (const Touched& other : of_task) {
          RC_ASSERT(!each.meets(other) || other.value == each.value);
        }
        std::erase_if(lying, [&](const Touched& there) { return there.meets(each); });
        lying.push_back(each);
      }
    }
  }));
}

TEST_CASE("device tasks: pieces hold what their devices are to compute, each node once") {
  CHECK(rc::check("any program on any devices", [] {
    const auto seed = *rc::gen::arbitrary<std::uint64_t>();
    const Placed placed(random_model(seed, *rc::gen::inRange(4, 20)),
                        *rc::gen::inRange<std::size_t>(1, 5), any_sending(), seed / 3, false);
    std::size_t nodes = 0;
    for (const PieceId piece : placed.cut.piece_of) nodes += piece != none;
    std::size_t computed = 0;
    for (const Piece& piece : placed.pieces) {
      for (NodeId node = 0; node < piece.tape->node_count(); ++node) {
        computed += !is_free(*piece.tape, node);
      }
    }
    RC_ASSERT(computed == nodes);
    for (std::size_t p = 1; p < placed.cut.pieces.size(); ++p) {
      const auto [device, level] = placed.cut.pieces[p];
      const auto [device_before, level_before] = placed.cut.pieces[p - 1];
      RC_ASSERT(std::tie(level_before, device_before) < std::tie(level, device));
    }
  }));
}

TEST_CASE("device tasks: what is sent early waits for nothing that no other device waits for") {
  CHECK(rc::check("any program on any devices", [] {
    const auto seed = *rc::gen::arbitrary<std::uint64_t>();
    const Placed placed(random_model(seed, *rc::gen::inRange(4, 20)),
                        *rc::gen::inRange<std::size_t>(2, 5), Sending::early, seed / 3, false);
    const DeviceCut& cut = placed.cut;
    const Elements elements(placed.program);
    const Graph& graph = elements.graph();
    std::vector<bool> is_awaited(placed.program.tape.node_count());
    for (NodeId node = placed.program.tape.node_count(); node-- > 0;) {
      const PieceId reader = cut.piece_of[node];
      if (reader == none) continue;
      const bool is_early = cut.pieces[reader].level % 2 == 0;
      RC_ASSERT(is_awaited[node] == is_early);
      for (const ValueId input : graph.inputs(node)) {
        const NodeId producer = graph.producer(graph.storage(input));
        const PieceId maker = cut.piece_of[producer];
        if (maker == none) continue;
        const bool is_sent = cut.pieces[maker].device != cut.pieces[reader].device;
        if (is_sent || (maker == reader && is_early)) is_awaited[producer] = true;
      }
    }
  }));
}

}  // namespace
}  // namespace palimpsest::device_tasks_test
