# header_alone.sh HEADER COMPILER...: HEADER compiles alone and includes no heavy library.
set -eu
header=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
echo "#include \"$header\"" >"$work/alone.cpp"
"$@" -MD -MF "$work/includes" "$work/alone.cpp"
! grep -E '/(tbb|boost|Eigen|nlohmann|Random123)/|/(zstd|xxhash|mpi|csv)\.h|/iostream( |$)' "$work/includes"
