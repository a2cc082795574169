#include "checkpoint/chains/chain_table.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace palimpsest {

namespace {

constexpr float infinite = std::numeric_limits<float>::infinity();

double seconds_of(const ChainStage::Record& record) { return record.forward + record.backward; }

}  // namespace

double fastest_record(const ChainStage& stage) {
  double least = std::numeric_limits<double>::infinity();
  for (const ChainStage::Record& record : stage.records)
    least = std::min(least, seconds_of(record));
  return least;
}

ChainTable::ChainTable(std::vector<ChainStage> stages, Bytes slot, std::size_t slots,
                       Rounding rounding)
    : stages_(std::move(stages)),
      slot_(slot),
      width_(slots + 1),
      rounding_(rounding),
      cells_(stages_.size() * (stages_.size() + 1) / 2) {
  find_ends();
  // Columns are filled a few at a time, so that their common inputs are read only once.
  constexpr std::size_t block = 8;
  std::array<std::vector<Choice>, block> choices;
  for (std::size_t begin = 0; begin < stages_.size(); begin += block) {
    const std::size_t end = std::min(begin + block, stages_.size());
    for (std::size_t s = end; s-- > 0;) {
      const std::size_t first = std::max(s, begin);
      const std::size_t records = stages_[s].records.size();
      for (std::size_t t = first; t < end; ++t) {
        list_choices(s, t, choices[t - begin]);
        for (std::size_t r = 0; r < records; ++r) relax(s, t, choices[t - begin][r]);
      }
      for (std::size_t k = s + 1; k <= begin; ++k) {
        for (std::size_t t = first; t < end; ++t) {
          relax(s, t, choices[t - begin][records + k - s - 1]);
        }
      }
      for (std::size_t t = first; t < end; ++t) {
        for (std::size_t k = first + 1; k <= t; ++k) {
          relax(s, t, choices[t - begin][records + k - s - 1]);
        }
        finish(s, t, choices[t - begin]);
      }
    }
  }
}

void ChainTable::list_choices(std::size_t s, std::size_t t, std::vector<Choice>& choices) const {
  choices.clear();
  const Bytes gradient = stages_[t].gradient;
  const std::vector<ChainStage::Record>& records = stages_[s].records;
  const double fastest = fastest_record(stages_[s]);
  for (std::uint32_t r = 0; r < records.size(); ++r) {
    const Bytes peak = std::max(gradient + records[r].forward_peak, records[r].backward_peak);
    choices.push_back({true, r, seconds_of(records[r]) - fastest, peak, records[r].saved});
  }
  double passed = 0;
  Bytes peak = 0;
  for (std::size_t k = s + 1; k <= t; ++k) {
    const Bytes input = k - 1 > s ? stages_[k - 2].output : 0;
    passed += stages_[k - 1].forward;
    peak = std::max(peak, gradient + input + stages_[k - 1].forward_peak);
    const Bytes output = stages_[k - 1].output;
    choices.push_back({false, static_cast<std::uint32_t>(k), passed, peak, output});
  }
}

Bytes ChainTable::smallest_with(std::size_t s, std::size_t t, const Choice& choice) const {
  const std::size_t next = choice.record ? s + 1 : choice.index;
  Bytes bytes = choice.peak;
  if (next <= t) bytes = std::max(bytes, choice.held + smallest(next, t));
  if (!choice.record) bytes = std::max(bytes, smallest(s, next - 1));
  return bytes;
}

double ChainTable::least(std::size_t s, std::size_t t, Bytes bytes, const Choice& choice) const {
  const std::size_t next = choice.record ? s + 1 : choice.index;
  double total = choice.extra;
  if (next <= t) total += least(next, t, bytes - choice.held);
  if (!choice.record) total += least(s, next - 1, bytes);
  return total;
}

float ChainTable::least(std::size_t s, std::size_t t, Bytes bytes) const {
  const Cell& ends = cells_[cell(s, t)];
  if (bytes < ends.smallest) return infinite;
  if (bytes >= ends.largest) return 0;
  const std::size_t m = std::min(static_cast<std::size_t>(bytes / slot_), width_ - 1);
  if (m < ends.first) return rounding_ == Rounding::up ? ends.at_smallest : infinite;
  return ends.at(m);
}

std::size_t ChainTable::slots(Bytes bytes) const {
  return static_cast<std::size_t>((bytes + (rounding_ == Rounding::up ? slot_ - 1 : 0)) / slot_);
}

/// Computes the values that need no slots, and from them the position of the rows.
void ChainTable::find_ends() {
  std::vector<Choice> choices;
  for (std::size_t t = 0; t < stages_.size(); ++t) {
    std::size_t size = 0;
    for (std::size_t s = t + 1; s-- > 0;) {
      Cell& ends = cells_[cell(s, t)];
      list_choices(s, t, choices);
      for (const Choice& choice : choices) {
        ends.smallest = std::min(ends.smallest, smallest_with(s, t, choice));
        if (!choice.record || choice.extra > 0) continue;
        const Bytes rest = s < t ? choice.held + largest(s + 1, t) : 0;
        ends.largest = std::min(ends.largest, std::max(choice.peak, rest));
      }
      ends.first = std::min(slots(ends.smallest), width_);
      ends.last = std::clamp(slots(ends.largest), ends.first, width_);
      size += ends.last - ends.first;
    }
    columns_.emplace_back(size, infinite);
    float* row = columns_.back().data();
    for (std::size_t s = 0; s <= t; ++s) {
      Cell& ends = cells_[cell(s, t)];
      ends.row = row;
      row += ends.last - ends.first;
    }
  }
}

void ChainTable::relax(std::size_t s, std::size_t t, const Choice& choice) {
  static constexpr Cell nothing;
  const Cell& now = cells_[cell(s, t)];
  const std::size_t next = choice.record ? s + 1 : choice.index;
  const Cell& right = next <= t ? cells_[cell(next, t)] : nothing;
  const Cell& left = choice.record ? nothing : cells_[cell(s, next - 1)];
  const std::size_t held = next <= t ? slots(choice.held) : 0;
  const std::size_t from =
      std::max({now.first, slots(choice.peak), held + right.first, left.first});
  if (from >= now.last) return;
  const auto extra = static_cast<float>(choice.extra);
  float* const out = now.row;  // from `now.first` on
  // Rows decrease. Where the current value is below the least that this choice can give, it stays.
  const float best = extra + right.at(now.last - 1 - held) + left.at(now.last - 1);
  const auto end =
      now.first + static_cast<std::size_t>(
                      std::partition_point(out + (from - now.first), out + (now.last - now.first),
                                           [best](float x) { return x > best; }) -
                      out);
  // Almost all time is spent in these loops. They are written to be vectorised.
  const auto lower = [=, first = now.first](std::size_t begin, std::size_t stop, auto total) {
    begin = std::max(begin, from);
    stop = std::min(stop, end);
    for (std::size_t m = begin; m < stop; ++m) {
      const float least = total(m);
      out[m - first] = least < out[m - first] ? least : out[m - first];
    }
  };
  const auto of = [](const Cell& cell, std::size_t before) {
    return [row = cell.row, first = cell.first + before](std::size_t m) { return row[m - first]; };
  };
  const auto of_right = of(right, held);
  const auto of_left = of(left, 0);
  const std::size_t both = std::min(held + right.last, left.last);
  const std::size_t any = std::max(held + right.last, left.last);
  lower(0, both, [=](std::size_t m) { return extra + of_right(m) + of_left(m); });
  if (left.last == both) {
    lower(both, any, [=](std::size_t m) { return extra + of_right(m); });
  } else {
    lower(both, any, [=](std::size_t m) { return extra + of_left(m); });
  }
  lower(any, end, [=](std::size_t) { return extra; });
}

/// A plan for the smallest memory, exact to the byte, is also possible with more memory.
void ChainTable::finish(std::size_t s, std::size_t t, std::span<const Choice> choices) {
  if (rounding_ == Rounding::down) return;
  Cell& ends = cells_[cell(s, t)];
  double seconds = infinite;
  for (const Choice& choice : choices) {
    if (smallest_with(s, t, choice) > ends.smallest) continue;
    seconds = std::min(seconds, least(s, t, ends.smallest, choice));
  }
  ends.at_smallest = static_cast<float>(seconds);
  for (std::size_t m = ends.first; m < ends.last; ++m) {
    float& least = ends.row[m - ends.first];
    least = std::min(least, ends.at_smallest);
  }
}

}  // namespace palimpsest
