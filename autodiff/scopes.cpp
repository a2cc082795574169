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
    : tape_(tape.recording()), outer_(tape_.context_.scopes) {
  tape_.in_use_.require(InUse::Level::records, "Tape::scope");
  if (name.empty()) throw ArgumentError("[scope] a scope needs a name; give one, such as layer1");
  WengertList& nodes = tape_.nodes_;
  const auto within = [&](std::uint32_t outer) {
    return nodes.intern(joined(nodes.text(outer), name));
  };
  const bool is_same = outer_.path == outer_.stage;
  RecordingContext::Scopes& scopes = tape_.context_.scopes;
  scopes.path = within(outer_.path);
  scopes.stage = is_same ? scopes.path : within(outer_.stage);
}

Tape::Scope::Scope(Tape& tape, const Tape& from, NodeId node)
    : tape_(tape.recording()), outer_(tape_.context_.scopes) {
  tape_.in_use_.require(InUse::Level::records, "Tape::scope");
  const std::uint32_t path = tape_.nodes_.intern(from.scope_of(node));
  const std::uint32_t stage = tape_.nodes_.intern(from.stage_of(node));
  tape_.context_.scopes = {path, stage, from.inherits_scope(node)};
}

Tape::ModuleScope::ModuleScope(Tape& tape, std::string_view path)
    : tape_(tape.recording()), outer_(tape_.context_.scopes.path) {
  tape_.in_use_.require(InUse::Level::records, "Tape::scope");
  WengertList& nodes = tape_.nodes_;
  const std::string& current = nodes.text(outer_);
  const std::string_view rest = path.substr(overlap(current, path));
  if (rest.empty()) return;
  tape_.context_.scopes.path =
      current.empty() ? nodes.intern(rest) : nodes.intern(joined(current, rest));
}

}  // namespace palimpsest
