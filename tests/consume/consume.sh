#!/bin/bash
# consume.sh WAY SOURCE_ROOT BUILD_ROOT PREFIX LIBDIR HAS_MPI: builds and runs the consumer in one of four ways, and
# where HAS_MPI is true that of palimpsest-mpi.
set -euo pipefail
way=$1 source=$2 build=$3 prefix=$4 libdir=$5 has_mpi=$6
here=$source/tests/consume
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

install_scratch() {
  DESTDIR=$work/root meson install -C "$build" --no-rebuild >"$work/install.log" || { cat "$work/install.log"; exit 1; }
  scratch=$work/root$prefix
  export LD_LIBRARY_PATH=$scratch/$libdir
}

case $way in
  pkg_config)
    install_scratch
    export PKG_CONFIG_PATH=$scratch/$libdir/pkgconfig
    # shellcheck disable=SC2046,SC2086
    $CXX -std=c++20 "$here/consumer.cpp" -o "$work/consumer" \
      $(pkg-config --define-prefix --cflags --libs palimpsest)
    "$work/consumer"
    if [ "$has_mpi" = true ]; then
      # shellcheck disable=SC2046,SC2086
      $CXX -std=c++20 "$here/mpi_consumer.cpp" -o "$work/mpi_consumer" \
        $(pkg-config --define-prefix --cflags --libs palimpsest-mpi)
      "$work/mpi_consumer"
    fi
    # The program finds the library beside it.
    [ ! -x "$scratch/bin/palimpsest-plan" ] || env -u LD_LIBRARY_PATH "$scratch/bin/palimpsest-plan" --list
    ;;
  find_package)
    install_scratch
    cp "$here"/*consumer.cpp "$here"/CMakeLists.txt "$work"
    CXX=${CXX##* } cmake -S "$work" -B "$work/build" -G Ninja -DCMAKE_PREFIX_PATH="$scratch" -DWITH_MPI="$has_mpi"
    cmake --build "$work/build"
    "$work/build/consumer"
    [ "$has_mpi" = false ] || "$work/build/mpi_consumer"
    ;;
  dependency)
    install_scratch
    cp "$here/consumer.cpp" "$work"
    cp "$here/subproject.meson.build" "$work/meson.build"
    PKG_CONFIG_PATH=$scratch/$libdir/pkgconfig PKG_CONFIG_SYSROOT_DIR=$work/root \
      meson setup "$work/build" "$work" --wrap-mode=nofallback
    ninja -C "$work/build"
    "$work/build/consumer"
    ;;
  subproject)
    # Static, where the installed library is shared; unoptimised and with one level of kernels, to be quick.
    mkdir "$work/subprojects"
    ln -s "$source" "$work/subprojects/palimpsest"
    cp "$here/consumer.cpp" "$work"
    cp "$here/subproject.meson.build" "$work/meson.build"
    meson setup "$work/build" "$work" --force-fallback-for=palimpsest --default-library=static \
      -Dbuildtype=plain -Doptimization=0 -Dpalimpsest:kernels=native
    ninja -C "$work/build"
    "$work/build/consumer"
    # Kernels that this build has not are an error that says how to get them.
    if grep -qs avx2 /proc/cpuinfo; then
      if PALIMPSEST_KERNELS=base "$work/build/consumer" 2>"$work/error"; then exit 1; fi
      grep -F 'build the library with -Dkernels=all' "$work/error"
    fi
    ;;
esac
