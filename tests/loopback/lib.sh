# For the scripts of this folder: NAME.sh DIRECTORY PROGRAM JSON_CHECKER.
# shellcheck shell=sh
set -eu
here=$(cd "$(dirname "$0")" && pwd -P)
work=$1 program=$2 json=$3
rm -rf "$work"
mkdir -p "$work"
cd "$work"
LC_ALL=C
export LC_ALL
failures=0

wrong() {
	echo "WRONG: $*"
	failures=$((failures + 1))
}

# run ARGUMENT...: the program's status in $rc, what it said in the files out and err.
run() {
	rc=0
	"$program" "$@" >out 2>err </dev/null || rc=$?
}

# passes ARGUMENT...
passes() {
	run "$@"
	[ "$rc" = 0 ] || wrong "exit status $rc of: $*; $(cat err)"
	[ ! -s err ] || wrong "said on stderr by $*: $(cat err)"
}

# fails TEXT ARGUMENT...: one line with TEXT on stderr, exit status 1 to 125.
fails() {
	text=$1
	shift
	run "$@"
	[ "$rc" -ge 1 ] && [ "$rc" -le 125 ] || wrong "exit status $rc of: $*"
	[ "$(wc -l <err)" = 1 ] || wrong "not one line on stderr of $*: $(cat err)"
	grep -qF -e "$text" err || wrong "no '$text' from $*: $(cat err)"
}

# refused TEXT ARGUMENT...: fails before anything is done to the image that was kept.
refused() {
	fails "$@"
	[ ! -e img.kept ] || unchanged img
	[ ! -s out ] || wrong "refused, and said on stdout: $*: $(cat out)"
}

# claim FIELD OP NUMBER...: about the JSON that the last run printed.
claim() {
	"$json" "$@" <out || wrong "claims $*"
}

# random_file NAME BYTES
random_file() {
	head -c "$2" /dev/urandom >"$1"
}

# keep NAME, and later unchanged NAME: is it what it was? refused asks that of img.
keep() {
	cp "$1" "$1.kept"
}

unchanged() {
	cmp -s "$1" "$1.kept" || wrong "$1 has changed"
}

# begun IMG: waits until the program has written to an image of holes.
begun() {
	tries=0
	while cmp -s -n 1048576 "$1" /dev/zero; do
		tries=$((tries + 1))
		if [ $tries = 500 ]; then
			wrong "nothing was written to $1"
			break
		fi
		sleep 0.02
	done
}

finish() {
	cd "$here"
	if [ "$failures" = 0 ]; then
		rm -rf "$work"
		exit 0
	fi
	echo "$failures wrong; see $work"
	exit 1
}
