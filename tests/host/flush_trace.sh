#!/bin/sh
# Shows: BLK-DEV-18 BLK-DEV-20
# flush_trace.sh PROGRAM SCRATCH: a flush is an fdatasync, and comes before the driver sees the flush
# complete; where the driver left FLUSH, every write has one of its own before it completes; and
# nothing else has. Seen in a trace of the system calls of PROGRAM.
set -eu
program=$1 scratch=$2
rm -rf "$scratch" && mkdir -p "$scratch"

if ! command -v strace >/dev/null; then
	echo "flush_trace: skipped, there is no strace"
	exit 77
fi
if ! strace -o "$scratch/probe" true 2>/dev/null; then
	echo "flush_trace: skipped, this system lets nobody trace"
	exit 77
fi
# A leak check traces, too, and one process can't be traced twice.
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
export ASAN_OPTIONS
failed=0

# check MODE EXPECTED: what is done to the image, and the lines of the program, in order.
check() {
	head -c 32768 /dev/zero >"$scratch/image"
	strace -f -o "$scratch/$1.trace" \
		-e trace=pwritev,pwritev2,pwrite64,preadv,preadv2,pread64,fsync,fdatasync,sync_file_range,write \
		"$program" "$1" "$scratch/image" >"$scratch/$1.out"
	seen=$(sed -n \
		-e 's/^[0-9]* *p\(write\|read\)[v0-9]*([0-9]*, .*= 4096$/\1/p' \
		-e 's/^[0-9]* *\(fsync\|fdatasync\|sync_file_range\)(.*/\1/p' \
		-e 's/^[0-9]* *write(1, "\([a-z]*\) done\\n".*/\1-done/p' \
		"$scratch/$1.trace" | tr '\n' ' ')
	if [ "$seen" != "$2 " ]; then
		echo "flush_trace: $1: expected: $2"
		echo "flush_trace: $1: seen:     $seen"
		cat "$scratch/$1.trace"
		failed=1
	fi
}

check flush "write write-done fdatasync flush-done read read-done"
check through "write fdatasync write-done read read-done"
[ "$failed" = 0 ] && echo "flush_trace: an fdatasync for each flush, before its completion"
exit "$failed"
