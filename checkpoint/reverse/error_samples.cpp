#include "checkpoint/reverse/error_samples.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

#include "autodiff/error.h"
#include "checkpoint/chains/binomial.h"
#include "checkpoint/reverse/journal_bytes.h"
#include "checkpoint/reverse/kept_states.h"

namespace palimpsest {
namespace {

/// States kept while a window is reversed from its exact state, in addition to that one.
constexpr std::uint32_t replay_states = 2;

void append(const StoredObject& object, std::vector<std::byte>& to) {
  object.save(
      [&](std::span<const std::byte> piece) { to.insert(to.end(), piece.begin(), piece.end()); });
}

void load_object(std::span<const std::byte> from, StoredObject& object) {
  object.load(std::ssize(from), [&](std::span<std::byte> piece) {
    std::copy_n(from.data(), piece.size(), piece.data());
    from = from.subspan(piece.size());
  });
}

/// The bytes of an object, of which the first `header` are sizes of ranges.
struct ObjectBytes {
  std::uint64_t header = 0;
  std::uint64_t size = 0;
  std::span<const std::byte> bytes = {};
};

/// Copies of several objects follow each other, each after these two numbers.
constexpr std::size_t prefix_bytes = 2 * sizeof(std::uint64_t);

void append_with_size(const StoredObject& object, std::vector<std::byte>& to) {
  const std::size_t first = to.size();
  to.resize(first + prefix_bytes);
  append(object, to);
  const std::uint64_t sizes[] = {static_cast<std::uint64_t>(object.header_bytes()),
                                 to.size() - first - prefix_bytes};
  std::memcpy(to.data() + first, sizes, prefix_bytes);
}

/// Takes the next object off the copies.
ObjectBytes take_object(std::span<const std::byte>& from) {
  ObjectBytes object;
  std::memcpy(&object.header, from.data(), sizeof object.header);
  std::memcpy(&object.size, from.data() + sizeof object.header, sizeof object.size);
  object.bytes = from.subspan(prefix_bytes, object.size);
  from = from.subspan(prefix_bytes + object.size);
  return object;
}

/// Calls `f` with the index and value of each number in the bytes of an object.
template <class F>
void each_number(const StoredObject& object, const ObjectBytes& copy, const F& f) {
  const std::span<const std::byte> bytes = copy.bytes.subspan(copy.header);
  const auto visit = [&]<class Number>(Number number) {
    for (std::size_t i = 0; i < bytes.size() / sizeof number; ++i) {
      std::memcpy(&number, bytes.data() + i * sizeof number, sizeof number);
      f(i, static_cast<double>(number));
    }
  };
  if (object.dtype() == DType::f64) visit(double{});
  if (object.dtype() == DType::f32) visit(float{});
}

double norm_of(const StoredObject& object) {
  std::vector<std::byte> bytes;
  append_with_size(object, bytes);
  std::span<const std::byte> from = bytes;
  double squares = 0;
  each_number(object, take_object(from),
              [&](std::size_t, double number) { squares += number * number; });
  return std::sqrt(squares);
}

}  // namespace

ErrorSamples::ErrorSamples(int samples, std::optional<std::uint64_t> steps, std::uint64_t segment,
                           ReverseChain& chain, ExtentFile* file, Meter meter)
    : most_(samples), segment_(segment), chain_(chain), file_(file), meter_(std::move(meter)) {
  const std::uint64_t even = steps ? *steps / static_cast<std::uint64_t>(samples) : 1;
  distance_ = std::max<std::uint64_t>(even / segment, 1) * segment;
  // The middle of each stretch, so that the windows are spread evenly.
  offset_ = distance_ / 2 / segment * segment;
  objects_.push_back({"adjoint", chain.adjoint(), {}});
  for (const NamedObject& object : chain.accumulated()) {
    objects_.push_back({object.name, object.object.get(), {}});
  }
}

ErrorSamples::~ErrorSamples() {
  for (Sample& sample : samples_) drop(sample);
}

Bytes ErrorSamples::copies_bytes(Bytes largest_state, std::span<const Bytes> accumulated) {
  const Bytes objects = std::accumulate(accumulated.begin(), accumulated.end(), largest_state);
  // Three copies and two of f64 for each number, with room for a vector to grow.
  return 9 * objects;
}

Bytes ErrorSamples::states_bytes(int samples, Bytes largest_state, bool has_file) {
  const Bytes states = (has_file ? 0 : samples) + Bytes{replay_states};
  return states * KeptStates::memory_of(largest_state);
}

void ErrorSamples::drop(Sample& sample) {
  if (file_ != nullptr) file_->release(sample.extent);
  sample = {};
}

bool ErrorSamples::is_place(std::uint64_t step) const { return step % distance_ == offset_; }

void ErrorSamples::visit(std::uint64_t step) {
  if (!is_place(step)) return;
  if (std::ssize(samples_) == most_) {
    // The chain is longer than expected: keep every other one.
    distance_ *= 2;
    std::vector<Sample> stay;
    for (Sample& sample : samples_) {
      if (is_place(sample.first)) {
        stay.push_back(std::exchange(sample, {}));
      } else {
        drop(sample);
      }
    }
    samples_ = std::move(stay);
    if (std::ssize(samples_) == most_ || !is_place(step)) return;
  }
  Sample& sample = samples_.emplace_back();
  const StoredObject& state = chain_.state();
  sample.first = step;
  sample.bytes = state.bytes();
  if (file_ != nullptr) {
    sample.extent = file_->write(
        sample.bytes, [&](const StoredObject::Sink& sink) { state.save(sink); },
        "the state before step " + std::to_string(step));
    return;
  }
  sample.memory = meter_.allocate(sample.bytes);
  std::byte* next = sample.memory.get();
  state.save([&](std::span<const std::byte> piece) {
    std::ranges::copy(piece, next);
    next += piece.size();
  });
}

void ErrorSamples::end_sweep(std::uint64_t length, std::uint64_t kept) {
  length_ = length;
  // States that are made from the same kept state have related errors. So a window has several
  // kept states, if it can.
  const std::uint64_t wanted = 2 * length / std::max<std::uint64_t>(kept, 1);
  const std::uint64_t most = std::max<std::uint64_t>(distance_ / 3, 1);
  window_ = std::clamp<std::uint64_t>(wanted, 1, most);
  window_ = (window_ + segment_ - 1) / segment_ * segment_;
  reversed_to(length);
}

void ErrorSamples::copy_objects(std::vector<std::byte>& to) const {
  to.clear();
  for (const Object& object : objects_) append_with_size(*object.object, to);
}

void ErrorSamples::put_objects(std::span<const std::byte> from) {
  for (const Object& object : objects_) {
    load_object(take_object(from).bytes, *object.object);
  }
}

void ErrorSamples::reversed_to(std::uint64_t left) {
  // No step of the chain follows the last state.
  while (begun_ == 0 && !samples_.empty() && samples_.back().first >= left) {
    drop(samples_.back());
    samples_.pop_back();
  }
  if (samples_.empty() || window_ == 0) return;
  const Sample& sample = samples_.back();
  const std::uint64_t last = std::min(sample.first + window_, length_);
  if (begun_ == 0 && left <= last && left > sample.first) {
    begun_ = left;
    copy_objects(before_);
  }
  if (begun_ == 0 || left != sample.first) return;
  std::vector<std::byte> lossy;
  copy_objects(lossy);
  put_objects(before_);
  replay(sample, begun_);
  compare(lossy);
  put_objects(lossy);
  drop(samples_.back());
  samples_.pop_back();
  begun_ = 0;
  if (samples_.empty()) before_ = {};
  // The window before may end where this one begins.
  reversed_to(left);
}

bool ErrorSamples::load_exact(const Sample& sample) {
  StoredObject& state = chain_.state();
  if (sample.memory != nullptr) {
    load_object({sample.memory.get(), static_cast<std::size_t>(sample.bytes)}, state);
    return true;
  }
  return file_->is_intact(sample.extent) &&
         file_->read(sample.extent,
                     [&](const StoredObject::Source& source) { state.load(sample.bytes, source); });
}

void ErrorSamples::replay(const Sample& sample, std::uint64_t last) {
  using Kind = ChainAction::Kind;
  const auto units = static_cast<std::uint32_t>((last - sample.first + segment_ - 1) / segment_);
  const auto step_of = [&](std::uint32_t unit) {
    return std::min(sample.first + unit * segment_, last);
  };
  const auto take_exact = [&] {
    if (load_exact(sample)) return;
    throw FileError("[reverse] " + file_->path() + ": the state before step " +
                    std::to_string(sample.first) + " is damaged; check the disk, and run again");
  };
  Buffer states[replay_states];
  Bytes bytes[replay_states] = {};
  take_exact();
  std::uint64_t current = sample.first;
  BinomialSchedule schedule(units, 1 + replay_states);
  for (auto action = schedule.next(); action; action = schedule.next()) {
    const std::uint64_t step = step_of(action->step);
    const bool is_first = action->slot == 0;
    switch (action->kind) {
      case Kind::store: {
        if (is_first) break;
        Buffer& memory = states[action->slot - 1];
        bytes[action->slot - 1] = chain_.state().bytes();
        memory = nullptr;
        memory = meter_.allocate(chain_.state().bytes());
        std::byte* next = memory.get();
        chain_.state().save([&](std::span<const std::byte> piece) {
          std::ranges::copy(piece, next);
          next += piece.size();
        });
        break;
      }
      case Kind::restore:
        if (is_first) {
          take_exact();
        } else {
          load_object(
              {states[action->slot - 1].get(), static_cast<std::size_t>(bytes[action->slot - 1])},
              chain_.state());
        }
        current = step;
        break;
      case Kind::advance:
        for (; current < step; ++current, ++steps_advanced_) chain_.advance(current);
        break;
      case Kind::reverse:
        chain_.reverse(step, step_of(action->step + 1));
    }
  }
}

void ErrorSamples::compare(std::span<const std::byte> lossy) {
  ++compared_;
  for (Object& object : objects_) {
    std::vector<std::byte> copy;
    append_with_size(*object.object, copy);
    std::span<const std::byte> exact = copy;
    const bool is_adjoint = &object == &objects_.front();
    std::vector<double> differences;
    double exact_squares = 0;
    each_number(*object.object, take_object(exact), [&](std::size_t, double number) {
      differences.push_back(number);
      exact_squares += number * number;
    });
    // Where one of the two has more numbers than the other, these are the differences.
    each_number(*object.object, take_object(lossy), [&](std::size_t i, double number) {
      if (i >= differences.size()) differences.resize(i + 1);
      differences[i] -= number;
    });
    double squares = 0;
    for (const double difference : differences) squares += difference * difference;
    if (is_adjoint) {
      object.squares += exact_squares > 0 ? squares / exact_squares : 0;
    } else {
      object.squares += squares;
      object.sum.resize(std::max(object.sum.size(), differences.size()));
      for (std::size_t i = 0; i < differences.size(); ++i) object.sum[i] += differences[i];
    }
  }
}

std::vector<ObjectError> ErrorSamples::errors() const {
  std::vector<ObjectError> result;
  if (compared_ == 0) return result;
  const auto samples = static_cast<double>(compared_);
  const double windows = std::max(1.0, static_cast<double>(length_) / static_cast<double>(window_));
  const double adjoint = std::sqrt(windows * objects_.front().squares / samples);
  for (const Object& object : objects_) {
    if (object.object->dtype() == DType::boolean) continue;
    ObjectError& error = result.emplace_back();
    error.name = object.name;
    error.norm = norm_of(*object.object);
    if (&object == &objects_.front()) {
      error.error = adjoint * error.norm;
      continue;
    }
    double sum = 0;
    for (const double number : object.sum) sum += number * number;
    double squares = windows * object.squares / samples;
    if (compared_ > 1) {
      const double product = (sum - object.squares) / (samples * (samples - 1));
      squares += windows * (windows - 1) * std::max(product, 0.0);
    }
    const double passed_on = adjoint * error.norm;
    error.error = std::sqrt(squares + passed_on * passed_on / 2);
  }
  return result;
}

std::vector<JournalEntry> ErrorSamples::save() const {
  JournalWriter writer;
  for (const std::uint64_t number :
       {distance_, length_, window_, begun_, compared_, std::uint64_t{before_.size()}}) {
    writer.number(number);
  }
  for (const std::byte byte : before_) writer.value(byte);
  for (const Object& object : objects_) {
    writer.value(object.squares);
    writer.number(object.sum.size());
    for (const double number : object.sum) writer.value(number);
  }
  const std::vector<std::byte> bytes = writer.with_hash();
  std::vector<JournalEntry> entries{{.kind = JournalEntry::Kind::sample}};
  entries[0].extent = file_->write(
      std::ssize(bytes), [&](const StoredObject::Sink& sink) { sink(bytes); },
      "the estimate of errors");
  for (const Sample& sample : samples_) {
    entries.push_back({.kind = JournalEntry::Kind::sample,
                       .number = static_cast<std::uint32_t>(entries.size()),
                       .step = sample.first,
                       .extent = sample.extent});
  }
  return entries;
}

bool ErrorSamples::load(const std::vector<JournalEntry>& entries) {
  if (entries.empty()) return false;
  std::vector<std::byte> bytes(static_cast<std::size_t>(entries[0].extent.bytes));
  if (!file_->read(entries[0].extent, [&](const StoredObject::Source& source) { source(bytes); })) {
    return false;
  }
  JournalReader reader(bytes);
  for (std::uint64_t* number : {&distance_, &length_, &window_, &begun_, &compared_}) {
    *number = reader.number();
  }
  before_.resize(reader.number());
  for (std::byte& byte : before_) byte = reader.value<std::byte>();
  for (Object& object : objects_) {
    object.squares = reader.value<double>();
    object.sum.resize(reader.number());
    for (double& number : object.sum) number = reader.value<double>();
  }
  for (std::size_t i = 1; i < entries.size(); ++i) {
    file_->hold(entries[i].extent);
    samples_.push_back(
        {.first = entries[i].step, .bytes = entries[i].extent.bytes, .extent = entries[i].extent});
  }
  return true;
}

}  // namespace palimpsest
