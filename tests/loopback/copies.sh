#!/bin/sh
# --copy: what lands on the image, and what must not.
# shellcheck source=tests/loopback/lib.sh
. "$(dirname "$0")/lib.sh"

# copied BYTES IMAGE_BYTES OPTION...: a random file of BYTES, over an image of IMAGE_BYTES.
copied() {
	bytes=$1 image=$2
	shift 2
	whole=$(((bytes + 511) / 512 * 512))
	random_file file "$bytes"
	random_file img "$image"
	cp img before
	passes --copy file --image img --json "$@"
	claim job is copy errors eq 0 mismatches eq 0 verified_bytes eq "$whole" interrupted eq 0
	{
		cat file
		head -c $((whole - bytes)) /dev/zero
		tail -c +$((whole + 1)) before
	} >wanted
	cmp -s wanted img || wrong "not the right image: copy of $bytes bytes to $image: $*"
}

copied 1048576 2097152
copied 1048576 1048576 --queues 4 --iodepth 8
copied 1 512
copied 511 1000
copied 513 4096 --bs 512
copied 1000000 1000448 --bs 64k --queues 3
copied 1000000 1000448 --bs 1m --iodepth 4 --queues 2
copied 70000 100000 --indirect never --event-idx off --iodepth 64 --ring 4
copied 300000 300032 --poll --queues 2 --iodepth 32
copied 4096 4096 --queues 16

# The number of I/Os is that of the blocks, twice, and a flush.
copied 10000 20000 --bs 4k
claim bios eq 7 requests eq 7 guest_merges eq 0 host_merges eq 0 host_submissions eq 7 \
	indirect_requests eq 7 trims_skipped eq 0

# An empty file is written in no time.
: >file
random_file img 5000
keep img
passes --copy file --image img --json
claim bios eq 0 verified_bytes eq 0 errors eq 0
unchanged img

# Holes read as zeroes.
truncate -s 1m file
random_file img 1048576
passes --copy file --image img --bs 32k
cmp -s file img || wrong "a file of holes"

# A table for people, and nothing but it.
random_file file 100000
passes --copy file --image img
for word in copy latency requests kicks interrupts 'host submissions' 'checked' 'errors'; do
	grep -qF "$word" out || wrong "no '$word' in the table"
done

# The image is the program's while it is at work, and nobody's afterwards.
passes --copy file --image img
passes --copy file --image img

finish
