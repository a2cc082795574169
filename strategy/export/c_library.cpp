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

/// Symbols of <regexp.h>, a header that glibc no longer has.
constexpr std::string_view undeclared_symbols = "advance loc1 loc2 locs step";

/// Macros with parameters. Programs may include their headers before the exported one.
constexpr std::string_view function_macros =
    "assert FD_CLR FD_ISSET FD_SET FD_ZERO INT16_C INT32_C INT64_C INT8_C INTMAX_C UINT16_C "
    "UINT32_C UINT64_C UINT8_C UINTMAX_C WEXITSTATUS WIFCONTINUED WIFEXITED WIFSIGNALED "
    "WIFSTOPPED WSTOPSIG WTERMSIG alloca be16toh be32toh be64toh htobe16 htobe32 htobe64 htole16 "
    "htole32 htole64 isalnum isalpha isblank iscanonical iscntrl isdigit iseqsig isgraph islower "
    "isprint ispunct issignaling isspace issubnormal isupper isxdigit iszero le16toh le32toh "
    "le64toh offsetof strdupa strndupa unreachable";

/// Numbers of <math.h>, each of which has versions for other floating types.
constexpr std::string_view math_constants =
    "M_1_PI M_2_PI M_2_SQRTPI M_E M_LN10 M_LN2 M_LOG10E M_LOG2E M_PI M_PI_2 M_PI_4 M_SQRT1_2 "
    "M_SQRT2";

constexpr std::string_view error_numbers =
    "E2BIG EACCES EADDRINUSE EADDRNOTAVAIL EADV EAFNOSUPPORT EAGAIN EALREADY EBADE EBADF EBADFD "
    "EBADMSG EBADR EBADRQC EBADSLT EBFONT EBUSY ECANCELED ECHILD ECHRNG ECOMM ECONNABORTED "
    "ECONNREFUSED ECONNRESET EDEADLK EDEADLOCK EDESTADDRREQ EDOM EDOTDOT EDQUOT EEXIST EFAULT "
    "EFBIG EHOSTDOWN EHOSTUNREACH EHWPOISON EIDRM EILSEQ EINPROGRESS EINTR EINVAL EIO EISCONN "
    "EISDIR EISNAM EKEYEXPIRED EKEYREJECTED EKEYREVOKED EL2HLT EL2NSYNC EL3HLT EL3RST ELIBACC "
    "ELIBBAD ELIBEXEC ELIBMAX ELIBSCN ELNRNG ELOOP EMEDIUMTYPE EMFILE EMLINK EMSGSIZE EMULTIHOP "
    "ENAMETOOLONG ENAVAIL ENETDOWN ENETRESET ENETUNREACH ENFILE ENOANO ENOBUFS ENOCSI ENODATA "
    "ENODEV ENOENT ENOEXEC ENOKEY ENOLCK ENOLINK ENOMEDIUM ENOMEM ENOMSG ENONET ENOPKG "
    "ENOPROTOOPT ENOSPC ENOSR ENOSTR ENOSYS ENOTBLK ENOTCONN ENOTDIR ENOTEMPTY ENOTNAM "
    "ENOTRECOVERABLE ENOTSOCK ENOTSUP ENOTTY ENOTUNIQ ENXIO EOPNOTSUPP EOVERFLOW EOWNERDEAD EPERM "
    "EPFNOSUPPORT EPIPE EPROTO EPROTONOSUPPORT EPROTOTYPE ERANGE EREMCHG EREMOTE EREMOTEIO "
    "ERESTART ERFKILL EROFS ESHUTDOWN ESOCKTNOSUPPORT ESPIPE ESRCH ESRMNT ESTALE ESTRPIPE ETIME "
    "ETIMEDOUT ETOOMANYREFS ETXTBSY EUCLEAN EUNATCH EUSERS EWOULDBLOCK EXDEV EXFULL";

constexpr std::string_view other_macros =
    "BIG_ENDIAN BITINT_MAXWIDTH BOOL_MAX BOOL_WIDTH BUFSIZ BYTE_ORDER CHAR_BIT CHAR_MAX CHAR_MIN "
    "CHAR_WIDTH CLOCKS_PER_SEC DBL_DECIMAL_DIG DBL_DIG DBL_EPSILON DBL_HAS_SUBNORM "
    "DBL_IS_IEC_60559 DBL_MANT_DIG DBL_MAX DBL_MAX_10_EXP DBL_MAX_EXP DBL_MIN DBL_MIN_10_EXP "
    "DBL_MIN_EXP DBL_NORM_MAX DBL_SNAN DBL_TRUE_MIN DEC128_EPSILON DEC128_MANT_DIG DEC128_MAX "
    "DEC128_MAX_EXP DEC128_MIN DEC128_MIN_EXP DEC128_SNAN DEC128_TRUE_MIN DEC32_EPSILON "
    "DEC32_MANT_DIG DEC32_MAX DEC32_MAX_EXP DEC32_MIN DEC32_MIN_EXP DEC32_SNAN DEC32_TRUE_MIN "
    "DEC64_EPSILON DEC64_MANT_DIG DEC64_MAX DEC64_MAX_EXP DEC64_MIN DEC64_MIN_EXP DEC64_SNAN "
    "DEC64_TRUE_MIN DECIMAL_DIG DEC_EVAL_METHOD DEC_INFINITY DEC_NAN EOF EXIT_FAILURE "
    "EXIT_SUCCESS FD_SETSIZE FILENAME_MAX FLT_DECIMAL_DIG FLT_DIG FLT_EPSILON FLT_EVAL_METHOD "
    "FLT_HAS_SUBNORM FLT_IS_IEC_60559 FLT_MANT_DIG FLT_MAX FLT_MAX_10_EXP FLT_MAX_EXP FLT_MIN "
    "FLT_MIN_10_EXP FLT_MIN_EXP FLT_NORM_MAX FLT_RADIX FLT_ROUNDS FLT_SNAN FLT_TRUE_MIN FOPEN_MAX "
    "FP_FAST_FMA FP_FAST_FMAF FP_FAST_FMAL FP_ILOGB0 FP_ILOGBNAN FP_INFINITE FP_INT_DOWNWARD "
    "FP_INT_TONEAREST FP_INT_TONEARESTFROMZERO FP_INT_TOWARDZERO FP_INT_UPWARD FP_LLOGB0 "
    "FP_LLOGBNAN FP_NAN FP_NORMAL FP_SUBNORMAL FP_ZERO HUGE_VAL HUGE_VALF HUGE_VALL HUGE_VAL_F128 "
    "HUGE_VAL_F32 HUGE_VAL_F32X HUGE_VAL_F64 HUGE_VAL_F64X INFINITY INT16_MAX INT16_MIN "
    "INT16_WIDTH INT32_MAX INT32_MIN INT32_WIDTH INT64_MAX INT64_MIN INT64_WIDTH INT8_MAX "
    "INT8_MIN INT8_WIDTH INTMAX_MAX INTMAX_MIN INTMAX_WIDTH INTPTR_MAX INTPTR_MIN INTPTR_WIDTH "
    "INT_FAST16_MAX INT_FAST16_MIN INT_FAST16_WIDTH INT_FAST32_MAX INT_FAST32_MIN "
    "INT_FAST32_WIDTH INT_FAST64_MAX INT_FAST64_MIN INT_FAST64_WIDTH INT_FAST8_MAX INT_FAST8_MIN "
    "INT_FAST8_WIDTH INT_LEAST16_MAX INT_LEAST16_MIN INT_LEAST16_WIDTH INT_LEAST32_MAX "
    "INT_LEAST32_MIN INT_LEAST32_WIDTH INT_LEAST64_MAX INT_LEAST64_MIN INT_LEAST64_WIDTH "
    "INT_LEAST8_MAX INT_LEAST8_MIN INT_LEAST8_WIDTH INT_MAX INT_MIN INT_WIDTH LDBL_DECIMAL_DIG "
    "LDBL_DIG LDBL_EPSILON LDBL_HAS_SUBNORM LDBL_IS_IEC_60559 LDBL_MANT_DIG LDBL_MAX "
    "LDBL_MAX_10_EXP LDBL_MAX_EXP LDBL_MIN LDBL_MIN_10_EXP LDBL_MIN_EXP LDBL_NORM_MAX LDBL_SNAN "
    "LDBL_TRUE_MIN LITTLE_ENDIAN LLONG_MAX LLONG_MIN LLONG_WIDTH LONG_MAX LONG_MIN LONG_WIDTH "
    "L_ctermid L_cuserid L_tmpnam MATH_ERREXCEPT MATH_ERRNO MAXFLOAT MB_CUR_MAX MB_LEN_MAX NAN "
    "NFDBITS NULL PDP_ENDIAN PTRDIFF_MAX PTRDIFF_MIN PTRDIFF_WIDTH P_tmpdir RAND_MAX "
    "RENAME_EXCHANGE RENAME_NOREPLACE RENAME_WHITEOUT SCHAR_MAX SCHAR_MIN SCHAR_WIDTH SEEK_CUR "
    "SEEK_DATA SEEK_END SEEK_HOLE SEEK_SET SHRT_MAX SHRT_MIN SHRT_WIDTH SIG_ATOMIC_MAX "
    "SIG_ATOMIC_MIN SIG_ATOMIC_WIDTH SIZE_MAX SIZE_WIDTH SNAN SNANF SNANF128 SNANF32 SNANF32X "
    "SNANF64 SNANF64X SNANL TIME_UTC TMP_MAX UCHAR_MAX UCHAR_WIDTH UINT16_MAX UINT16_WIDTH "
    "UINT32_MAX UINT32_WIDTH UINT64_MAX UINT64_WIDTH UINT8_MAX UINT8_WIDTH UINTMAX_MAX "
    "UINTMAX_WIDTH UINTPTR_MAX UINTPTR_WIDTH UINT_FAST16_MAX UINT_FAST16_WIDTH UINT_FAST32_MAX "
    "UINT_FAST32_WIDTH UINT_FAST64_MAX UINT_FAST64_WIDTH UINT_FAST8_MAX UINT_FAST8_WIDTH "
    "UINT_LEAST16_MAX UINT_LEAST16_WIDTH UINT_LEAST32_MAX UINT_LEAST32_WIDTH UINT_LEAST64_MAX "
    "UINT_LEAST64_WIDTH UINT_LEAST8_MAX UINT_LEAST8_WIDTH UINT_MAX UINT_WIDTH ULLONG_MAX "
    "ULLONG_WIDTH ULONG_MAX ULONG_WIDTH USHRT_MAX USHRT_WIDTH WCHAR_MAX WCHAR_MIN WCHAR_WIDTH "
    "WCONTINUED WEXITED WINT_MAX WINT_MIN WINT_WIDTH WNOHANG WNOWAIT WSTOPPED WUNTRACED errno "
    "linux math_errhandling stderr stdin stdout unix";

/// The name of a number of <math.h>, without the suffix of its floating type.
std::string_view without_type(std::string_view name) {
  for (const std::string_view suffix : {"f32x", "f64x", "f128", "f16", "f32", "f64", "f", "l"}) {
    if (name.ends_with(suffix)) return name.substr(0, name.size() - suffix.size());
  }
  return name;
}

}  // namespace

bool is_c_library_name(std::string_view name) {
  for (const auto names :
       {other_functions_and_types, math_functions, function_macros, undeclared_symbols}) {
    if (mentions(names, name)) return true;
  }
  const bool has_suffix = name.ends_with('f') || name.ends_with('l');
  return has_suffix && mentions(math_functions, name.substr(0, name.size() - 1));
}

bool is_c_library_macro(std::string_view name) {
  return mentions(other_macros, name) || mentions(error_numbers, name) ||
         mentions(math_constants, without_type(name));
}

}  // namespace palimpsest
