#include <string>
#include <utility>

#include "strategy/training/optimizer.h"
#include "strategy/training/state_entries.h"

namespace palimpsest {
namespace {

constexpr const char* name_prefix = "name/";
constexpr const char* position_prefix = "position/";
constexpr const char* position_slot = "position";
constexpr const char* shared_name = "/name";  // after the position

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
    if (kept.name.empty() || parameters_->has_own_name(place)) continue;
    state.emplace(entry_name(parameters_->key(place) + shared_name, kept.name),
                  integer_entry(static_cast<std::int64_t>(place)));
  }
  for (const auto& [name, place] : parameters_->index) {
    state.emplace(entry_name(name_prefix + name, position_slot),
                  integer_entry(static_cast<std::int64_t>(place)));
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
  const std::set<std::string> own{prefix + "steps", prefix + "learning_rate"};
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

/// Takes the positions of named parameters from the slots: "position" of a name of their own, and
/// "name/…" of a position whose name others have too. States of earlier versions do not have them.
void Optimizer::read_positions(Loaded& loaded) const {
  const StateEntries entries(loaded.entries, common_.name);
  const auto add = [&](const std::string& entry, const std::string& name) {
    const auto position = static_cast<std::size_t>(entries.count(entry));
    if (loaded.names.emplace(position, name).second) return position;
    entries.refuse(entry, "is that of another parameter too; load one that was saved by state()");
  };
  std::vector<std::string> without;
  for (auto each = loaded.slots.begin(); each != loaded.slots.end();) {
    const auto current = each++;
    auto& [key, own] = *current;
    const std::size_t begin = key.find('/') + 1;
    const std::size_t end = key.find('/', begin);
    if (key.starts_with(name_prefix)) {
      const std::string entry = entry_name(key, position_slot);
      if (own.erase(position_slot) == 0) {
        without.push_back(entry);
      } else {
        add(entry, key.substr(begin));
      }
    } else if (end != std::string::npos) {
      for (const std::string& last : own) {
        const std::string entry = entry_name(key, last);
        const std::string path = key.substr(end) + "/" + last;
        const std::string prefix = std::string(shared_name) + "/";
        const bool is_name = path.starts_with(prefix);
        if (is_name && key.substr(begin, end - begin) ==
                           std::to_string(add(entry, path.substr(prefix.size())))) {
          continue;
        }
        entries.refuse(entry, "is unknown; load one that was saved by state()");
      }
      loaded.slots.erase(current);
    }
  }
  if (!loaded.names.empty() && !without.empty()) entries.count(without.front());  // throws
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
  const std::string& name = parameters.kept[place].name;
  const bool has_slots = !slots(with_state_dtype(parameters.kept[place].type)).empty();
  const std::string by_position = position_prefix + std::to_string(place);
  const bool has_position = loaded.slots.contains(by_position);
  if (parameters.has_own_name(place)) {
    const std::string by_name = parameters.key(place);
    const bool is_later_named = has_slots ? has_position : !loaded.names.empty();
    return !loaded.slots.contains(by_name) && is_later_named ? by_position : by_name;
  }
  const auto named = loaded.names.find(place);
  const bool is_named =
      named != loaded.names.end() && loaded.slots.contains(name_prefix + named->second);
  if (is_named && (name.empty() || name == named->second)) return name_prefix + named->second;
  if (is_named || (has_slots && !has_position)) {
    throw ArgumentError("[" + common_.name + "] parameter " + std::to_string(place) +
                        " has no name of its own, and the state has none at that position; record "
                        "parameters with the names that were saved");
  }
  return by_position;
}

/// An entry of a parameter's state, for a message.
std::string Optimizer::first_entry(const Loaded& loaded, const std::string& key) const {
  const auto found = loaded.slots.find(key);
  const bool has_slots = found != loaded.slots.end() && !found->second.empty();
  return entry_name(key, has_slots ? *found->second.begin() : position_slot);
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
    if (taken.insert(keys.back()).second) continue;
    entries.refuse(first_entry(loaded, keys.back()),
                   "belongs to two parameters, by name and by position; record parameters with the "
                   "names that were saved");
  }
  for (const auto& [key, own] : loaded.slots) {
    if (taken.contains(key)) continue;
    entries.refuse(first_entry(loaded, key),
                   "belongs to no parameter of the model; load the state of the same model");
  }
  return keys;
}

/// Gives parameters their loaded state, and the names that it has for them.
void Optimizer::fill_state(Parameters& parameters, const Loaded& loaded) const {
  const std::vector<std::string> keys = keys_in(loaded, parameters);
  for (std::size_t place = 0; place < parameters.kept.size(); ++place) {
    Kept& kept = parameters.kept[place];
    kept.state.clear();
    for (const Slot& slot : slots(with_state_dtype(kept.type))) {
      kept.state.push_back(loaded.entries.at(entry_name(keys[place], slot.name)));
    }
    const auto named = loaded.names.find(place);
    if (keys[place].starts_with(name_prefix)) {
      kept.name = keys[place].substr(keys[place].find('/') + 1);
      parameters.index.insert_or_assign(kept.name, place);
    } else if (named != loaded.names.end()) {  // which other parameters have too
      kept.name = named->second;
      parameters.index.erase(kept.name);
    }
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
    if (own.empty()) {  // as of an optimizer without slots
      require_slots_of(loaded, key, {Shape{}, DType::f32});
      continue;
    }
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
  std::optional<Parameters> restored;
  if (parameters_ && loaded.steps > 0) {
    // Names that the state does not have yet are forgotten, as they were not known when it was
    // saved: its groups must be those of that time.
    restored = parameters_;
    const std::vector<std::string> keys = keys_in(loaded, *parameters_);
    for (std::size_t place = 0; place < keys.size(); ++place) {
      if (!keys[place].starts_with(position_prefix) || !restored->has_own_name(place)) continue;
      restored->index.erase(restored->kept[place].name);
      restored->kept[place].name.clear();
    }
    fill_state(*restored, loaded);
    choose_groups(restored->kept);
  }
  steps_ = loaded.steps;
  learning_rate_ = loaded.learning_rate;
  parameters_ = std::move(restored);
  loaded_.reset();
  if (steps_ > 0 && !parameters_) loaded_ = std::move(loaded);
}

}  // namespace palimpsest
