#!/bin/sh
# Ctrl-C: what is in flight comes back, the report is printed, and half a job is not a whole one.
# shellcheck source=tests/loopback/lib.sh
. "$(dirname "$0")/lib.sh"

# interrupted SIGNAL ARGUMENT...: runs in the background and is stopped when it is well under way.
interrupted() {
	signal=$1
	shift
	rm -f img
	truncate -s "$size" img
	"$program" --image img "$@" >out 2>err </dev/null &
	pid=$!
	begun img
	sleep 0.1
	kill -"$signal" $pid
	rc=0
	wait $pid || rc=$?
}

size=16m
for how in "--iodepth 32 --queues 4" "--poll --iodepth 4" "--verify --iodepth 16"; do
	# shellcheck disable=SC2086 # words
	interrupted INT --rw randrw --runtime 60 --json $how
	[ "$rc" = 0 ] || wrong "status $rc, though nothing failed: $how; $(cat err)"
	claim bios ge 1 errors eq 0 mismatches eq 0 interrupted eq 1 seconds le 30
done
interrupted TERM --rw randwrite --runtime 60
grep -q 'randwrite (interrupted)' out || wrong "no table after SIGTERM"

# Of a copy, half is not enough.
size=2g
random_file file 1000000
truncate -s 2g file
interrupted INT --copy file --bs 512 --json
[ "$rc" = 1 ] || wrong "status $rc of a copy that was interrupted"
claim interrupted eq 1 errors eq 0
grep -q 'interrupted before the end of file' err || wrong "no word about it: $(cat err)"
rm -f file img

# Time that is over is no interruption.
passes --rw randwrite --runtime 0.3 --verify --json
claim interrupted eq 0 seconds ge 0.3 seconds le 30 mismatches eq 0 verified_bytes ge 4096

finish
