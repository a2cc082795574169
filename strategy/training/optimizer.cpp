#include "strategy/training/optimizer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "autodiff/storage_version.h"
#include "strategy/training/settings.h"
#include "strategy/training/state_entries.h"

namespace palimpsest {
namespace {

DType state_dtype(DType parameter) { return parameter == DType::f64 ? DType::f64 : DType::f32; }

std::string described(const Gradients::Entry& entry, std::size_t position) {
  return entry.name.empty() ? std::to_string(position) : "'" + entry.name + "'";
}

/// Throws `ArgumentError` where a step would update a tensor twice.
void require_distinct(std::span<const Gradients::Entry> entries, const std::string& optimizer) {
  std::map<const std::byte*, std::size_t> seen;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const Tensor& value = entries[i].value;
    if (value.elements() == 0) continue;
    const auto [first, is_new] = seen.emplace(value.raw(), i);
    if (is_new) continue;
    throw ArgumentError("[" + optimizer + "] parameters " +
                        described(entries[first->second], first->second) + " and " +
                        described(entries[i], i) + " are one tensor, " + to_string(value.type()) +
                        ", so a step would update it twice; record it once and use its Var twice");
  }
}

/// The names that exactly one entry has, and which one.
using OwnNames = std::map<std::string_view, std::size_t>;

OwnNames own_names(std::span<const Gradients::Entry> entries) {
  OwnNames names;
  std::set<std::string_view> shared;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::string& name = entries[i].name;
    if (!name.empty() && !names.emplace(name, i).second) shared.insert(name);
  }
  std::erase_if(names, [&](const auto& each) { return shared.contains(each.first); });
  return names;
}

}  // namespace

Optimizer::Optimizer(Common common) : common_(std::move(common)) {
  set_learning_rate(common_.learning_rate);
  require_not_negative(common_.name, "weight_decay", common_.weight_decay);
  for (std::size_t i = 0; i < common_.groups.size(); ++i) {
    const ParameterGroup& group = common_.groups[i];
    const std::string of_group = " of group " + std::to_string(i);
    if (group.matches == nullptr) {
      throw ArgumentError(
          "[" + common_.name + "] group " + std::to_string(i) +
          " has no predicate; set matches, for example to names_ending({\"bias\"})");
    }
    require_not_negative(common_.name, "learning_rate_factor" + of_group,
                         group.learning_rate_factor);
    require_not_negative(common_.name, "weight_decay" + of_group, group.weight_decay.value_or(0));
  }
}

void Optimizer::set_learning_rate(double rate) {
  in_use_.require(InUse::Level::alone, "Optimizer::set_learning_rate");
  require_not_negative(common_.name, "the learning rate", rate);
  if (!std::isfinite(rate)) {
    throw ArgumentError("[" + common_.name +
                        "] the learning rate is infinite; give a finite number");
  }
  learning_rate_ = rate;
}

/// Gives parameters the settings of their groups. Returns the number of parameters in each group.
std::vector<std::size_t> Optimizer::choose_groups(std::span<Kept> parameters) const {
  std::vector<std::size_t> sizes(common_.groups.size());
  for (Kept& each : parameters) {
    each.learning_rate_factor = 1;
    each.weight_decay = common_.weight_decay;
    const ParameterInfo info{each.name, each.type};
    const auto group = std::ranges::find_if(
        common_.groups, [&](const ParameterGroup& candidate) { return candidate.matches(info); });
    if (group == common_.groups.end()) continue;
    each.learning_rate_factor = group->learning_rate_factor;
    each.weight_decay = group->weight_decay.value_or(common_.weight_decay);
    ++sizes[static_cast<std::size_t>(group - common_.groups.begin())];
  }
  return sizes;
}

/// Throws `ArgumentError` for a group without parameters, given the numbers of `choose_groups`.
/// While some parameters have names and others do not have theirs yet, a group may be for these.
void Optimizer::require_groups_used(std::span<const std::size_t> group_sizes,
                                    std::span<const Kept> parameters) const {
  const auto unused = std::ranges::find(group_sizes, std::size_t{0});
  const auto unnamed = std::ranges::count(parameters, std::string(), &Kept::name);
  if (unused == group_sizes.end() || (unnamed > 0 && unnamed < std::ssize(parameters))) return;
  constexpr std::size_t most = 5;
  std::string names;
  for (std::size_t i = 0; i < std::min(most, parameters.size()); ++i) {
    names += (i == 0 ? "'" : ", '") + parameters[i].name + "'";
  }
  if (parameters.size() > most) names += ", …";
  throw ArgumentError("[" + common_.name + "] group " +
                      std::to_string(unused - group_sizes.begin()) +
                      " selects no parameter that an earlier group leaves; correct its predicate "
                      "or remove it. Parameters are named " +
                      names);
}

void Optimizer::start(std::span<const Gradients::Entry> entries) {
  require_distinct(entries, common_.name);
  Parameters parameters;
  for (const auto& [name, place] : own_names(entries)) parameters.index.emplace(name, place);
  for (const Gradients::Entry& entry : entries) {
    parameters.kept.push_back({.name = entry.name, .type = entry.gradient.type()});
  }
  if (loaded_) {
    fill_state(parameters, *loaded_);
  } else {
    for (Kept& kept : parameters.kept) {
      for (const Slot& slot : slots({kept.type.shape, state_dtype(kept.type.dtype)})) {
        kept.state.push_back(Tensor::zeros(slot.type.shape, slot.type.dtype));
      }
    }
  }
  require_groups_used(choose_groups(parameters.kept), parameters.kept);
  parameters_ = std::move(parameters);
  loaded_.reset();
}

/// Where the state of each entry is.
std::vector<std::size_t> Optimizer::places_of(std::span<const Gradients::Entry> entries) const {
  const std::string owner = "[" + common_.name + "] ";
  const std::vector<Kept>& kept = parameters_->kept;
  if (entries.size() != kept.size()) {
    const bool is_more = entries.size() > kept.size();  // a tape that was not cleared
    throw ArgumentError(owner + std::to_string(entries.size()) +
                        " parameters given after steps with " + std::to_string(kept.size()) + "; " +
                        (is_more ? "call tape.clear() before each step, or use"
                                 : "record those that a step does not use as well, or use") +
                        " one optimizer per model, and a new one after freeze() and unfreeze()");
  }
  const OwnNames own = own_names(entries);
  std::vector<std::size_t> places;
  std::vector<std::optional<std::size_t>> taken_by(kept.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::string& name = entries[i].name;
    const auto found = parameters_->index.find(name);
    const bool is_found = found != parameters_->index.end() && own.contains(name);
    const std::size_t place = is_found ? found->second : i;
    if (!is_found && !name.empty() && parameters_->has_own_name(i) && kept[i].name != name) {
      throw ArgumentError(
          owner +
          (own.contains(name)
               ? "parameter '" + name + "' did not occur at the first step, and '" + kept[i].name +
                     "' was at its position; record the same parameters, with the same names, at "
                     "every step, and a tensor that layers share always with the same name"
               : "two parameters are named '" + name + "'; give each parameter a name of its own"));
    }
    if (taken_by[place]) {
      const std::size_t other = is_found ? *taken_by[place] : i;
      throw ArgumentError(owner + "parameter " + std::to_string(other) +
                          " has no name of its own, and '" + kept[place].name +
                          "', which was at its position, is given too; give each parameter a name "
                          "of its own");
    }
    taken_by[place] = i;
    const ValueType& type = entries[i].gradient.type();
    if (type != kept[place].type) {
      throw ArgumentError(owner + "parameter " + described(entries[i], i) + " was " +
                          to_string(kept[place].type) + " and is now " + to_string(type) + "; " +
                          (is_found ? "use one optimizer per model"
                                    : "record parameters in the same order at every step"));
    }
    places.push_back(place);
  }
  return places;
}

/// Names parameters that had no name before, which may move them to other groups. A name that two
/// entries of the step have is no parameter's own any more.
void Optimizer::take_names(std::span<const Gradients::Entry> entries,
                           std::span<const std::size_t> places) {
  const OwnNames own = own_names(entries);
  std::optional<Parameters> changed;
  const auto copy = [&]() -> Parameters& {
    if (!changed) changed = *parameters_;
    return *changed;
  };
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::string& name = entries[i].name;
    if (name.empty()) continue;
    const bool is_new = parameters_->kept[places[i]].name.empty();
    if (is_new) copy().kept[places[i]].name = name;
    if (!own.contains(name)) {
      if (parameters_->index.contains(name)) copy().index.erase(name);
    } else if (is_new) {
      copy().index.emplace(name, places[i]);
    }
  }
  if (!changed) return;
  require_groups_used(choose_groups(changed->kept), changed->kept);
  parameters_ = std::move(changed);
}

void Optimizer::step(const Gradients& gradients) {
  const InUse::Use use(in_use_, call_in_progress, "Optimizer::step");
  if (gradients.report().overflowed) return;
  const auto entries = gradients.entries();
  if (!parameters_) start(entries);
  const std::vector<std::size_t> places = places_of(entries);
  take_names(entries, places);
  ++steps_;
  for (const Gradients::Entry& entry : entries) note_write(entry.value, "Optimizer::step");
  for (std::size_t i = 0; i < entries.size(); ++i) {
    update_tensor(entries[i], parameters_->kept[places[i]]);
  }
}

void Optimizer::update_tensor(const Gradients::Entry& entry, const Kept& kept) const {
  const Tensor& parameter = entry.value;
  const DType dtype = state_dtype(parameter.dtype());
  const Tensor wide = parameter.to(dtype);
  update({wide, entry.gradient.to(dtype), kept.state, learning_rate_ * kept.learning_rate_factor,
          kept.weight_decay, steps_});
  if (dtype != parameter.dtype()) copy_elements(wide.to(parameter.dtype()), parameter);
}

}  // namespace palimpsest
