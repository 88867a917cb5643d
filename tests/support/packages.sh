# What the commands of this tree need of Debian, and how they build: sourced by tests/run,
# tests/fuzz/run, examples/run, bench/run and .ci/run with $top set to the top of the tree.
# shellcheck shell=sh disable=SC2034,SC2154

packages_build="gcc libc6-dev make cmake pkg-config"
packages_examples="$packages_build libjansson-dev liburing-dev e2fsprogs"
packages_tests="$packages_build libjansson-dev liburing-dev g++ binutils libcmocka-dev strace spin"
packages_bench="$packages_build libjansson-dev liburing-dev valgrind gnuplot-nox"
packages_bench_peers="linux-source-6.1" # those who have none compare with nobody
packages_fuzz="$packages_build clang libclang-rt-dev"
packages_ci="$packages_tests $packages_examples clang libclang-rt-dev clang-tidy clang-format
	cppcheck shellcheck valgrind gcovr gcc-s390x-linux-gnu libc6-dev-s390x-cross qemu-user
	gcc-i686-linux-gnu libc6-dev-i386-cross gcc-aarch64-linux-gnu libc6-dev-arm64-cross"

# need_packages PACKAGE...: installs those that are missing; who may not is told how, and we stop.
need_packages() {
	if ! command -v dpkg-query >/dev/null; then
		echo "not a Debian system: taking it that these are here in some form:" "$@" >&2
		return 0
	fi
	missing=
	for package in "$@"; do
		case $(dpkg-query -W -f=' ${db:Status-Status} ' "$package" 2>/dev/null) in
		*" installed "*) continue ;;
		esac
		case " $missing " in
		*" $package "*) ;;
		*) missing="$missing $package" ;;
		esac
	done
	[ -n "$missing" ] || return 0
	if [ "$(id -u)" -ne 0 ]; then
		echo "apt-get install$missing"
		exit 1
	fi
	echo "== installing$missing"
	DEBIAN_FRONTEND=noninteractive
	export DEBIAN_FRONTEND
	# shellcheck disable=SC2086 # a list of words
	apt_get update && apt_get install -y --no-install-recommends $missing && return 0
	echo "could not install$missing" >&2
	exit 1
}

# want_packages PACKAGE...: the same, but without them we go on.
want_packages() {
	(need_packages "$@") || echo "going on without" "$@" >&2
}

# apt_get ARGUMENT...: says nothing unless it fails.
apt_get() {
	said=$(apt-get -q "$@" </dev/null 2>&1) && return 0
	printf '%s\n' "$said" >&2
	return 1
}

# build_tree [CMAKE ARGUMENT...]: configures and builds in build/: all, or what $build_target says.
build_tree() {
	# A build directory that came along with a copy of the tree still names the old place.
	if [ -e "$top/build/CMakeCache.txt" ] &&
		! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$top" "$top/build/CMakeCache.txt"; then
		rm -rf "$top/build"
	fi
	# Warnings are errors where a change is tested, and nobody's trouble elsewhere.
	cmake -S "$top" -B "$top/build" ${CI:+-DVQBLK_WERROR=ON} "$@" &&
		cmake --build "$top/build" --parallel "$(nproc)" ${build_target:+--target "$build_target"}
}
