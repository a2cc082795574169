#include "strategy/export/export_text.h"

#include "strategy/export/c_text.h"

namespace palimpsest {
namespace {

constexpr std::string_view header_begin = R"(/* Written by Palimpsest. Do not edit.
 *
 * Memory in bytes: parameters $parameters, results $results, optimizer state $state,
 * arena $arena; in addition read-only tables of $constants.
 */
#ifndef @@H
#define @@H

#include <stdint.h>

#define @@ARENA_BYTES $arena
)";

constexpr std::string_view statuses = R"(
/* @@OK, or why the function stopped: an index or a class is out of range; a matrix is not positive
 * definite, or its determinant is not positive; a matrix is singular. Unless the status is @@OK,
 * results are undefined, and parameters and optimizer state are unchanged. */
#define @@OK 0
#define @@OUT_OF_RANGE 1
#define @@NOT_POSITIVE_DEFINITE 2
#define @@SINGULAR 3
)";

constexpr std::string_view source_begin = R"(
#include <math.h>
#include <string.h>

#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#endif
/* GCC 12.2 computes wrong addresses in copies of functions that it makes for constant arguments. */
#if defined(__GNUC__) && !defined(__clang__)
#define @@FUNCTION static __attribute__((noinline, noclone))
#elif defined(__GNUC__)
#define @@FUNCTION static __attribute__((noinline))
#else
#define @@FUNCTION static
#endif
)";

constexpr std::string_view arena_text = R"(
/* All intermediate values. Values that are not needed at the same time share memory. */
static union {
  unsigned char bytes[@@ARENA_BYTES];
  double alignment;
  int64_t other_alignment;
} @arena;
#define @@AT(type, offset) ((type *)(void *)(@arena.bytes + (offset)))
)";

std::string signature(const ExportText& text) {
  const std::string& name = text.exported.name;
  std::string result = "int " + name + "(";
  const std::string indent(result.size(), ' ');
  bool is_first = true;
  const auto append = [&](const std::string& parameter) {
    result += (is_first ? "" : ",\n" + indent) + parameter;
    is_first = false;
  };
  for (const CPointer& pointer : text.exported.pointers) {
    append((pointer.is_written ? "" : "const ") + c_type(pointer.type.dtype) + " *" + pointer.name);
  }
  if (text.state.exists()) append(name + "_state *state");
  if (text.optimizer.exists()) append("double learning_rate");
  return result + (is_first ? "void)" : ")");
}

}  // namespace

std::string header_text(const ExportText& text) {
  const ExportedC& exported = text.exported;
  const std::string& name = exported.name;
  std::string result = with_prefix(filled(header_begin, {{"parameters", exported.parameter_bytes},
                                                         {"results", exported.result_bytes},
                                                         {"state", exported.state_bytes},
                                                         {"arena", exported.arena_bytes},
                                                         {"constants", exported.constant_bytes}}),
                                   name);
  for (const CPointer& pointer : exported.pointers) {
    result += "#define " + upper_case(name + "_" + pointer.name) + "_ELEMENTS " +
              std::to_string(pointer.type.shape.elements()) + " /* " +
              to_string(pointer.type.shape) + " */\n";
  }
  if (text.optimizer.exists()) {
    result += "#define " + upper_case(name) + "_LEARNING_RATE " +
              c_literal(text.optimizer.learning_rate(), DType::f64) + "\n";
  }
  result += with_prefix(statuses, name);
  if (text.state.exists()) result += text.state.definition(name);
  result += "\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n";
  result +=
      "/* Returns a status. Not reentrant, since the arena is static. No two pointers may "
      "overlap. */\n";
  result += signature(text) + ";\n";
  return result + "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n";
}

std::string source_text(const ExportText& text) {
  const std::string& name = text.exported.name;
  std::string result = "/* Written by Palimpsest. Do not edit. */\n#include \"" + name + ".h\"\n";
  result += with_prefix(source_begin, name);
  if (text.exported.arena_bytes > 0) result += with_prefix(arena_text, name);
  result += text.file.tables() + text.file.functions() + "\n" + signature(text) + " {\n";
  if (text.fails) result += "  int status;\n";
  for (const CPointer& pointer : text.exported.pointers) {
    // Compilers warn about parameters that are not used.
    if (!mentions(text.statements, pointer.name)) result += "  (void)" + pointer.name + ";\n";
  }
  return result + text.statements + "  return 0;\n}\n";
}

}  // namespace palimpsest
