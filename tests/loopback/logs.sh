#!/bin/sh
# --read_iolog: recorded logs, and logs that are wrong.
# shellcheck source=tests/loopback/lib.sh
. "$(dirname "$0")/lib.sh"
data=$here/data

truncate -s 16m img

for log in fio-v2 fio-v3; do
	ios=$(grep -cE ' (read|write|sync|datasync) [0-9]+ [0-9]+$' "$data/$log.log")
	trims=$(grep -cE ' trim ' "$data/$log.log") || :
	flushes=$(grep -cE ' (sync|datasync) ' "$data/$log.log") || :
	bytes=$(awk '/ (read|write) [0-9]+ [0-9]+$/ { n += $NF } END { print n }' "$data/$log.log")
	[ "$ios" -gt 50 ] || wrong "$log: only $ios I/Os"
	for how in "" "--verify" "--verify --queues 4 --iodepth 8" "--poll --iodepth 3 --verify"; do
		# shellcheck disable=SC2086 # words
		passes --read_iolog "$data/$log.log" --image img --json $how
		claim job is read_iolog bios eq "$ios" requests eq "$ios" bytes eq "$bytes" \
			trims_skipped eq "$trims" errors eq 0 mismatches eq 0
		[ -z "$how" ] || claim verified_bytes ge 1000000
	done
	passes --read_iolog "$data/$log.log" --json
	claim bios eq "$ios"
	# Each flush gets through to the file.
	if command -v strace >/dev/null && strace -o /dev/null true 2>/dev/null; then
		ASAN_OPTIONS=detect_leaks=0 strace -f -o trace -e trace=fdatasync "$program" --read_iolog "$data/$log.log" \
			--image img >/dev/null
		[ "$(grep -c 'fdatasync(' trace || :)" = "$flushes" ] ||
			wrong "$log: not $flushes times fdatasync"
	fi
done

# With a seed, the image ends up the same however many queues there are.
for how in "--queues 1" "--queues 4 --iodepth 16" "--queues 3 --iodepth 2 --poll"; do
	rm img
	truncate -s 16m img
	# shellcheck disable=SC2086 # words
	passes --read_iolog "$data/fio-v2.log" --image img --seed 7 $how
	[ ! -e img.kept ] || unchanged img
	keep img
done

# A log that is wrong in its last line changes nothing.
keep img
{
	cat "$data/fio-v2.log"
	echo "mail add"
	echo "mail open"
	echo "mail write 16777216 512"
} >bad.log
lines=$(wc -l <bad.log)
refused "bad.log:$lines: write of 512 bytes at 16777216 is beyond the disk" --read_iolog bad.log --image img
unchanged img
[ "$(cut -c 1-8 err)" = "bad.log:" ] || wrong "does not begin with FILE:LINE: $(cat err)"

# bad LINE TEXT: a log whose fourth line is LINE.
bad() {
	printf 'fio version 2 iolog\nx add\nx open\n%s\n' "$1" >bad.log
	refused "bad.log:4: $2" --read_iolog bad.log --image img
}
bad "x write 100 512" "offset 100"
bad "x write 0 100" "length 100"
bad "x write 0 0" "length 0"
bad "x jump 0 512" "unknown action"
bad "x write 0" "write needs"
bad "x write zero 512" "offset 'zero'"
bad "y write 0 512" "write of 'y'"
echo "x add" >bad.log
refused "bad.log:1: the first line" --read_iolog bad.log --image img
: >bad.log
refused "bad.log:1: " --read_iolog bad.log --image img
refused "nowhere.log: No such file" --read_iolog nowhere.log --image img
refused "fio-v2.log:7: write, but the disk is read-only" --read_iolog "$data/fio-v2.log" --image img --readonly
unchanged img

# One with reads only is fine on such a disk, and one with nothing to do anywhere.
printf 'fio version 2 iolog\r\nx add\r\nx open\r\nx read 512 1024\r\nx trim 0 512\r\n' >reads.log
chmod 444 img
passes --read_iolog reads.log --image img --readonly --json
claim bios eq 1 bytes eq 1024 trims_skipped eq 1
chmod 644 img
printf 'fio version 3 iolog\n' >empty.log
passes --read_iolog empty.log --json
claim bios eq 0
unchanged img

# A line that there is no memory for is not the end of the log.
few="prlimit --as=400000000"
if $few "$program" --version >out 2>&1; then
	printf 'fio version 2 iolog\nx add\nx open\nx write 0 512\n' >long.log
	truncate -s 1g long.log
	$few "$program" --read_iolog long.log --image img >out 2>err &&
		wrong "half a log was taken for all of it"
	grep -q 'long.log' err || wrong "no word about it: $(cat err)"
	rm long.log
	unchanged img
fi

finish
