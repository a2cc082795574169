#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "autodiff/error.h"
#include "strategy/loops/held_states.h"

// The part of `HeldStates` that a loop with a journal needs.

namespace palimpsest {

using Kind = JournalEntry::Kind;

void HeldStates::keep_account(HeldTable& table, bool is_given, Remake remake) {
  table_ = &table;
  are_plain_ = false;
  remake_ = std::move(remake);
  is_table_given_ = is_given;
  if (!is_given || !layout_.disk) return;
  in_use_ = table.in_use;
  blocks_[in_use_].step = table.block().step;
}

/// State `action.step` is in the slot now, and on disk if it belongs there.
void HeldStates::note(const ChainAction& action) {
  if (table_ == nullptr) return;
  const bool is_on_disk = action.tier == ChainAction::Tier::disk;
  if (is_in_block(action) && !is_on_disk) return;  // `save` looks at the block itself
  JournaledState state{.step = action.step};
  if (is_on_disk) state.extent = write(action.step, blocks_[in_use_].where);
  table_->set(table_->at(action.tier, action.slot), state);
}

Extent HeldStates::write(std::uint32_t step, const Addresses& state) {
  const std::vector<Bytes>& sizes = components_.codec().block().sizes;
  Bytes bytes = 0;
  for (const Bytes size : sizes) bytes += size;
  return table_->file().write(
      bytes,
      [&](const StoredObject::Sink& sink) {
        for (std::size_t i = 0; i < sizes.size(); ++i) {
          sink({state[i], static_cast<std::size_t>(sizes[i])});
        }
      },
      "the state before step " + std::to_string(step));
}

bool HeldStates::read(const Extent& extent, const Addresses& to) {
  const std::vector<Bytes>& sizes = components_.codec().block().sizes;
  return table_->file().read(extent, [&](const StoredObject::Source& source) {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      source({to[i], static_cast<std::size_t>(sizes[i])});
    }
  });
}

void HeldStates::save(std::uint64_t left, std::vector<JournalEntry>& entries) {
  for (const auto tier : {HeldTable::Tier::memory, HeldTable::Tier::disk}) {
    std::vector<JournaledState>& states = table_->tier(tier);
    for (std::uint32_t number = 0; number < states.size(); ++number) {
      JournaledState& held = states[number];
      if (held.step == JournaledState::none) continue;
      if (held.step >= left) {
        table_->drop(held);
        continue;
      }
      const bool is_on_disk = tier == HeldTable::Tier::disk;
      if (!held.extent && !is_on_disk) held.extent = write(held.step, slot(number));
      entries.push_back({.kind = is_on_disk ? Kind::on_disk : Kind::in_memory,
                         .number = number,
                         .step = held.step,
                         .extent = held.extent});
    }
  }
  const std::uint32_t step = layout_.disk ? blocks_[in_use_].step : std::uint32_t{none};
  JournaledState& block = table_->block();
  if (step == none || step >= left || step == 0) return;
  if (block.step != step || !block.extent) {
    const std::vector<JournaledState>& on_disk = table_->tier(HeldTable::Tier::disk);
    const auto same = std::ranges::find(on_disk, step, &JournaledState::step);
    const bool is_there = same != on_disk.end() && same->extent;
    if (is_there) table_->file().hold(same->extent);
    table_->set(block, {.step = step,
                        .extent = is_there ? same->extent : write(step, blocks_[in_use_].where)});
  }
  entries.push_back({.kind = Kind::block, .step = step, .extent = block.extent});
}

bool HeldStates::load(const std::vector<JournalEntry>& entries) {
  table_->clear();
  for (const JournalEntry& entry : entries) {
    const JournaledState state{.step = static_cast<std::uint32_t>(entry.step),
                               .extent = entry.extent};
    const bool is_on_disk = entry.kind == Kind::on_disk;
    if (entry.kind == Kind::block) {
      table_->block() = state;
    } else if (entry.kind == Kind::in_memory || is_on_disk) {
      const auto tier = is_on_disk ? HeldTable::Tier::disk : HeldTable::Tier::memory;
      table_->at(tier, entry.number) = state;
    } else {
      continue;
    }
    table_->file().hold(entry.extent);
  }
  in_use_ = 0;
  is_table_given_ = true;
  struct Damaged {
    JournaledState* held;
    Addresses where;
  };
  std::vector<Damaged> damaged;
  const auto take = [&](JournaledState& held, const Addresses& where) {
    if (held.step != JournaledState::none && !read(held.extent, where))
      damaged.push_back({&held, where});
  };
  std::vector<JournaledState>& in_memory = table_->tier(HeldTable::Tier::memory);
  for (std::uint32_t number = 1; number < in_memory.size(); ++number) {
    take(in_memory[number], slot(number));
  }
  if (layout_.disk) {
    take(table_->block(), blocks_[0].where);
    blocks_[0].step = table_->block().step;
  }
  if (!damaged.empty() && !components_.codec().is_exact()) return false;
  // From the first one on, so that each is made from intact states before it.
  std::ranges::sort(damaged, {}, [](const Damaged& each) { return each.held->step; });
  for (const Damaged& each : damaged) repair(*each.held, each.where);
  return true;
}

void HeldStates::make_again(std::uint32_t step, const Addresses& to) {
  std::uint32_t from = 0;
  Addresses state = first_;
  const std::vector<JournaledState>& in_memory = table_->tier(HeldTable::Tier::memory);
  for (std::uint32_t number = 1; number < in_memory.size(); ++number) {
    const std::uint32_t held = in_memory[number].step;
    if (held == none || held > step || held <= from) continue;
    from = held;
    state = slot(number);
  }
  std::vector<JournaledState> on_disk = table_->tier(HeldTable::Tier::disk);
  std::ranges::sort(on_disk, std::greater(), &JournaledState::step);
  for (const JournaledState& held : on_disk) {
    if (held.step == none || held.step > step || held.step <= from) continue;
    if (!read(held.extent, to)) continue;
    from = held.step;
    state = to;
    break;
  }
  remake_(from, state, step, to);
}

void HeldStates::repair(JournaledState& held, const Addresses& to) {
  const std::uint32_t step = held.step;
  const std::string what =
      table_->file().path() + ": the state before step " + std::to_string(step) + " is damaged";
  if (!components_.codec().is_exact()) {
    throw FileError("[" + std::string(components_.loop().body().name()) + "] " + what +
                    ", and LoopOptions::codec rounds states, so that it cannot be made again "
                    "(recorded at " +
                    to_string(components_.loop().body().where) +
                    "); check the disk, and remove the directory of the journal to start afresh");
  }
  held.step = JournaledState::none;  // no source for itself
  try {
    make_again(step, to);
  } catch (...) {
    held.step = step;  // a record that the stop adds has it
    throw;
  }
  const Extent again = write(step, to);
  const bool is_same = again.hash == held.extent.hash;
  table_->set(held, {.step = step, .extent = again});
  if (!is_same) {
    throw ArgumentError(components_.loop().body().name(),
                        what +
                            ", and its steps make another one when they run again; let the body "
                            "record the same operations again, and draw random numbers only "
                            "with operations",
                        components_.loop().body().where);
  }
  ++repaired_;
}

}  // namespace palimpsest
