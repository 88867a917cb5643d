#!/bin/sh
# uring_trace.sh PROGRAM SCRATCH: a batch is one system call, however many ios it has, and completions
# need none. Seen in a trace of the system calls of PROGRAM, which also has to agree with its counter.
set -eu
program=$1 scratch=$2
rm -rf "$scratch" && mkdir -p "$scratch"

if ! command -v strace >/dev/null; then
	echo "uring_trace: skipped, there is no strace"
	exit 77
fi
if ! strace -o "$scratch/probe" true 2>/dev/null; then
	echo "uring_trace: skipped, this system lets nobody trace"
	exit 77
fi
# A leak check traces, too, and one process can't be traced twice.
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
export ASAN_OPTIONS

batches=50
head -c 65536 /dev/zero >"$scratch/image"
status=0
strace -f -o "$scratch/trace" "$program" "$scratch/image" $batches >"$scratch/said" || status=$?
if [ "$status" = 77 ]; then
	echo "uring_trace: skipped, there is no io_uring here"
	exit 77
fi
[ "$status" = 0 ] || { echo "uring_trace: the program failed"; exit 1; }
said=$(cat "$scratch/said")
seen=$(grep -c 'io_uring_enter(' "$scratch/trace" || true)
if [ "$seen" != $batches ] || [ "$said" != $batches ]; then
	echo "uring_trace: $batches batches took $seen system calls, and $said by the counter"
	exit 1
fi
# All else is setting up and closing: nothing else is done per io or per batch.
others=$(grep -c '^[0-9]* *\(p\{0,1\}\(read\|write\)[v0-9]*\|f\(data\)\{0,1\}sync\)(' "$scratch/trace" ||
	true)
if [ "$others" -ge $batches ]; then
	echo "uring_trace: $others reads, writes and flushes of the usual kind"
	exit 1
fi
echo "uring_trace: one system call for each of $batches batches"
