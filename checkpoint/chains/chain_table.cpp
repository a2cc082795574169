#include "checkpoint/chains/chain_table.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

namespace palimpsest {

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

double seconds(const ChainStage::Record& record) { return record.forward + record.backward; }

}  // namespace

double fastest_record(const ChainStage& stage) {
  double least = std::numeric_limits<double>::infinity();
  for (const ChainStage::Record& record : stage.records) least = std::min(least, seconds(record));
  return least;
}

ChainTable::ChainTable(std::vector<ChainStage> stages, Bytes slot, std::size_t slots,
                       Rounding rounding)
    : stages_(std::move(stages)),
      slot_(slot),
      width_(slots + 1),
      rounding_(rounding),
      cells_(stages_.size() * (stages_.size() + 1) / 2),
      rows_(cells_.size() * width_, infinity) {
  // Columns are filled a few at a time, so that what all of them read is read once.
  constexpr std::size_t block = 8;
  std::array<std::vector<Choice>, block> choices;
  for (std::size_t begin = 0; begin < stages_.size(); begin += block) {
    const std::size_t end = std::min(begin + block, stages_.size());
    for (std::size_t s = end; s-- > 0;) {
      const std::size_t first = std::max(s, begin);
      const std::size_t records = stages_[s].records.size();
      for (std::size_t t = first; t < end; ++t) {
        list_choices(s, t, choices[t - begin]);
        find_ends(s, t, choices[t - begin]);
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
    choices.push_back({true, r, seconds(records[r]) - fastest, peak, records[r].saved});
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
  if (bytes < ends.smallest) return infinity;
  if (bytes >= ends.largest) return 0;
  const auto m = static_cast<std::size_t>(bytes / slot_);
  const float counted = row(s, t)[std::min(m, width_ - 1)];
  return rounding_ == Rounding::up ? std::min(counted, ends.at_smallest) : counted;
}

std::size_t ChainTable::slots(Bytes bytes) const {
  return static_cast<std::size_t>((bytes + (rounding_ == Rounding::up ? slot_ - 1 : 0)) / slot_);
}

/// What is known without slots.
void ChainTable::find_ends(std::size_t s, std::size_t t, std::span<const Choice> choices) {
  Cell& ends = cells_[cell(s, t)];
  for (const Choice& choice : choices) {
    ends.smallest = std::min(ends.smallest, smallest_with(s, t, choice));
    if (!choice.record || choice.extra > 0) continue;
    const Bytes rest = s < t ? choice.held + largest(s + 1, t) : 0;
    ends.largest = std::min(ends.largest, std::max(choice.peak, rest));
  }
  ends.first = slots(ends.smallest);
  ends.last = std::min(slots(ends.largest), width_);
  float* const out = &rows_[cell(s, t) * width_];
  std::fill(out + ends.last, out + width_, 0.0f);
}

void ChainTable::relax(std::size_t s, std::size_t t, const Choice& choice) {
  float* const out = &rows_[cell(s, t) * width_];
  const Cell& ends = cells_[cell(s, t)];
  const std::size_t last = ends.last;
  const std::size_t next = choice.record ? s + 1 : choice.index;
  const std::size_t held = slots(choice.held);
  const auto extra = static_cast<float>(choice.extra);
  std::size_t from = std::max(ends.first, slots(choice.peak));
  if (next <= t) from = std::max(from, held + cells_[cell(next, t)].first);
  if (from >= last) return;
  if (!choice.record) {
    const float* const right = row(next, t);
    const float* const left = row(s, next - 1);
    // Rows fall: where the one at hand is below the least this choice can give, it stays.
    const float best = extra + right[last - 1 - held] + left[last - 1];
    const auto end = static_cast<std::size_t>(
        std::partition_point(out + from, out + last, [best](float x) { return x > best; }) - out);
    // The loop that everything else is about: it is to be vectorised.
    for (std::size_t m = from; m < end; ++m) {
      const float total = extra + right[m - held] + left[m];
      out[m] = total < out[m] ? total : out[m];
    }
  } else if (next <= t) {
    const float* const right = row(next, t);
    for (std::size_t m = from; m < last; ++m) {
      const float total = extra + right[m - held];
      out[m] = total < out[m] ? total : out[m];
    }
  } else {
    for (std::size_t m = from; m < last; ++m) out[m] = std::min(out[m], extra);
  }
}

/// What the smallest memory, to the byte, makes possible is possible with all that is more.
void ChainTable::finish(std::size_t s, std::size_t t, std::span<const Choice> choices) {
  if (rounding_ == Rounding::down) return;
  Cell& ends = cells_[cell(s, t)];
  double seconds = infinity;
  for (const Choice& choice : choices) {
    if (smallest_with(s, t, choice) > ends.smallest) continue;
    seconds = std::min(seconds, least(s, t, ends.smallest, choice));
  }
  ends.at_smallest = static_cast<float>(seconds);
  float* const out = &rows_[cell(s, t) * width_];
  for (std::size_t m = ends.first; m < width_ && out[m] > ends.at_smallest; ++m) {
    out[m] = ends.at_smallest;
  }
}

}  // namespace palimpsest
