#include "strategy/export/c_file.h"

#include "strategy/export/c_library.h"
#include "strategy/export/emitters.h"

namespace palimpsest {
namespace {

std::string parameters_of(const CNode& node, bool has_workspace) {
  std::string text;
  const auto append = [&](const std::string& parameter) {
    text += (text.empty() ? "" : ", ") + parameter;
  };
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    append("const " + c_type(node.inputs[i].dtype) + " *x" + std::to_string(i));
  }
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    append(c_type(node.outputs[i].dtype) + " *y" + std::to_string(i));
  }
  if (has_workspace) append("void *w");
  return text;
}

/// Compilers warn about parameters that a body does not mention.
std::string unused_parameters(const CNode& node, const std::string& body, bool has_workspace) {
  std::string text;
  if (has_workspace && !mentions(body, "w")) text += "  (void)w;\n";
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const std::string name = "x" + std::to_string(i);
    if (!mentions(body, name)) text += "  (void)" + name + ";\n";
  }
  return text;
}

std::string literal_of(DType dtype, const std::byte* elements, std::int64_t i) {
  return visit(dtype, [&]<class T>(T) {
    const T element = reinterpret_cast<const T*>(elements)[i];
    if constexpr (std::is_floating_point_v<T>) return c_literal(double{element}, dtype);
    if constexpr (std::is_integral_v<T>) return c_literal(std::int64_t{element}, dtype);
    return std::string();
  });
}

}  // namespace

std::string CFile::unused_name(const std::string& like) {
  std::string name = like;
  const auto is_taken = [&] {
    return is_c_library_name(name) || is_c_library_macro(name) || !names_.insert(name).second;
  };
  for (int number = 2; is_taken(); ++number) {
    name = like + "_" + std::to_string(number);
  }
  return name;
}

void CFile::add_function(const std::string& definition) {
  if (!defined_.insert(definition).second) return;
  helpers_ += "\n" + with_prefix(definition, name_);
}

CFile::Use CFile::function_of(const CNode& node) {
  CBody body;
  const CEmitter& emitter = *find_c_emitter(node.operation.name);
  emitter.emit(node, body);
  const bool has_workspace = emitter.workspace != nullptr;
  const std::string rest = "(" + parameters_of(node, has_workspace) + ") {\n" +
                           unused_parameters(node, body.text(), has_workspace) + body.text() +
                           (body.fails() ? "  return 0;\n}\n" : "}\n");
  const std::string key = std::string(node.operation.name) + rest;
  const auto known = by_text_.find(key);
  if (known != by_text_.end()) return {known->second, body.start()};
  for (const std::string& helper : body.helpers()) add_function(helper);
  const std::string name = unused_name(name_ + "_" + c_identifier(node.operation.name));
  definitions_ += "\n" + with_prefix("@@FUNCTION ", name_) + (body.fails() ? "int " : "void ") +
                  name + with_prefix(rest, name_);
  const Function& made =
      by_text_.emplace(key, Function{name, body.fails(), has_workspace}).first->second;
  return {made, body.start()};
}

std::string CFile::add_table(std::string_view name, const ValueType& type,
                             const std::byte* elements) {
  const std::string unused = unused_name(c_identifier(name));
  const std::int64_t count = type.shape.elements();
  std::string text = "\nstatic const " + c_type(type.dtype) + " " + unused + "[" +
                     std::to_string(count > 0 ? count : 1) + "] = {";
  std::string line;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::string literal = literal_of(type.dtype, elements, i);
    if (i == 0 || line.size() + literal.size() > 96) {
      text += line + "\n ";
      line.clear();
    }
    line += " " + literal + ",";
  }
  tables_ += text + line + (count > 0 ? "\n};\n" : "0};\n");
  return unused;
}

std::string CFile::functions() const { return helpers_ + definitions_; }

}  // namespace palimpsest
