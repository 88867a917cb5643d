# exports.sh SCRATCH TOP CORE_LIBRARY HOST_LIBRARY: what the shared libraries export is what the lists
# in lib/ say, no more and no less, so that a reviewer sees every change of the interface.
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

check "$top/lib/vqblk.exports" "$3"
check "$top/lib/vqblk-host.exports" "$4"
exit "$failed"
