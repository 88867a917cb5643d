# readme.sh SCRATCH TOP: the C code that README.md shows compiles, each piece of it alone, without a
# warning.
set -eu
scratch=$1 top=$2
rm -rf "$scratch" && mkdir -p "$scratch"
failed=0

awk -v out="$scratch/piece" '
	/^```/ { inside = !inside && $0 == "```c"; if (inside) name = out (++n) ".c"; next }
	inside { print >name }
	' "$top/README.md"
for piece in "$scratch"/*.c; do
	[ -e "$piece" ] || { echo "readme: README.md shows no C code"; exit 1; }
	if ! "$CC" -std=c11 -Wall -Wextra -Wconversion -Wshadow -Wstrict-prototypes -Werror \
		-I"$top/include" -include "$top/tests/build/readme.h" -c "$piece" -o "$scratch/piece.o"; then
		echo "readme: this does not compile:"
		cat "$piece"
		failed=1
	fi
done
exit "$failed"
