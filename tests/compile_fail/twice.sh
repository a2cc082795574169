# twice.sh FILE COMPILER...: FILE compiles, and does not once -DWRONG is given.
set -eu
file=$1
shift
"$@" "$file"
! "$@" -DWRONG "$file"
