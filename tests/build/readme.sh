# readme.sh SCRATCH TOP LIBRARY: the C code that README.md shows compiles, each piece of it alone and
# without a warning, and works: the driver's piece and the device's exchange messages, and the block
# driver's writes to a disk.
set -eu
scratch=$1 top=$2 library=$3
rm -rf "$scratch" && mkdir -p "$scratch"

awk -v out="$scratch/piece" '
	/^```/ { inside = !inside && $0 == "```c"; if (inside) name = out (++n) ".c"; next }
	inside { print >name }
	' "$top/README.md"
[ -e "$scratch/piece1.c" ] && [ -e "$scratch/piece2.c" ] && [ -e "$scratch/piece3.c" ] ||
	{ echo "readme: README.md does not show the C code of both sides, and of a disk"; exit 1; }

for piece in "$scratch"/*.c; do
	"$CC" -std=c11 -Wall -Wextra -Wconversion -Wshadow -Wstrict-prototypes -Werror -I"$top/include" \
		-include "$top/tests/build/readme.h" -c "$piece" -o "$piece.o" ||
		{ echo "readme: this does not compile:"; cat "$piece"; exit 1; }
done
"$CC" -std=c11 -D_POSIX_C_SOURCE=200809L -Wall -Wextra -Werror -I"$top/include" \
	"$top/tests/build/readme.c" "$scratch"/*.o "$library" -pthread -o "$scratch/run"
"$scratch/run"
