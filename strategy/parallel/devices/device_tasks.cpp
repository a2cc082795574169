#include "strategy/parallel/devices/device_tasks.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace palimpsest {
namespace {

/// Bytes of a device that are occupied for some time, and the tasks that use them.
struct Occupied {
  int device;
  Bytes begin;
  Bytes end;
  std::uint32_t first;
  std::uint32_t last;
  std::set<std::uint32_t> writers = {};
  std::set<std::uint32_t> readers = {};
};

class TaskMaker {
 public:
  TaskMaker(const RecordedProgram& program, const DeviceCut& cut, std::span<const Piece> pieces,
            std::span<const DeviceMemory> memories, std::span<const Workspace> workspaces)
      : tape_(program.tape),
        cut_(cut),
        pieces_(pieces),
        memories_(memories),
        workspaces_(workspaces) {}

  DeviceTasks make() {
    add_tasks();
    made_.edges = TaskEdges(made_.tasks.size());
    note_memory();
    add_edges();
    return std::move(made_);
  }

 private:
  PieceId maker(ValueId value) const { return cut_.piece_of[tape_.producer(value)]; }
  const DeviceMemory& memory(int device) const {
    return memories_[static_cast<std::size_t>(device)];
  }

  /// Adds pieces level by level, and the transfers of a level after all its pieces.
  void add_tasks() {
    std::map<std::pair<PieceId, int>, std::set<ValueId>> sent;  // by sender and device
    for (PieceId reader = 0; reader < pieces_.size(); ++reader) {
      const int to = cut_.pieces[reader].device;
      for (const ValueId value : pieces_[reader].arguments) {
        if (cut_.pieces[maker(value)].device != to) sent[{maker(value), to}].insert(value);
      }
    }
    auto transfer = sent.begin();
    for (PieceId piece = 0; piece < pieces_.size(); ++piece) {
      const DeviceCut::At& at = cut_.pieces[piece];
      task_of_piece_.push_back(static_cast<std::uint32_t>(made_.tasks.size()));
      made_.tasks.push_back({.device = at.device, .piece = piece});
      if (piece + 1 < pieces_.size() && cut_.pieces[piece + 1].level == at.level) continue;
      for (; transfer != sent.end() && transfer->first.first <= piece; ++transfer) {
        const auto& [sender, to] = transfer->first;
        DeviceTask task{.device = to, .sender = cut_.pieces[sender].device};
        for (const ValueId value : transfer->second) {
          task.moves.push_back({value, tape_.bytes(value),
                                memory(task.sender).places.at(value).offset,
                                memory(to).places.at(value).offset});
        }
        transfers_[{sender, to}] = static_cast<std::uint32_t>(made_.tasks.size());
        made_.tasks.push_back(std::move(task));
      }
    }
  }

  /// Notes which tasks write and read each part of the devices' memory.
  void note_memory() {
    std::vector<std::size_t> first_of;  // by device: index of its first group
    for (std::size_t d = 0; d < memories_.size(); ++d) {
      first_of.push_back(occupied_.size());
      for (const Interval& group : memories_[d].groups) {
        occupied_.push_back({static_cast<int>(d), group.offset, group.offset + group.bytes,
                             group.first, group.last});
      }
    }
    const auto at = [&](int device, ValueId value) -> Occupied& {
      const auto d = static_cast<std::size_t>(device);
      return occupied_[first_of[d] + memories_[d].places.at(value).group];
    };
    for (PieceId reader = 0; reader < pieces_.size(); ++reader) {
      const int to = cut_.pieces[reader].device;
      const std::uint32_t task = task_of_piece_[reader];
      for (const ValueId value : pieces_[reader].arguments) {
        const PieceId from = maker(value);
        Occupied& own = at(to, value);
        own.readers.insert(task);
        if (cut_.pieces[from].device == to) {
          own.writers.insert(task_of_piece_[from]);
          continue;
        }
        const std::uint32_t transfer = transfers_.at({from, to});
        own.writers.insert(transfer);
        Occupied& there = at(cut_.pieces[from].device, value);
        there.writers.insert(task_of_piece_[from]);
        there.readers.insert(transfer);
      }
    }
    for (PieceId piece = 0; piece < pieces_.size(); ++piece) {
      if (workspaces_[piece].bytes == 0) continue;
      const DeviceCut::At& at_piece = cut_.pieces[piece];
      const std::uint32_t time = DeviceTime::of_piece(at_piece.level);
      const Bytes begin = workspaces_[piece].begin;
      occupied_.push_back({at_piece.device,
                           begin,
                           begin + workspaces_[piece].bytes,
                           time,
                           time,
                           {task_of_piece_[piece]}});
    }
  }

  void add_edges() {
    std::map<int, std::uint32_t> before;  // the last piece so far, by device
    for (const std::uint32_t task : task_of_piece_) {
      const int device = made_.tasks[task].device;
      if (before.contains(device)) made_.edges.add(before[device], task);
      before[device] = task;
    }
    for (const Occupied& place : occupied_) add_edges(place.writers, place.readers);
    for (const Occupied& a : occupied_) {
      for (const Occupied& b : occupied_) {
        const bool meet = a.device == b.device && a.begin < b.end && b.begin < a.end;
        if (!meet || a.last >= b.first) continue;
        add_edges(a.writers, b.writers);
        add_edges(a.readers, b.writers);
      }
    }
  }

  void add_edges(const std::set<std::uint32_t>& before, const std::set<std::uint32_t>& after) {
    for (const std::uint32_t first : before) {
      for (const std::uint32_t second : after) made_.edges.add(first, second);
    }
  }

  const Tape& tape_;
  const DeviceCut& cut_;
  std::span<const Piece> pieces_;
  std::span<const DeviceMemory> memories_;
  std::span<const Workspace> workspaces_;
  DeviceTasks made_;
  std::vector<std::uint32_t> task_of_piece_;
  std::map<std::pair<PieceId, int>, std::uint32_t> transfers_;  // by sender and device
  std::vector<Occupied> occupied_;
};

}  // namespace

Bytes DeviceTask::bytes() const {
  return std::accumulate(moves.begin(), moves.end(), Bytes{0},
                         [](Bytes sum, const Move& move) { return sum + move.bytes; });
}

DeviceTasks tasks_of(const RecordedProgram& program, const DeviceCut& cut,
                     std::span<const Piece> pieces, std::span<const DeviceMemory> memories,
                     std::span<const Workspace> workspaces) {
  return TaskMaker(program, cut, pieces, memories, workspaces).make();
}

}  // namespace palimpsest
