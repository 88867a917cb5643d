# stack.sh SCRATCH TOP SOURCE...: no function of the core has a frame above 512 bytes, or one whose
# size is only known when it runs, and none calls itself, directly or by way of others; so the
# depth of the stack has a bound. The call graph is gcc's; another compiler checks the frames alone.
set -eu
scratch=$1 top=$2
shift 2
limit=512
rm -rf "$scratch" && mkdir -p "$scratch"
[ $# -gt 0 ] || { echo "stack: no sources"; exit 1; }
failed=0

# On x86-64 a leaf may use 128 bytes below its frame, which -fstack-usage does not count.
no_red_zone=
"$CC" -mno-red-zone -x c -c /dev/null -o "$scratch/empty.o" 2>/dev/null && no_red_zone=-mno-red-zone

# object_of SOURCE: a name that no other source's object has.
object_of() {
	echo "${1#"$top/"}" | sed 's|/|-|g; s|[.]c$|.o|'
}

for level in -O2 -Os; do
	mkdir -p "$scratch/frames$level"
	for source in "$@"; do
		"$CC" -std=c11 -ffreestanding "$level" -fstack-usage $no_red_zone -I"$top/include" \
			-c "$source" -o "$scratch/frames$level/$(object_of "$source")"
	done
	cat "$scratch/frames$level"/*.su >"$scratch/frames$level.txt"
	[ -s "$scratch/frames$level.txt" ] || { echo "stack: $CC measured nothing"; exit 1; }
	if ! awk -F'\t' -v limit="$limit" -v level="$level" '
		# "dynamic,bounded" is a call with many arguments, and counted in the figure.
		$2 > limit || $3 == "dynamic" { print "stack: " level ": " $1 ": " $2 " bytes, " $3; bad = 1 }
		$2 > most { most = $2; where = $1 }
		END { print "stack: " level ": the largest frame is " most " bytes: " where; exit bad }
		' "$scratch/frames$level.txt"; then
		failed=1
	fi
done

# Unoptimised, so that no call is hidden by inlining.
mkdir -p "$scratch/calls"
for source in "$@"; do
	"$CC" -std=c11 -ffreestanding -O0 -fcallgraph-info -I"$top/include" -c "$source" \
		-o "$scratch/calls/$(object_of "$source")" 2>/dev/null || {
		echo "stack: no call graph from $CC: recursion not looked for"
		exit "$failed"
	}
done
sed -n 's/^edge: { sourcename: "\([^"]*\)" targetname: "\([^"]*\)".*/\1 \2/p' "$scratch/calls"/*.ci \
	>"$scratch/calls.txt"
[ -s "$scratch/calls.txt" ] || { echo "stack: no calls found"; exit 1; }
if awk '$1 == $2 { print "stack: calls itself: " $1; bad = 1 } END { exit !bad }' "$scratch/calls.txt"; then
	failed=1
fi
if ! tsort "$scratch/calls.txt" >/dev/null 2>"$scratch/loops.txt"; then
	echo "stack: these functions call each other in a ring:"
	cat "$scratch/loops.txt"
	failed=1
fi
exit "$failed"
