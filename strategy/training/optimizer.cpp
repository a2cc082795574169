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

bool have_own_names(std::span<const Gradients::Entry> entries) {
  std::set<std::string_view> names;
  return std::ranges::all_of(entries, [&](const auto& entry) {
    return !entry.name.empty() && names.insert(entry.name).second;
  });
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

Optimizer::Kept Optimizer::first_kept(const ParameterInfo& parameter, std::string key,
                                      std::vector<std::size_t>& group_sizes) const {
  Kept kept{std::move(key), parameter.type, 1, common_.weight_decay, {}};
  const auto group = std::ranges::find_if(
      common_.groups, [&](const ParameterGroup& each) { return each.matches(parameter); });
  if (group != common_.groups.end()) {
    kept.learning_rate_factor = group->learning_rate_factor;
    kept.weight_decay = group->weight_decay.value_or(common_.weight_decay);
    ++group_sizes[static_cast<std::size_t>(group - common_.groups.begin())];
  }
  return kept;
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
  const bool by_name = have_own_names(entries);
  std::vector<Kept> kept;
  std::map<std::string, std::size_t, std::less<>> index;
  std::vector<std::size_t> group_sizes(common_.groups.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::string key = by_name ? entries[i].name : std::to_string(i);
    index.emplace(key, i);
    kept.push_back(first_kept({entries[i].name, entries[i].gradient.type()}, key, group_sizes));
  }
  require_groups_used(group_sizes, entries);
  if (loaded_) require_state_of(*loaded_, kept, by_name);
  for (Kept& each : kept) {
    if (loaded_) {
      each.state = loaded_slots(*loaded_, each);
    } else {
      for (const Slot& slot : slots({each.type.shape, state_dtype(each.type.dtype)})) {
        each.state.push_back(Tensor::zeros(slot.type.shape, slot.type.dtype));
      }
    }
  }
  kept_ = std::move(kept);
  index_ = std::move(index);
  by_name_ = by_name;
  loaded_.reset();
  started_ = true;
}

/// Where the state of each entry is.
std::vector<std::size_t> Optimizer::places_of(std::span<const Gradients::Entry> entries) const {
  const std::string owner = "[" + common_.name + "] ";
  if (entries.size() != kept_.size()) {
    const bool is_more = entries.size() > kept_.size();  // a tape that was not cleared
    throw ArgumentError(owner + std::to_string(entries.size()) +
                        " parameters given after steps with " + std::to_string(kept_.size()) +
                        "; " + (is_more ? "call tape.clear() before each step, or use" : "use") +
                        " one optimizer per model, and a new one after freeze() and unfreeze()");
  }
  std::vector<std::size_t> places;
  std::vector<bool> is_taken(kept_.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    std::size_t place = i;
    if (by_name_ && kept_[i].key != entries[i].name) {
      const auto found = index_.find(entries[i].name);
      if (found == index_.end()) {
        throw ArgumentError(owner + "parameter " + described(entries[i], i) +
                            " did not occur at the first step; record the same parameters, with "
                            "the same names, at every step");
      }
      place = found->second;
    }
    if (is_taken[place]) {
      throw ArgumentError(owner + "two parameters are named " + described(entries[i], i) +
                          "; give each parameter a name of its own");
    }
    is_taken[place] = true;
    const ValueType& type = entries[i].gradient.type();
    if (type != kept_[place].type) {
      throw ArgumentError(owner + "parameter " + described(entries[i], i) + " was " +
                          to_string(kept_[place].type) + " and is now " + to_string(type) + "; " +
                          (by_name_ ? "use one optimizer per model"
                                    : "record parameters in the same order at every step"));
    }
    places.push_back(place);
  }
  return places;
}

void Optimizer::step(const Gradients& gradients) {
  const InUse::Use use(in_use_, call_in_progress, "Optimizer::step");
  if (gradients.report().overflowed) return;
  const auto entries = gradients.entries();
  if (!started_) start(entries);
  const std::vector<std::size_t> places = places_of(entries);
  ++steps_;
  for (const Gradients::Entry& entry : entries) note_write(entry.value, "Optimizer::step");
  for (std::size_t i = 0; i < entries.size(); ++i) update_tensor(entries[i], kept_[places[i]]);
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
