#include "nn/parameters.h"

#include <algorithm>
#include <ostream>
#include <set>
#include <sstream>

#include "autodiff/bytes.h"
#include "autodiff/storage_version.h"
#include "strategy/training/safetensors_layout.h"
#include "strategy/training/training_parts.h"

namespace palimpsest::nn {
namespace {

void require_name(std::string_view name, const char* what) {
  if (!name.empty() && name.find('/') == std::string_view::npos) return;
  throw ArgumentError("[parameters] '" + std::string(name) + "' is no name of a " + what +
                      "; give a name that is not empty and has no '/'");
}

/// FNV-1a (Fowler, Noll and Vo, 1991) over the seed and the name.
std::uint64_t seed_of(std::uint64_t seed, std::string_view name) {
  std::uint64_t hash = 14695981039346656037u;
  const auto add = [&](unsigned char byte) { hash = (hash ^ byte) * 1099511628211u; };
  for (int shift = 0; shift < 64; shift += 8) add(static_cast<unsigned char>(seed >> shift));
  for (const char each : name) add(static_cast<unsigned char>(each));
  return hash;
}

std::string list_of(const std::vector<std::string>& names) {
  constexpr std::size_t most = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(most, names.size()); ++i) {
    text += (i > 0 ? ", '" : "'") + names[i] + "'";
  }
  return names.size() > most ? text + " and " + std::to_string(names.size() - most) + " more"
                             : text;
}

/// Names are tied if their tensors have the same elements in memory, whatever their shapes.
struct Elements {
  const std::byte* first;
  std::int64_t count;
  DType dtype;

  explicit Elements(const Tensor& tensor)
      : first(tensor.raw()), count(tensor.elements()), dtype(tensor.dtype()) {}
  auto operator<=>(const Elements&) const = default;
};

/// The tensors of parameters; one that several share once.
std::vector<Tensor> tensors_of(const std::vector<Parameter>& parameters) {
  std::vector<Tensor> found;
  std::set<Elements> known;
  for (const Parameter& each : parameters) {
    const Tensor& tensor = each.tensor();
    if (tensor.elements() == 0 || known.emplace(tensor).second) found.push_back(tensor);
  }
  return found;
}

void copy_into(const Tensor& target, const Tensor& source) {
  note_write(target, "Parameters::load");
  const Tensor converted = source.to(target.dtype());
  std::copy_n(converted.raw(), converted.bytes(), target.raw());
}

}  // namespace

// A parameter -------------------------------------------------------------------------------------

struct Parameter::Entry {
  std::string name;
  std::string leaf_name;  // on tapes: that of the first parameter with this tensor
  Tensor tensor;
  bool is_state = false;
  bool is_frozen = false;
};

const std::string& Parameter::name() const { return entry_->name; }
const Tensor& Parameter::tensor() const { return entry_->tensor; }
bool Parameter::is_state() const { return entry_->is_state; }
bool Parameter::is_trainable() const { return !entry_->is_state && !entry_->is_frozen; }

Var Parameter::on(Tape& tape, Where where) const {
  if (!defined()) {
    throw ArgumentError("parameter",
                        "the handle is empty; make it with Parameters::add, as layers do in their "
                        "constructors",
                        where);
  }
  return tape.find_or_record(tensor(), is_trainable(), entry_->leaf_name, where);
}

Tape::ModuleScope Parameter::scope(Tape& tape) const {
  const std::string_view path = defined() ? std::string_view(name()) : std::string_view();
  const std::size_t last = path.rfind('/');
  return {tape, last == path.npos ? std::string_view() : path.substr(0, last)};
}

// The container -----------------------------------------------------------------------------------

struct Parameters::Contents {
  Contents(std::uint64_t first_seed, DType of_new) : seed(first_seed), dtype(of_new) {}

  std::uint64_t seed;
  DType dtype;
  bool is_training = true;
  std::map<std::string, Parameter, std::less<>> parameters;  // by full name
  std::map<Elements, std::vector<Parameter>> tied;           // in the order of adding
};

Parameters::Parameters(std::uint64_t seed, DType dtype)
    : contents_(std::make_shared<Contents>(seed, dtype)) {
  if (!is_floating(dtype)) {
    throw DTypeError("[parameters] parameters are floating, not " + std::string(name_of(dtype)) +
                     "; give f32, f64, f16 or bf16");
  }
}

Parameters Parameters::operator/(std::string_view scope) const {
  require_name(scope, "scope");
  return Parameters(contents_, prefix_ + std::string(scope) + "/");
}

std::string Parameters::full_name(std::string_view name) const {
  return prefix_ + std::string(name);
}

Parameter Parameters::add_entry(std::string_view name, const Tensor& tensor, bool is_state) {
  require_name(name, "parameter");
  const std::string full = full_name(name);
  if (contents_->parameters.contains(full)) {
    throw ArgumentError("[parameters] there are two parameters '" + full +
                        "'; rename one, or give the existing one to the second layer");
  }
  const Parameter added(
      std::make_shared<Parameter::Entry>(Parameter::Entry{full, full, tensor, is_state, false}));
  if (tensor.elements() > 0) {
    std::vector<Parameter>& tied = contents_->tied[Elements(tensor)];
    const auto first = std::ranges::find_if(
        tied, [&](const Parameter& each) { return each.tensor().type() == tensor.type(); });
    if (first != tied.end()) added.entry_->leaf_name = first->entry_->leaf_name;
    if (!tied.empty()) added.entry_->is_frozen = tied[0].entry_->is_frozen;
    tied.push_back(added);
  }
  contents_->parameters.emplace(full, added);
  return added;
}

Parameter Parameters::add(std::string_view name, const Shape& shape,
                          const init::Initializer& initializer, const init::Fans& fans) {
  const ValueType type{shape, contents_->dtype};
  if (!initializer) {
    throw ArgumentError("[parameters] '" + full_name(name) +
                        "' has an empty function as initializer; give one, such as init::normal()");
  }
  return add(name, initializer(type, fans, seed_of(contents_->seed, full_name(name))));
}

Parameter Parameters::add(std::string_view name, const Tensor& tensor) {
  if (!tensor.defined()) {
    throw ArgumentError("[parameters] '" + full_name(name) + "' is given an empty tensor");
  }
  if (!is_floating(tensor.dtype())) {
    throw DTypeError("[parameters] '" + full_name(name) + "' is " + to_string(tensor.type()) +
                     "; parameters are floating, so convert it or use add_state");
  }
  return add_entry(name, tensor, false);
}

Parameter Parameters::add_state(std::string_view name, const Tensor& tensor) {
  if (!tensor.defined()) {
    throw ArgumentError("[parameters] '" + full_name(name) + "' is given an empty tensor");
  }
  return add_entry(name, tensor, true);
}

std::vector<Parameter> Parameters::all() const {
  std::vector<Parameter> found;
  for (auto each = contents_->parameters.lower_bound(prefix_);
       each != contents_->parameters.end() && each->first.starts_with(prefix_); ++each) {
    found.push_back(each->second);
  }
  return found;
}

std::vector<Parameter> Parameters::trainable() const {
  std::vector<Parameter> found = all();
  std::erase_if(found, [](const Parameter& each) { return !each.is_trainable(); });
  return found;
}

std::vector<Tensor> Parameters::tensors() const { return tensors_of(trainable()); }

Parameter Parameters::operator[](std::string_view name) const {
  const auto found = contents_->parameters.find(full_name(name));
  if (found != contents_->parameters.end()) return found->second;
  std::vector<std::string> names;
  for (const Parameter& each : all()) names.push_back(each.name());
  throw ArgumentError("[parameters] there is no parameter '" + full_name(name) + "'; " +
                      (names.empty() ? "the container has none" : "use one of " + list_of(names)));
}

std::int64_t Parameters::elements() const {
  std::int64_t count = 0;
  for (const Tensor& tensor : tensors()) count += tensor.elements();
  return count;
}

Bytes Parameters::bytes() const {
  Bytes sum = 0;
  for (const Tensor& tensor : tensors_of(all())) sum += tensor.bytes();
  return sum;
}

void Parameters::record(Tape& tape, Where where) const {
  for (const Parameter& each : all()) each.on(tape, where);
}

Tape::ModuleScope Parameters::scope(Tape& tape) const {
  const std::string_view path = prefix_;
  return {tape, path.substr(0, path.empty() ? 0 : path.size() - 1)};
}

void Parameters::set_frozen(bool frozen) const {
  const auto own = all();
  if (own.empty() && !prefix_.empty()) {
    throw ArgumentError("[parameters] no parameter has a name that begins with '" + prefix_ +
                        "'; summary() lists all names");
  }
  for (const Parameter& each : own) {
    each.entry_->is_frozen = frozen;
    if (each.tensor().elements() == 0 || each.is_state()) continue;
    for (const Parameter& tied : contents_->tied.at(Elements(each.tensor()))) {
      tied.entry_->is_frozen = frozen;
    }
  }
}

void Parameters::freeze() { set_frozen(true); }
void Parameters::unfreeze() { set_frozen(false); }

bool Parameters::is_training() const { return contents_->is_training; }
void Parameters::set_training(bool training) { contents_->is_training = training; }

void Parameters::convert(DType dtype) {
  if (!is_floating(dtype)) {
    throw DTypeError("[parameters] parameters are floating, not " + std::string(name_of(dtype)) +
                     "; convert to f32, f64, f16 or bf16");
  }
  if (prefix_.empty()) contents_->dtype = dtype;
  for (const Parameter& each : all()) {
    const Tensor before = each.tensor();
    if (!is_floating(before.dtype()) || before.dtype() == dtype) continue;
    const Tensor after = before.to(dtype);
    if (before.elements() == 0) {
      each.entry_->tensor = after;
      continue;
    }
    auto tied = contents_->tied.extract(Elements(before));
    for (const Parameter& other : tied.mapped()) {
      other.entry_->tensor = after.reshape(other.tensor().shape());
    }
    tied.key() = Elements(after);
    contents_->tied.insert(std::move(tied));
  }
}

// Files -------------------------------------------------------------------------------------------

NamedTensors Parameters::named() const {
  NamedTensors tensors;
  for (const Parameter& each : all()) tensors[each.name().substr(prefix_.size())] = each.tensor();
  return tensors;
}

namespace {

/// Clones sources that are parameters to be loaded themselves, such as those of `named()`.
void keep_sources_apart(std::vector<std::pair<Parameter, Tensor>>& found) {
  std::set<const std::byte*> targets;
  for (const auto& [parameter, tensor] : found) targets.insert(parameter.tensor().raw());
  for (auto& [parameter, tensor] : found) {
    if (targets.contains(tensor.raw())) tensor = tensor.clone();
  }
}

/// Throws unless names that share a tensor are given the same elements.
void require_equal_sources(const std::vector<std::pair<Parameter, Tensor>>& found) {
  std::map<Elements, std::size_t> first;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto& [parameter, tensor] = found[i];
    if (tensor.elements() == 0) continue;
    const auto [known, is_new] = first.emplace(parameter.tensor(), i);
    if (is_new) continue;
    const auto& [other, same] = found[known->second];
    const DType dtype = parameter.tensor().dtype();
    if (same_bits(tensor.to(dtype), same.to(dtype).reshape(tensor.shape()))) continue;
    throw ArgumentError("[parameters] the tensors given for '" + other.name() + "' and '" +
                        parameter.name() +
                        "' differ, but the two share one tensor; load a file of a model that "
                        "shares it too, or leave one out with LoadOptions::name_of");
  }
}

}  // namespace

LoadResult Parameters::load(const NamedTensors& tensors, const LoadOptions& options) {
  LoadResult result;
  std::set<std::string> taken;
  std::vector<std::pair<Parameter, Tensor>> found;
  for (const Parameter& each : all()) {
    const std::string own = each.name().substr(prefix_.size());
    const std::string in_file = options.name_of ? options.name_of(own) : own;
    if (in_file.empty()) continue;
    const auto tensor = tensors.find(in_file);
    if (tensor == tensors.end()) {
      result.missing.push_back(in_file);
      continue;
    }
    taken.insert(in_file);
    Tensor given = options.layout ? options.layout(own, tensor->second) : tensor->second;
    if (given.shape() != each.tensor().shape()) {
      throw ShapeError("[parameters] '" + in_file + "' is " + to_string(given.type()) +
                       ", but parameter '" + each.name() + "' is " +
                       to_string(each.tensor().type()) +
                       "; load a file of the same model, or convert with LoadOptions::layout");
    }
    found.emplace_back(each, std::move(given));
  }
  require_equal_sources(found);
  keep_sources_apart(found);
  for (const auto& [name, tensor] : tensors) {
    if (!taken.contains(name)) result.unexpected.push_back(name);
  }
  const bool lacks = !options.allow_missing && !result.missing.empty();
  const bool has_more = !options.allow_unexpected && !result.unexpected.empty();
  if (lacks || has_more) {
    std::string message = "[parameters] the tensors do not fit the model";
    if (lacks) message += "; missing: " + list_of(result.missing);
    if (has_more) message += "; unexpected: " + list_of(result.unexpected);
    throw ArgumentError(message +
                        "; map names with LoadOptions::name_of, or set allow_missing or "
                        "allow_unexpected");
  }
  for (const auto& [parameter, tensor] : found) copy_into(parameter.tensor(), tensor);
  return result;
}

LoadResult Parameters::load(const std::string& path, const LoadOptions& options) {
  std::set<std::string> wanted;
  for (const Parameter& each : all()) {
    const std::string own = each.name().substr(prefix_.size());
    wanted.insert(options.name_of ? options.name_of(own) : own);
  }
  const auto is_wanted = [&](const std::string& name) { return wanted.contains(name); };
  return load(load_wanted_safetensors(path, is_wanted), options);
}

void Parameters::save(const std::string& path) const { save_safetensors(path, named()); }

void Parameters::check_state(const NamedTensors& state) const {
  TrainingPart("parameters", named()).check_state(state);
}

void Parameters::load_state(const NamedTensors& state) {
  TrainingPart("parameters", named()).load_state(state);
}

std::string Parameters::summary() const {
  std::ostringstream text;
  std::size_t width = 4;
  for (const Parameter& each : all()) width = std::max(width, each.name().size());
  for (const Parameter& each : all()) {
    const char* const kind = each.is_trainable() ? "" : each.is_state() ? "  state" : "  frozen";
    text << each.name() << std::string(width + 2 - each.name().size(), ' ')
         << to_string(each.tensor().type()) << kind << '\n';
  }
  text << elements() << " trainable elements, " << format_bytes(bytes()) << " in all\n";
  return text.str();
}

std::ostream& operator<<(std::ostream& stream, const Parameters& parameters) {
  return stream << parameters.summary();
}

}  // namespace palimpsest::nn
