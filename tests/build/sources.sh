# sources.sh SCRATCH TOP BUILD: the lists of sources are written by hand; this finds the file that
# somebody wrote and forgot to list, which would never be compiled, or tested, or test anything.
set -eu
scratch=$1 top=$2 build=$3
rm -rf "$scratch" && mkdir -p "$scratch"
cd "$top"

# Those that checks compile on their own, and those that are left out where there is no liburing:
cat >"$scratch/apart" <<'END'
bench/peers/linux.c
lib/host/uring.c
lib/host/uring_setup.c
tests/build/consumer/main.c
tests/build/four.c
tests/build/readme.c
tests/host/test_uring_calls.c
END
sed -n "s|^ *\"file\": \"$top/\(.*\)\",*\$|\1|p" "$build/compile_commands.json" |
	cat - "$scratch/apart" | sort -u >"$scratch/listed"
[ "$(wc -l <"$scratch/listed")" -gt 20 ] || { echo "sources: no compile_commands.json to go by"; exit 1; }
find lib tests examples bench -name '*.c' | sort | comm -23 - "$scratch/listed" >"$scratch/forgotten"
if [ -s "$scratch/forgotten" ]; then
	echo "sources: in no CMakeLists.txt:"
	cat "$scratch/forgotten"
	exit 1
fi
