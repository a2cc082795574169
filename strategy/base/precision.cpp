#include "strategy/base/precision.h"

#include <array>
#include <string>

#include "autodiff/enumerators.h"
#include "strategy/base/enumerators.h"

namespace palimpsest {
namespace {

struct Named {
  PrecisionKind kind;
  std::string_view name;
};

constexpr std::array kinds{
    Named{PrecisionKind::full, "full"}, Named{PrecisionKind::single, "single"},
    Named{PrecisionKind::half, "half"}, Named{PrecisionKind::mixed, "mixed"}};

}  // namespace

std::string_view name_of(PrecisionKind kind) {
  for (const Named& each : kinds) {
    if (each.kind == kind) return each.name;
  }
  throw InternalError("unknown precision");
}

PrecisionKind precision_kind_named(std::string_view name) {
  std::string names;
  for (const Named& each : kinds) {
    if (each.name == name) return each.kind;
    names.append(names.empty() ? "" : ", ").append(each.name);
  }
  throw ArgumentError("[precision] unknown name " + std::string(name) + "; use one of " + names);
}

DType Precision::wide() const {
  if (kind == PrecisionKind::full) return DType::f64;
  return kind == PrecisionKind::half ? half : DType::f32;
}

bool Precision::needs_scaling() const { return kind == PrecisionKind::mixed && half == DType::f16; }

std::string Precision::summary() const {
  std::string text(name_of(kind));
  if (is_half(narrow())) text.append(" ").append(name_of(half));
  return text;
}

DType Precision::narrow() const { return kind == PrecisionKind::mixed ? half : wide(); }

void require_valid(const Precision& precision, std::string_view operation) {
  const std::string begin = "[" + std::string(operation) + "] ";
  require_enumerator(precision.kind, enumerators<PrecisionKind>, begin + "the kind of precision");
  require_enumerator(precision.half, enumerators<DType>, begin + "the narrow dtype");
  if (is_half(precision.half)) return;
  throw ArgumentError(begin + "the narrow dtype is " + std::string(name_of(precision.half)) +
                      "; give bf16 or f16");
}

}  // namespace palimpsest
