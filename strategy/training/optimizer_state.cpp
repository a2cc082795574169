#include <algorithm>
#include <utility>

#include "strategy/training/optimizer.h"
#include "strategy/training/state_entries.h"

namespace palimpsest {
namespace {

ValueType with_state_dtype(const ValueType& parameter) {
  return {parameter.shape, parameter.dtype == DType::f64 ? DType::f64 : DType::f32};
}

}  // namespace

std::string Optimizer::entry_name(const std::string& key, const std::string& slot,
                                  bool by_name) const {
  return common_.name + (by_name ? "/name/" : "/position/") + key + "/" + slot;
}

NamedTensors Optimizer::state() const {
  NamedTensors state;
  if (loaded_) state = loaded_->entries;
  state.insert_or_assign(common_.name + "/steps", integer_entry(steps_));
  state.insert_or_assign(common_.name + "/learning_rate", number_entry(learning_rate_));
  for (const Kept& kept : kept_) {
    const std::vector<Slot> own = slots(with_state_dtype(kept.type));
    for (std::size_t i = 0; i < own.size(); ++i) {
      state.emplace(entry_name(kept.key, own[i].name, by_name_), kept.state[i]);
    }
  }
  return state;
}

ValueType Optimizer::parameter_of(const NamedTensors& state) const {
  return state.begin()->second.type();
}

Optimizer::Loaded Optimizer::read(const NamedTensors& state) const {
  const StateEntries entries(state, common_.name);
  const std::string prefix = common_.name + "/";
  Loaded loaded{entries.count(prefix + "steps"),
                entries.not_negative_number(prefix + "learning_rate"),
                false,
                state,
                {}};
  for (const auto& [entry, tensor] : state) {
    if (entry == prefix + "steps" || entry == prefix + "learning_rate") continue;
    const std::size_t last = entry.rfind('/');
    const std::string named = prefix + "name/";
    const std::string placed = prefix + "position/";
    const bool by_name = entry.starts_with(named);
    const std::size_t begin = by_name ? named.size() : placed.size();
    if ((!by_name && !entry.starts_with(placed)) || last <= begin || last == std::string::npos) {
      entries.refuse(entry, "is unknown; load the state of an optimizer of the same kind");
    }
    if (!tensor.defined()) entries.refuse(entry, "is empty; load one that was saved by state()");
    if (!loaded.slots.empty() && by_name != loaded.by_name) {
      entries.refuse(entry,
                     "is by name and others are by position, or the reverse; load one that "
                     "was saved by state()");
    }
    loaded.by_name = by_name;
    const std::string key = entry.substr(begin, last - begin);
    loaded.slots[key].insert(entry.substr(last + 1));
  }
  return loaded;
}

Bytes Optimizer::state_bytes(std::span<const Tensor> parameters) const {
  Bytes sum = 0;
  for (const Tensor& parameter : parameters) {
    for (const Slot& slot : slots(with_state_dtype(parameter.type()))) sum += slot.type.bytes();
  }
  return sum;
}

void Optimizer::require_slots_of(const Loaded& loaded, const std::string& key,
                                 const ValueType& type) const {
  const StateEntries entries(loaded.entries, common_.name);
  std::set<std::string> known;
  for (const Slot& slot : slots(with_state_dtype(type))) {
    entries.tensor(entry_name(key, slot.name, loaded.by_name), slot.type);
    known.insert(slot.name);
  }
  const auto own = loaded.slots.find(key);
  if (own == loaded.slots.end()) return;
  for (const std::string& slot : own->second) {
    if (known.contains(slot)) continue;
    entries.refuse(entry_name(key, slot, loaded.by_name),
                   "is unknown; make the optimizer with the options it was saved with");
  }
}

/// Throws unless the state is that of these parameters.
void Optimizer::require_state_of(const Loaded& loaded, std::span<const Kept> parameters,
                                 bool by_name) const {
  const StateEntries entries(loaded.entries, common_.name);
  if (!loaded.slots.empty() && loaded.by_name != by_name) {
    const auto& [key, own] = *loaded.slots.begin();
    entries.refuse(entry_name(key, *own.begin(), loaded.by_name),
                   by_name ? "is by position, but the parameters have names; remove these, or load "
                             "a state that was saved with them"
                           : "is by name, but the parameters do not have distinct names; record "
                             "them with the names that were saved");
  }
  std::set<std::string> keys;
  for (const Kept& parameter : parameters) {
    require_slots_of(loaded, parameter.key, parameter.type);
    keys.insert(parameter.key);
  }
  for (const auto& [key, own] : loaded.slots) {
    if (keys.contains(key)) continue;
    entries.refuse(entry_name(key, *own.begin(), loaded.by_name),
                   "belongs to no parameter of the model; load the state of the same model");
  }
}

std::vector<Tensor> Optimizer::loaded_slots(const Loaded& loaded, const Kept& kept) const {
  std::vector<Tensor> state;
  for (const Slot& slot : slots(with_state_dtype(kept.type))) {
    state.push_back(loaded.entries.at(entry_name(kept.key, slot.name, loaded.by_name)));
  }
  return state;
}

void Optimizer::check_state(const NamedTensors& state) const {
  const Loaded loaded = read(state);
  if (started_ && loaded.steps > 0) {
    require_state_of(loaded, kept_, by_name_);
    return;
  }
  // The parameters are unknown, but each must have all kinds of state, of types that go together.
  for (const auto& [key, own] : loaded.slots) {
    NamedTensors tensors;
    for (const std::string& slot : own) {
      tensors.emplace(slot, state.at(entry_name(key, slot, loaded.by_name)));
    }
    require_slots_of(loaded, key, parameter_of(tensors));
  }
}

void Optimizer::load_state(const NamedTensors& state) {
  const InUse::Use use(in_use_, call_in_progress, "Optimizer::load_state");
  check_state(state);
  Loaded loaded = read(state);
  for (auto& [entry, tensor] : loaded.entries) tensor = tensor.clone();
  if (started_ && loaded.steps > 0) {
    std::vector<std::vector<Tensor>> slots_of_all;
    for (const Kept& kept : kept_) slots_of_all.push_back(loaded_slots(loaded, kept));
    for (std::size_t i = 0; i < kept_.size(); ++i) kept_[i].state = std::move(slots_of_all[i]);
  } else {
    started_ = false;
    kept_.clear();
    index_.clear();
  }
  steps_ = loaded.steps;
  learning_rate_ = loaded.learning_rate;
  loaded_.reset();
  if (!started_ && steps_ > 0) loaded_ = std::move(loaded);
}

}  // namespace palimpsest
