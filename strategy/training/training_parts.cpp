#include "strategy/training/training_parts.h"

#include <bit>
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "autodiff/tape.h"
#include "strategy/training/state_entries.h"

namespace palimpsest {
namespace {

void check_tensors(const NamedTensors& own, const NamedTensors& state) {
  const StateEntries entries(state, "tensors");
  for (const auto& [name, tensor] : own) entries.tensor(name, tensor.type());
  for (const auto& [name, tensor] : state) {
    if (!own.contains(name)) {
      entries.refuse(name, "is not among the given tensors; give all tensors that were saved");
    }
  }
  // Names may have the same elements in other shapes.
  using Elements = std::tuple<const std::byte*, std::int64_t, DType>;
  std::map<Elements, std::string> first_names;
  for (const auto& [name, tensor] : own) {
    if (tensor.elements() == 0) continue;
    const Elements elements{tensor.raw(), tensor.elements(), tensor.dtype()};
    const std::string& first = first_names.emplace(elements, name).first->second;
    if (first == name) continue;
    if (same_bits(state.at(first).reshape(tensor.shape()), state.at(name))) continue;
    entries.refuse(name, "differs from entry '" + first +
                             "', but both names have one tensor; load the state of a model that "
                             "shares it too");
  }
}

NamedTensors state_of(const Tape& tape) {
  return {{"seed", integer_entry(std::bit_cast<std::int64_t>(tape.seed()))},
          {"generation", integer_entry(tape.generation())}};
}

void check_random(const Tape& tape, const NamedTensors& state) {
  const StateEntries entries(state, "random streams");
  entries.integer("seed");
  const std::int64_t generation = entries.count("generation");
  if (generation > std::numeric_limits<std::uint32_t>::max()) {
    entries.refuse("generation",
                   "is " + std::to_string(generation) + "; load one that was saved for a tape");
  }
  entries.require_only({"seed", "generation"});
  if (tape.node_count() == 0) return;
  throw TapeError("[load_training] the tape has " + std::to_string(tape.node_count()) +
                  " nodes; clear it before its random streams are loaded");
}

void load_random(Tape& tape, const NamedTensors& state) {
  check_random(tape, state);
  const StateEntries entries(state, "random streams");
  tape.set_generation(static_cast<std::uint32_t>(entries.count("generation")));
  tape.set_seed(std::bit_cast<std::uint64_t>(entries.integer("seed")));
}

void require_distinct_parts(const std::vector<TrainingPart>& parts, const char* operation) {
  std::set<std::string> names;
  for (const TrainingPart& part : parts) {
    if (names.insert(part.name()).second) continue;
    throw ArgumentError("[" + std::string(operation) + "] two parts are named '" + part.name() +
                        "'; give each a name of its own");
  }
}

[[noreturn]] void refuse_file(const std::string& path, const std::string& problem) {
  throw FileError("[load_training] " + path + " " + problem);
}

void check_part(const std::string& path, const TrainingPart& part, const NamedTensors& state) {
  try {
    part.check_state(state);
  } catch (const TapeError&) {
    throw;  // the tape's fault, not the file's
  } catch (const UsageError& error) {
    refuse_file(path, "does not fit part '" + part.name() + "': " + error.what());
  }
}

}  // namespace

TrainingPart::TrainingPart(std::string name, NamedTensors tensors)
    : name_(std::move(name)),
      state_([tensors] { return tensors; }),
      check_([tensors](const NamedTensors& state) { check_tensors(tensors, state); }),
      load_([tensors](const NamedTensors& state) {
        check_tensors(tensors, state);
        for (const auto& [entry, tensor] : tensors) {
          write_elements(state.at(entry), tensor, "load_training");
        }
      }) {
  for (const auto& [entry, tensor] : tensors) {
    if (tensor.defined()) continue;
    throw ArgumentError("[training part] tensor '" + entry + "' of part '" + name_ +
                        "' is empty; assign a tensor first");
  }
}

TrainingPart::TrainingPart(std::string name, Tape& tape)
    : name_(std::move(name)),
      state_([&tape] { return state_of(tape); }),
      check_([&tape](const NamedTensors& state) { check_random(tape, state); }),
      load_([&tape](const NamedTensors& state) { load_random(tape, state); }) {}

void save_training(const std::string& path, const std::vector<TrainingPart>& parts,
                   const DataPosition& position) {
  require_distinct_parts(parts, "save_training");
  TrainingState state{{}, position};
  for (const TrainingPart& part : parts) state.parts.emplace(part.name(), part.state());
  write_training_state(path, state);
}

DataPosition load_training(const std::string& path, const std::vector<TrainingPart>& parts) {
  require_distinct_parts(parts, "load_training");
  TrainingState state = read_training_state(path);
  std::set<std::string> given;
  for (const TrainingPart& part : parts) {
    given.insert(part.name());
    if (state.parts.contains(part.name())) continue;
    refuse_file(path, "has no part '" + part.name() +
                          "'; leave it out, or load a run that was saved with it");
  }
  for (const auto& [name, tensors] : state.parts) {
    if (given.contains(name)) continue;
    refuse_file(path, "has a part '" + name +
                          "' that is not given, and the run would not continue with the same "
                          "bits; give it, or read single parts with read_training_state");
  }
  for (const TrainingPart& part : parts) check_part(path, part, state.parts.at(part.name()));
  for (const TrainingPart& part : parts) part.load_state(state.parts.at(part.name()));
  return std::move(state.position);
}

}  // namespace palimpsest
