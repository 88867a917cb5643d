# freestanding.sh SCRATCH TOP SOURCE...: the core needs no C library, and no compiler's library
# either: it compiles with the compiler's own headers alone, links with nothing but four memory
# functions, and has no variables. Without optimising and with, for 32 bits, and without the vector
# and floating-point registers that kernels do not touch; by clang for other machines, too.
set -eu
scratch=$1 top=$2
shift 2
rm -rf "$scratch" && mkdir -p "$scratch"
[ $# -gt 0 ] || { echo "freestanding: no sources"; exit 1; }
failed=0
base="-std=c11 -ffreestanding -fno-pic -fno-stack-protector -nostdinc
	-isystem $("$CC" -print-file-name=include) -I$top/include"

bad() {
	echo "freestanding: $*"
	failed=1
}

# object_of SOURCE: a name that no other source's object has.
object_of() {
	echo "${1#"$top/"}" | sed 's|/|-|g; s|[.]c$|.o|'
}

# compile NAME FLAGS SOURCE...: each SOURCE into a folder of that NAME.
compile() {
	dir=$scratch/$1 flags=$2
	shift 2
	mkdir -p "$dir"
	for source in "$@"; do
		"$CC" $base $flags -c "$source" -o "$dir/$(object_of "$source")"
	done
}

# check NAME FLAGS SOURCE...: linked with nothing but four.c.
check() {
	name=$1 how=$2
	if ! "$CC" $base $how -c "$top/tests/build/four.c" -o "$scratch/four.o" 2>/dev/null; then
		echo "freestanding: $name: skipped, $CC does not do '$how'"
		return
	fi
	compile "$@"
	"$CC" $how -nostdlib -static -Wl,--fatal-warnings "$scratch/$name"/*.o "$scratch/four.o" \
		-o "$scratch/$name.linked" || bad "$name: does not link with the four functions alone"
	# b, d, c and their like: writable data, thread-local or not.
	if "$NM" -A "$scratch/$name"/*.o | grep ' [BbCDdGgSs] '; then
		bad "$name: the core has variables"
	fi
}

# foreign MACHINE FLAGS SOURCE...: there is no linker here for the MACHINE, so the names that the
# objects leave open are looked at. Arm's ABI has names of its own for the four functions.
foreign() {
	machine=$1 how="-O2 --target=$1 $2"
	shift 2
	compile "$machine" "$how" "$@"
	"$NM" -g "$scratch/$machine"/*.o | sed -n 's/.* T \(.*\)/\1/p' | sort >"$scratch/$machine.has"
	"$NM" -u "$scratch/$machine"/*.o | sed -n 's/^ *U //p' | sort -u |
		grep -vxE 'mem(cpy|move|set|cmp)|__aeabi_mem(cpy|move|set|clr)[48]?' |
		comm -23 - "$scratch/$machine.has" >"$scratch/$machine.wants"
	[ ! -s "$scratch/$machine.wants" ] ||
		bad "$machine: the core calls $(tr '\n' ' ' <"$scratch/$machine.wants")"
}

check plain -O0 "$@"
check fast -O2 "$@"
check small -Os "$@"
check integer-only "-O2 -mgeneral-regs-only" "$@"
check 32-bit "-O2 -m32 -march=i486" "$@"
case $("$CC" --version) in
*clang*)
	foreign aarch64-none-elf "" "$@"
	foreign thumbv7m-none-eabi "" "$@"
	foreign riscv32-none-elf -march=rv32imac "$@"
	foreign powerpc-none-eabi "" "$@"
	;;
esac
[ "$failed" = 0 ] && echo "freestanding: the core links with memcpy, memmove, memset and memcmp alone"
exit "$failed"
