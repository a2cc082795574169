#include "strategy/export/c_library.h"

#include "strategy/export/c_text.h"

namespace palimpsest {
namespace {

/// Each has versions for other floating types, which end in f and l.
constexpr std::string_view math_functions =
    "acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh drem erf erfc exp exp10 "
    "exp2 expm1 fabs fdim finite floor fma fmax fmin fmod frexp gamma hypot ilogb isinf isnan "
    "j0 j1 jn ldexp lgamma lgamma_r llrint llround log log10 log1p log2 logb lrint lround modf "
    "nan nearbyint nextafter nexttoward pow remainder remquo rint round scalb scalbln scalbn "
    "significand sin sincos sinh sqrt tan tanh tgamma trunc y0 y1 yn";

constexpr std::string_view other_functions_and_types =
    "fpclassify isfinite isgreater isgreaterequal isless islessequal islessgreater isnormal "
    "isunordered signbit signgam bcmp bcopy bzero ffs ffsl ffsll index rindex memccpy memchr "
    "memcmp memcpy memmem memmove mempcpy memrchr memset rawmemchr stpcpy stpncpy strcasecmp "
    "strcasestr strcat strchr strchrnul strcmp strcoll strcpy strcspn strdup strerror "
    "strerror_r strlcat strlcpy strlen strncasecmp strncat strncmp strncpy strndup strnlen "
    "strpbrk strrchr strsep strsignal strspn strstr strtok strtok_r strverscmp strxfrm double_t "
    "float_t locale_t size_t wchar_t ptrdiff_t int8_t int16_t int32_t int64_t int_least8_t "
    "int_least16_t int_least32_t int_least64_t int_fast8_t int_fast16_t int_fast32_t "
    "int_fast64_t uint8_t uint16_t uint32_t uint64_t uint_least8_t uint_least16_t "
    "uint_least32_t uint_least64_t uint_fast8_t uint_fast16_t uint_fast32_t uint_fast64_t "
    "intmax_t uintmax_t intptr_t uintptr_t";

constexpr std::string_view library_macros =
    "NAN NULL INFINITY HUGE_VAL HUGE_VALF HUGE_VALL FP_NAN FP_INFINITE FP_ZERO FP_SUBNORMAL "
    "FP_NORMAL FP_ILOGB0 FP_ILOGBNAN FP_FAST_FMA FP_FAST_FMAF FP_FAST_FMAL MATH_ERRNO "
    "MATH_ERREXCEPT math_errhandling MAXFLOAT M_E M_LOG2E M_LOG10E M_LN2 M_LN10 M_PI M_PI_2 "
    "M_PI_4 M_1_PI M_2_PI M_2_SQRTPI M_SQRT2 M_SQRT1_2 INT8_MIN INT8_MAX UINT8_MAX INT16_MIN "
    "INT16_MAX UINT16_MAX INT32_MIN INT32_MAX UINT32_MAX INT64_MIN INT64_MAX UINT64_MAX "
    "INT_LEAST8_MIN INT_LEAST8_MAX UINT_LEAST8_MAX INT_LEAST16_MIN INT_LEAST16_MAX "
    "UINT_LEAST16_MAX INT_LEAST32_MIN INT_LEAST32_MAX UINT_LEAST32_MAX INT_LEAST64_MIN "
    "INT_LEAST64_MAX UINT_LEAST64_MAX INT_FAST8_MIN INT_FAST8_MAX UINT_FAST8_MAX INT_FAST16_MIN "
    "INT_FAST16_MAX UINT_FAST16_MAX INT_FAST32_MIN INT_FAST32_MAX UINT_FAST32_MAX "
    "INT_FAST64_MIN INT_FAST64_MAX UINT_FAST64_MAX INTPTR_MIN INTPTR_MAX UINTPTR_MAX INTMAX_MIN "
    "INTMAX_MAX UINTMAX_MAX PTRDIFF_MIN PTRDIFF_MAX SIG_ATOMIC_MIN SIG_ATOMIC_MAX SIZE_MAX "
    "WCHAR_MIN WCHAR_MAX WINT_MIN WINT_MAX";

}  // namespace

bool is_c_library_name(std::string_view name) {
  if (mentions(other_functions_and_types, name) || mentions(math_functions, name)) return true;
  const bool has_suffix = name.ends_with('f') || name.ends_with('l');
  return has_suffix && mentions(math_functions, name.substr(0, name.size() - 1));
}

bool is_c_library_macro(std::string_view name) { return mentions(library_macros, name); }

}  // namespace palimpsest
