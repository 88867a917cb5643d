# headers.sh SCRATCH TOP: each public header compiles alone, twice over, without a warning, in C and
# C++; those of the core with no C library in sight, and vqblk.h has them all.
set -eu
scratch=$1 top=$2
rm -rf "$scratch" && mkdir -p "$scratch"
cd "$top/include"
failed=0
warnings="-Wall -Wextra -Wconversion -Wshadow -Wundef -pedantic -Werror"

bad() {
	echo "headers: $*"
	failed=1
}

for header in vqblk/*.h vqblk/host/*.h; do
	[ -e "$header" ] || continue
	printf '#include <%s>\n#include <%s>\n' "$header" "$header" >"$scratch/one.c"
	"$CC" -std=c11 $warnings -Wstrict-prototypes -Wvla -I. -fsyntax-only "$scratch/one.c" ||
		bad "$header does not stand alone in C"
	if [ -n "$CXX" ]; then
		"$CXX" -std=c++17 $warnings -I. -fsyntax-only -x c++ "$scratch/one.c" ||
			bad "$header does not stand alone in C++"
	fi

	case $header in vqblk/host/*) continue ;; esac
	"$CC" -std=c11 -ffreestanding -nostdinc -isystem "$("$CC" -print-file-name=include)" -I. \
		-E -P "$scratch/one.c" >"$scratch/one.i" || bad "$header wants a C library"
	if grep -nwE '_Atomic|_Thread_local' "$scratch/one.i"; then
		bad "$header has atomic or thread-local types, which not every user's compiler has"
	fi
	[ "$header" = vqblk/vqblk.h ] || grep -q "^#include <$header>" vqblk/vqblk.h ||
		bad "vqblk.h does not include $header"
done
[ -n "$CXX" ] || echo "headers: no C++ compiler here, so C++ was not tried"
exit "$failed"
