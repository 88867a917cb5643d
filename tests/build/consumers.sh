# consumers.sh SCRATCH TOP BUILD: what users do. Installs BUILD to a scratch prefix, moves that away,
# and builds and runs programs against it, each in C and as C++: with pkg-config and a plain
# compiler call, shared and static, with find_package, and with vqblk as a subdirectory.
set -eu
scratch=$1 top=$2 build=$3
rm -rf "$scratch" && mkdir -p "$scratch/mains"
cd "$scratch"
[ -n "$CXX" ] || { echo "consumers: no C++ compiler here"; exit 77; }
unset DESTDIR CFLAGS CXXFLAGS LDFLAGS PKG_CONFIG_SYSROOT_DIR || true

# attempt WHAT COMMAND...: silent where it works.
attempt() {
	doing=$1
	shift
	if ! "$@" >attempt.log 2>&1; then
		echo "consumers: $doing: failed: $*"
		cat attempt.log
		exit 1
	fi
}

# libraries_of PROGRAM
libraries_of() {
	LC_ALL=C readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'
}

# The install, moved after the fact, as whoever packs it does.
attempt install "$CMAKE" --install "$build" --prefix "$scratch/first"
mv first moved
attempt "install to DESTDIR" env DESTDIR="$scratch/dest" "$CMAKE" --install "$build"
pc=$(find "$scratch/moved" -name vqblk.pc)
dest_pc=$(find "$scratch/dest" -name vqblk.pc)
[ -n "$pc" ] && [ -n "$dest_pc" ] || { echo "consumers: no vqblk.pc was installed"; exit 1; }
if grep -rlF "$scratch/first" moved; then
	echo "consumers: the files above name the place of their first install"
	exit 1
fi
(cd "$top/include" && find . -name '*.h' | sort) >headers
(cd moved/include && find . -name '*.h' | sort) | diff headers - || {
	echo "consumers: the headers installed are not those of the tree"
	exit 1
}
libdir=$(dirname "$(dirname "$pc")")

# The programs: for the core its headers alone, for the host part all of them.
for part in vqblk host; do
	mkdir "mains/$part"
	for header in moved/include/vqblk/*.h moved/include/vqblk/host/*.h; do
		case $part:$header in vqblk:*/host/*) continue ;; esac
		echo "#include <${header#moved/include/}>"
	done >"mains/$part/all.h"
	cp "$top/tests/build/consumer/main.c" "mains/$part/main.c"
	cp "$top/tests/build/consumer/main.c" "mains/$part/main.cpp"
done
echo "#define NEEDED $(sed -n 1p "$top/lib/vqblk.exports")" >>mains/vqblk/all.h
echo "#define NEEDED $(sed -n 1p "$top/lib/vqblk-host.exports")" >>mains/host/all.h

# plain WHAT PC_PATH PKG_CONFIG_OPTIONS COMPILER_OPTIONS: by pkg-config and one call of the compiler.
plain() {
	for part in vqblk host; do
		package=vqblk
		[ $part = vqblk ] || package=vqblk-host
		flags=$(PKG_CONFIG_PATH=$2 pkg-config $3 --cflags --libs $package)
		attempt "$1 in C" "$CC" -std=c11 -Wall -Wextra -Werror $4 "mains/$part/main.c" $flags \
			-o "$1-$part-c"
		attempt "$1 in C++" "$CXX" -std=c++17 -Wall -Wextra -Werror $4 "mains/$part/main.cpp" \
			$flags -o "$1-$part-cpp"
		for program in "$1-$part-c" "$1-$part-cpp"; do
			attempt "running $1" env LD_LIBRARY_PATH="$libdir" "./$program"
		done
	done
}
plain shared "$(dirname "$pc")" "" ""
plain static "$(dirname "$pc")" --static -static
plain destdir "$(dirname "$dest_pc")" --static -static
version=$(sed -n 's/.*define VQB_VERSION_MAJOR //p' "$top/include/vqblk/api.h")
libraries_of shared-host-c >libraries
for library in libvqblk.so.$version libvqblk-host.so.$version; do
	grep -qxF "$library" libraries || { echo "consumers: not linked with $library"; exit 1; }
done

# The recipes, which are there to be copied.
for recipe in "$top"/examples/recipes/*.c; do
	name=$(basename "$recipe" .c)
	[ "$name" != disk ] || continue
	# shellcheck disable=SC2046 # a list of words
	attempt "recipe $name" "$CC" -std=c11 -D_POSIX_C_SOURCE=200809L -Wall -Wextra -Werror "$recipe" \
		"$top/examples/recipes/disk.c" -pthread -o "recipe-$name" \
		$(PKG_CONFIG_PATH=$(dirname "$pc") pkg-config --cflags --libs vqblk-host)
	attempt "running recipe $name" env LD_LIBRARY_PATH="$libdir" "./recipe-$name"
done

# project WHAT PARTS CMAKE_ARGUMENT...: the CMake project in consumer/.
project() {
	what=$1 parts=$2
	shift 2
	attempt "configuring with $what" "$CMAKE" -S "$top/tests/build/consumer" -B "$scratch/$what" \
		-DCMAKE_C_COMPILER="$CC" -DCMAKE_CXX_COMPILER="$CXX" -DPARTS="$parts" \
		-DMAINS="$scratch/mains" "$@"
	attempt "building with $what" "$CMAKE" --build "$scratch/$what"
	for part in $(echo "$parts" | tr ';' ' '); do
		for language in c cpp; do
			attempt "running $what" "$(find "$what" -type f -name "$part-$language")"
		done
	done
}
project package-static "vqblk;host" -DCMAKE_PREFIX_PATH="$scratch/moved"
project package-shared "vqblk;host" -DCMAKE_PREFIX_PATH="$scratch/moved" -DBUILD_SHARED_LIBS=ON
project subdirectory "vqblk;host" -DVQBLK_SOURCE="$top"
libraries_of package-shared/host-c | grep -q libvqblk || {
	echo "consumers: BUILD_SHARED_LIBS does not give the shared libraries"
	exit 1
}

# The core without the host part, which then is not found.
attempt "configuring the core alone" "$CMAKE" -S "$top" -B core -DCMAKE_C_COMPILER="$CC" \
	-DVQBLK_BUILD_HOST=OFF -DVQBLK_BUILD_TESTS=OFF -DVQBLK_BUILD_BENCH=OFF
attempt "building the core alone" "$CMAKE" --build core
attempt "installing the core alone" "$CMAKE" --install core --prefix "$scratch/core-only"
if [ -n "$(find core-only -name '*host*')" ]; then
	echo "consumers: the core alone installs something of the host part"
	exit 1
fi
project core-package vqblk -DCMAKE_PREFIX_PATH="$scratch/core-only"
if "$CMAKE" -S "$top/tests/build/consumer" -B core-host -DPARTS=host -DMAINS="$scratch/mains" \
	-DCMAKE_PREFIX_PATH="$scratch/core-only" >attempt.log 2>&1 ||
	! grep -q "set vqblk_FOUND to FALSE" attempt.log; then
	echo "consumers: find_package finds a host part that is not there"
	exit 1
fi
