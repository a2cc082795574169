#include <algorithm>
#include <string>

#include "autodiff/tape.h"

namespace palimpsest {
namespace {

/// Scopes, joined by '/'.
std::string joined(std::string_view outer, std::string_view name) {
  std::string path;
  path.reserve(outer.size() + 1 + name.size());
  if (!outer.empty()) path.append(outer).append("/");
  return path.append(name);
}

/// The size of the longest begin of `path`, in whole components, that `scopes` end with. Includes
/// the '/' after it.
std::size_t overlap(std::string_view scopes, std::string_view path) {
  if (scopes.empty()) return 0;
  for (std::size_t size = path.size(); size != path.npos; size = path.rfind('/', size - 1)) {
    if (size == 0) break;
    const bool ends = scopes.ends_with(path.substr(0, size));
    const std::size_t before = scopes.size() - size;
    if (ends && (before == 0 || scopes[before - 1] == '/')) return std::min(size + 1, path.size());
  }
  return 0;
}

}  // namespace

Tape::Scope::Scope(Tape& tape, std::string_view name)
    : tape_(tape.recording()), outer_(tape_.scopes_) {
  if (name.empty()) throw ArgumentError("[scope] a scope needs a name; give one, such as layer1");
  const auto within = [&](std::uint32_t outer) {
    return tape_.intern(joined(tape_.names_[outer], name));
  };
  const bool is_same = outer_.path == outer_.stage;
  tape_.scopes_.path = within(outer_.path);
  tape_.scopes_.stage = is_same ? tape_.scopes_.path : within(outer_.stage);
}

Tape::Scope::Scope(Tape& tape, const Tape& from, NodeId node)
    : tape_(tape.recording()), outer_(tape_.scopes_) {
  const std::uint32_t path = tape_.intern(from.scope_of(node));
  const std::uint32_t stage = tape_.intern(from.stage_of(node));
  tape_.scopes_ = {path, stage, from.inherits_scope(node)};
}

Tape::ModuleScope::ModuleScope(Tape& tape, std::string_view path)
    : tape_(tape.recording()), outer_(tape_.scopes_.path) {
  const std::string& current = tape_.names_[outer_];
  const std::string_view rest = path.substr(overlap(current, path));
  if (rest.empty()) return;
  tape_.scopes_.path = current.empty() ? tape_.intern(rest) : tape_.intern(joined(current, rest));
}

}  // namespace palimpsest
