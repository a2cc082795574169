# older_standard.sh COMPILER...: the umbrella header is one error of words for a compiler that is set to an older C++.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo '#include "palimpsest.h"' >"$work/old.cpp"
! "$@" "$work/old.cpp" 2>"$work/errors"
cat "$work/errors"
[ "$(grep -c 'error' "$work/errors")" -le 2 ] && grep -q 'error.*Palimpsest needs C++20.*-std=c++20' "$work/errors"
