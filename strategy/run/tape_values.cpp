#include "strategy/run/tape_values.h"

#include <algorithm>

namespace palimpsest {
namespace {

/// Gives value `k` of a list the storage of its place. Values with the same place share one buffer.
void give(Tape& tape, const Executor& executor, std::span<const Instructions::Held> list,
          std::uint32_t k) {
  const Instructions& instructions = executor.instructions();
  const auto [value, place, before] = list[k];
  if (instructions.is_source(place)) {
    const ValueId source = instructions.sources()[place - instructions.source_place(0)];
    if (source != value) tape.set_buffer(value, tape.buffer(source));
  } else {
    tape.set_buffer(value, before < k ? tape.buffer(list[before].value) : executor.storage(place));
  }
}

}  // namespace

void take_values(Tape& tape, Executor& executor, const Arena* arena) {
  const Instructions& instructions = executor.instructions();
  const std::span<const ValueId> sources = instructions.sources();
  for (std::size_t k = 0; k < sources.size(); ++k) {
    executor.set_source(k, tape.buffer(sources[k]));
  }
  const std::span<const Instructions::Held> present = instructions.present();
  for (std::uint32_t k = 0; k < present.size(); ++k) {
    const auto [value, place, before] = present[k];
    const Buffer buffer = tape.buffer(value);
    tape.drop(value);
    if (before < k || place == instructions.empty_place()) continue;
    if (arena == nullptr) {
      executor.set_present(place, buffer);
    } else {
      const Interval& interval = instructions.intervals()[place];
      std::copy_n(buffer.get(), interval.bytes, arena->at(interval.offset));
    }
  }
}

void give_results(Tape& tape, Executor& executor) {
  const std::span<const Instructions::Held> results = executor.instructions().results();
  for (std::uint32_t k = 0; k < results.size(); ++k) give(tape, executor, results, k);
  executor.forget();
}

void give_back(Tape& tape, Executor& executor) {
  const Instructions& instructions = executor.instructions();
  const std::span<const Instructions::Held> present = instructions.present();
  for (std::uint32_t k = 0; k < present.size(); ++k) {
    const Instructions::Place place = present[k].place;
    if (place != instructions.empty_place() && !executor.is_intact(place)) continue;
    give(tape, executor, present, k);
  }
  executor.forget();
}

}  // namespace palimpsest
