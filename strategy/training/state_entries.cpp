#include "strategy/training/state_entries.h"

#include <algorithm>
#include <limits>

#include "autodiff/error.h"
#include "autodiff/number_text.h"
#include "autodiff/storage_version.h"

namespace palimpsest {

void StateEntries::refuse(const std::string& name, const std::string& problem) const {
  throw ArgumentError("[" + owner_ + "] entry '" + name + "' of the state " + problem);
}

const Tensor& StateEntries::tensor(const std::string& name, const ValueType& type) const {
  const auto found = state_->find(name);
  if (found == state_->end() || !found->second.defined()) {
    refuse(name, "is missing; load a state that was saved as a whole, by the same kind of object");
  }
  const ValueType& own = found->second.type();
  if (own == type) return found->second;
  const std::string message = "[" + owner_ + "] entry '" + name + "' of the state is " +
                              to_string(own) + " and must be " + to_string(type) +
                              "; load the state of the same model";
  if (own.shape != type.shape) throw ShapeError(message);
  throw DTypeError(message);
}

double StateEntries::number(const std::string& name) const {
  return tensor(name, {{}, DType::f64}).item();
}

std::int64_t StateEntries::integer(const std::string& name) const {
  return tensor(name, {{}, DType::i64}).item<std::int64_t>();
}

std::int64_t StateEntries::count(const std::string& name) const {
  const std::int64_t value = integer(name);
  if (value < 0)
    refuse(name, "is " + std::to_string(value) + "; load one that was saved by state()");
  return value;
}

std::uint32_t StateEntries::short_count(const std::string& name) const {
  const std::int64_t value = count(name);
  if (value > std::numeric_limits<std::uint32_t>::max()) {
    refuse(name, "is " + std::to_string(value) + "; load one that was saved by state()");
  }
  return static_cast<std::uint32_t>(value);
}

double StateEntries::not_negative_number(const std::string& name) const {
  const double value = number(name);
  if (!(value >= 0)) {
    refuse(name, "is " + number_text(value) + "; load one that was saved by state()");
  }
  return value;
}

void StateEntries::require_only(std::initializer_list<std::string_view> known) const {
  for (const auto& [name, tensor] : *state_) {
    if (std::ranges::find(known, name) == known.end()) {
      refuse(name, "is unknown; load a state that was saved by the same kind of object");
    }
  }
}

NamedTensors StateEntries::part(std::string_view prefix, bool exists,
                                std::initializer_list<std::string_view> known) const {
  NamedTensors part;
  for (const auto& [name, tensor] : *state_) {
    if (std::ranges::find(known, name) != known.end()) continue;
    if (!exists || !name.starts_with(prefix)) {
      refuse(name, "is unknown; load the state of an execution with the same precision");
    }
    part.emplace(name.substr(prefix.size()), tensor);
  }
  return part;
}

void add_part(NamedTensors& all, std::string_view prefix, const NamedTensors& part) {
  for (const auto& [name, tensor] : part) all.emplace(std::string(prefix) + name, tensor);
}

Tensor integer_entry(std::int64_t value) { return Tensor::from({value}, {}); }
Tensor number_entry(double value) { return Tensor::from({value}, {}); }

void copy_elements(const Tensor& from, const Tensor& to) {
  std::copy_n(from.raw(), from.bytes(), to.raw());
}

void write_elements(const Tensor& from, const Tensor& to, const char* call) {
  note_write(to, call);
  copy_elements(from, to);
}

}  // namespace palimpsest
