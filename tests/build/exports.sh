# exports.sh SCRATCH TOP CORE HOST CORE_ARCHIVE HOST_ARCHIVE: what the shared libraries export is what
# the lists in lib/ say, no more and no less, so that a reviewer sees every change of the interface;
# and what the archives define for the linker to see, which hides nothing there, has our prefix:
# vqb__ where it is ours alone.
set -eu
scratch=$1 top=$2
rm -rf "$scratch" && mkdir -p "$scratch"
LC_ALL=C && export LC_ALL
failed=0

# check LIST LIBRARY
check() {
	exported=$scratch/$(basename "$1")
	"$NM" -D --defined-only --format=posix "$2" | cut -d' ' -f1 | sort >"$exported"
	if ! diff -u "$1" "$exported"; then
		echo "exports: $2 is not as $1 says; if it is right, the list is to follow"
		failed=1
	fi
	if grep -v '^vqb_' "$exported"; then
		echo "exports: $2 exports names without our prefix"
		failed=1
	fi
	if [ ! -s "$exported" ]; then
		echo "exports: $2 exports nothing"
		failed=1
	fi
}

# check_archive ARCHIVE
check_archive() {
	defined=$scratch/$(basename "$1")
	"$NM" --defined-only --extern-only --format=posix "$1" | sed -n 's/ .*//p' |
		grep -v ':$' | sort >"$defined"
	if grep -v '^vqb_' "$defined"; then
		echo "exports: $1 defines names without our prefix"
		failed=1
	fi
	if [ ! -s "$defined" ]; then
		echo "exports: $1 defines nothing"
		failed=1
	fi
}

check "$top/lib/vqblk.exports" "$3"
check "$top/lib/vqblk-host.exports" "$4"
check_archive "$5"
check_archive "$6"
exit "$failed"
