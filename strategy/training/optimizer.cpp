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
std::map<std::string, std::size_t, std::less<>> own_names(
    std::span<const Gradients::Entry> entries) {
  std::map<std::string, std::size_t, std::less<>> names;
  std::set<std::string_view> shared;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::string& name = entries[i].name;
    if (!name.empty() && !names.emplace(name, i).second) shared.insert(name);
  }
  std::erase_if(names, [&](const auto& each) { return shared.contains(each.first); });
  return names;
}

/// The first few names, for a message.
std::string names_of(std::span<const Gradients::Entry> entries) {
  constexpr std::size_t most = 5;
  std::string text;
  for (std::size_t i = 0; i < std::min(most, entries.size()); ++i) {
    text += (i == 0 ? "" : ", ") + ("'" + entries[i].name + "'");
  }
  return text + (entries.size() > most ? ", …" : "");
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

void Optimizer::require_groups_used(std::span<const std::size_t> group_sizes,
                                    std::span<const Gradients::Entry> entries) const {
  const auto unused = std::ranges::find(group_sizes, std::size_t{0});
  if (unused == group_sizes.end()) return;
  throw ArgumentError("[" + common_.name + "] group " +
                      std::to_string(unused - group_sizes.begin()) +
                      " selects no parameter that an earlier group leaves; correct its predicate "
                      "or remove it. Parameters are named " +
                      names_of(entries));
}

void Optimizer::start(std::span<const Gradients::Entry> entries) {
  require_distinct(entries, common_.name);
  Parameters parameters{{}, own_names(entries)};
  for (const Gradients::Entry& entry : entries) {
    parameters.kept.push_back({.name = entry.name, .type = entry.gradient.type()});
  }
  fill_state(parameters);
  require_groups_used(choose_groups(parameters.kept), entries);
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
  std::vector<std::size_t> places;
  std::vector<std::optional<std::size_t>> taken_by(kept.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::string& name = entries[i].name;
    const auto found = parameters_->index.find(name);
    const bool is_found = found != parameters_->index.end();
    const std::size_t place = is_found ? found->second : i;
    if (!is_found && !name.empty() && parameters_->has_own_name(i)) {
      throw ArgumentError(owner + "parameter " + described(entries[i], i) +
                          " did not occur at the first step; record the same parameters, with "
                          "the same names, at every step");
    }
    if (taken_by[place]) {
      const std::size_t other = is_found ? *taken_by[place] : i;
      throw ArgumentError(owner +
                          (entries[other].name == kept[place].name
                               ? "two parameters are named " + described(entries[i], i)
                               : "parameter " + std::to_string(other) + " has no name, and '" +
                                     kept[place].name +
                                     "', which was at its position, is given too") +
                          "; give each parameter a name of its own");
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

/// Names parameters that had no name before, which may move them to other groups.
void Optimizer::take_names(std::span<const Gradients::Entry> entries,
                           std::span<const std::size_t> places) {
  if (parameters_->index.size() == parameters_->kept.size()) return;
  std::optional<Parameters> named;
  for (const auto& [name, entry] : own_names(entries)) {
    const std::size_t place = places[entry];
    if (!parameters_->kept[place].name.empty()) continue;
    if (!named) named = parameters_;
    named->kept[place].name = name;
    named->index.emplace(name, place);
  }
  if (!named) return;
  choose_groups(named->kept);
  parameters_ = std::move(named);
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
