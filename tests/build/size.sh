# size.sh SCRATCH TOP SOURCE...: what the core adds to a program: the code and constants of each of
# its folders, as a MinSizeRel build has them from gcc on x86-64 (-Os, no unwind tables), stay within a
# budget.
set -eu
scratch=$1 top=$2
shift 2
rm -rf "$scratch" && mkdir -p "$scratch"
[ $# -gt 0 ] || { echo "size: no sources"; exit 1; }

case $(uname -m) in
x86_64) ;;
*) echo "size: the budget is for x86-64"; exit 77 ;;
esac
for tool in gcc size; do
	command -v "$tool" >/dev/null || { echo "size: no $tool"; exit 77; }
done

# text FOLDER SOURCE...: the bytes of those SOURCEs that lie in FOLDER.
text() {
	folder=$top/lib/$1
	mkdir "$scratch/$1"
	cd "$scratch/$1"
	shift
	for source in "$@"; do
		case $source in
		"$folder"/*) gcc -std=c11 -Os -ffreestanding -fno-asynchronous-unwind-tables \
			-I"$top/include" -c "$source" ;;
		esac
	done
	size -- *.o | awk 'NR > 1 { sum += $1 } END { print sum }'
}

failed=0
# within FOLDER LIMIT SOURCE...
within() {
	name=$1 limit=$2
	shift 2
	bytes=$(text "$name" "$@")
	echo "size: lib/$name: $bytes bytes of at most $limit"
	[ "$bytes" -gt 0 ] && [ "$bytes" -le "$limit" ] || failed=1
}

within ring $((24 * 1024)) "$@"
within block $((40 * 1024)) "$@"
exit "$failed"
