#include <string>
#include <utility>

#include "strategy/training/optimizer.h"
#include "strategy/training/state_entries.h"

namespace palimpsest {
namespace {

constexpr const char* name_prefix = "name/";
constexpr const char* position_prefix = "position/";
constexpr const char* positions_entry = "/positions";

ValueType with_state_dtype(const ValueType& parameter) {
  return {parameter.shape, parameter.dtype == DType::f64 ? DType::f64 : DType::f32};
}

}  // namespace

bool Optimizer::Parameters::has_own_name(std::size_t place) const {
  const auto found = index.find(kept[place].name);
  return found != index.end() && found->second == place;
}

std::string Optimizer::Parameters::key(std::size_t place) const {
  return has_own_name(place) ? name_prefix + kept[place].name
                             : position_prefix + std::to_string(place);
}

std::string Optimizer::entry_name(const std::string& key, const std::string& slot) const {
  return common_.name + "/" + key + "/" + slot;
}

NamedTensors Optimizer::state() const {
  NamedTensors state;
  if (loaded_) state = loaded_->entries;
  state.insert_or_assign(common_.name + "/steps", integer_entry(steps_));
  state.insert_or_assign(common_.name + "/learning_rate", number_entry(learning_rate_));
  if (!parameters_) return state;
  for (std::size_t place = 0; place < parameters_->kept.size(); ++place) {
    const Kept& kept = parameters_->kept[place];
    const std::vector<Slot> own = slots(with_state_dtype(kept.type));
    for (std::size_t i = 0; i < own.size(); ++i) {
      state.emplace(entry_name(parameters_->key(place), own[i].name), kept.state[i]);
    }
  }
  std::vector<std::int64_t> positions;
  for (const auto& [name, place] : parameters_->index) {
    if (parameters_->kept[place].state.empty()) continue;
    positions.push_back(static_cast<std::int64_t>(place));
  }
  if (!positions.empty()) {
    state.emplace(common_.name + positions_entry,
                  Tensor::from(positions, Shape{std::ssize(positions)}));
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
                state,
                {},
                {}};
  const std::set<std::string> own{prefix + "steps", prefix + "learning_rate",
                                  common_.name + positions_entry};
  for (const auto& [entry, tensor] : state) {
    if (own.contains(entry)) continue;
    const std::size_t last = entry.rfind('/');
    const bool is_known =
        entry.starts_with(prefix + name_prefix) || entry.starts_with(prefix + position_prefix);
    const std::size_t begin = is_known ? entry.find('/', prefix.size()) + 1 : 0;
    if (!is_known || last <= begin) {
      entries.refuse(entry, "is unknown; load the state of an optimizer of the same kind");
    }
    if (!tensor.defined()) entries.refuse(entry, "is empty; load one that was saved by state()");
    loaded.slots[entry.substr(prefix.size(), last - prefix.size())].insert(entry.substr(last + 1));
  }
  read_positions(loaded);
  return loaded;
}

/// Finds the positions of named parameters. States of earlier versions do not have them.
void Optimizer::read_positions(Loaded& loaded) const {
  const StateEntries entries(loaded.entries, common_.name);
  const std::string entry = common_.name + positions_entry;
  if (!entries.has(entry)) return;
  std::vector<std::string> names;
  for (const auto& [key, slots] : loaded.slots) {
    if (key.starts_with(name_prefix)) names.push_back(key.substr(key.find('/') + 1));
  }
  const Tensor& positions = entries.tensor(entry, {Shape{std::ssize(names)}, DType::i64});
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto position = static_cast<std::size_t>(positions.data<std::int64_t>()[i]);
    if (loaded.names.emplace(position, names[i]).second) continue;
    entries.refuse(entry, "has a position twice; load one that was saved by state()");
  }
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
    entries.tensor(entry_name(key, slot.name), slot.type);
    known.insert(slot.name);
  }
  const auto own = loaded.slots.find(key);
  if (own == loaded.slots.end()) return;
  for (const std::string& slot : own->second) {
    if (known.contains(slot)) continue;
    entries.refuse(entry_name(key, slot),
                   "is unknown; make the optimizer with the options it was saved with");
  }
}

/// The key in a state of the parameter at a place: by its name, or else by its position.
std::string Optimizer::key_in(const Loaded& loaded, const Parameters& parameters,
                              std::size_t place) const {
  const std::string by_position = position_prefix + std::to_string(place);
  if (parameters.has_own_name(place)) {
    const std::string by_name = parameters.key(place);
    const bool is_later_named =
        !loaded.slots.contains(by_name) && loaded.slots.contains(by_position);
    return is_later_named ? by_position : by_name;
  }
  const auto named = loaded.names.find(place);
  if (named != loaded.names.end()) return name_prefix + named->second;
  const ValueType type = with_state_dtype(parameters.kept[place].type);
  if (!loaded.slots.contains(by_position) && !slots(type).empty()) {
    throw ArgumentError("[" + common_.name + "] parameter " + std::to_string(place) +
                        " has no name of its own, and the state has none at that position; record "
                        "parameters with the names that were saved");
  }
  return by_position;
}

/// The key in a state of each parameter. Throws unless the state is that of these parameters.
std::vector<std::string> Optimizer::keys_in(const Loaded& loaded,
                                            const Parameters& parameters) const {
  const StateEntries entries(loaded.entries, common_.name);
  std::vector<std::string> keys;
  std::set<std::string> taken;
  for (std::size_t place = 0; place < parameters.kept.size(); ++place) {
    keys.push_back(key_in(loaded, parameters, place));
    require_slots_of(loaded, keys.back(), parameters.kept[place].type);
    const bool is_first = taken.insert(keys.back()).second;
    const auto found = loaded.slots.find(keys.back());
    if (is_first || found == loaded.slots.end()) continue;
    entries.refuse(entry_name(keys.back(), *found->second.begin()),
                   "belongs to two parameters, by name and by position; record parameters with the "
                   "names that were saved");
  }
  for (const auto& [key, own] : loaded.slots) {
    if (taken.contains(key)) continue;
    entries.refuse(entry_name(key, *own.begin()),
                   "belongs to no parameter of the model; load the state of the same model");
  }
  return keys;
}

/// Gives parameters their loaded state, and names that it has for them; or zeros.
void Optimizer::fill_state(Parameters& parameters) const {
  std::vector<std::string> keys;
  if (loaded_) keys = keys_in(*loaded_, parameters);
  for (std::size_t place = 0; place < parameters.kept.size(); ++place) {
    Kept& kept = parameters.kept[place];
    for (const Slot& slot : slots(with_state_dtype(kept.type))) {
      kept.state.push_back(loaded_ ? loaded_->entries.at(entry_name(keys[place], slot.name))
                                   : Tensor::zeros(slot.type.shape, slot.type.dtype));
    }
    if (!loaded_ || !kept.name.empty() || !keys[place].starts_with(name_prefix)) continue;
    kept.name = keys[place].substr(keys[place].find('/') + 1);
    parameters.index.emplace(kept.name, place);
  }
}

void Optimizer::check_state(const NamedTensors& state) const {
  in_use_.require(InUse::Level::alone, "Optimizer::check_state");
  require_fits(read(state));
}

void Optimizer::require_fits(const Loaded& loaded) const {
  if (parameters_ && loaded.steps > 0) {
    keys_in(loaded, *parameters_);
    return;
  }
  // The parameters are unknown, but each must have all kinds of state, of types that go together.
  for (const auto& [key, own] : loaded.slots) {
    NamedTensors tensors;
    for (const std::string& slot : own) {
      tensors.emplace(slot, loaded.entries.at(entry_name(key, slot)));
    }
    require_slots_of(loaded, key, parameter_of(tensors));
  }
}

void Optimizer::load_state(const NamedTensors& state) {
  const InUse::Use use(in_use_, call_in_progress, "Optimizer::load_state");
  Loaded loaded = read(state);
  require_fits(loaded);
  for (auto& [entry, tensor] : loaded.entries) tensor = tensor.clone();
  steps_ = loaded.steps;
  learning_rate_ = loaded.learning_rate;
  parameters_.reset();
  loaded_.reset();
  if (steps_ > 0) loaded_ = std::move(loaded);
}

}  // namespace palimpsest
