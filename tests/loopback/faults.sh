#!/bin/sh
# --backend, --host-merge, --plug, --direct, and --inject: whatever stores the data and however it is
# reached, what failed is what faults were injected into, and all else is right.
# shellcheck source=tests/loopback/lib.sh
. "$(dirname "$0")/lib.sh"

truncate -s 2m img
bytes=2097152
others="threads"

# io_uring may not be here; then that is said, and everything else goes without.
run --rw read --image img --backend uring
if [ "$rc" = 0 ]; then
	others="uring $others"
else
	refused "take --backend threads" --rw read --image img --backend uring
	echo "faults: no io_uring here"
fi

# Nothing injected: nothing fails, on any disk, in any way.
for rw in read write randrw; do
	for merge in on off; do
		for disk in file $others; do
			passes --rw $rw --image img --backend "$disk" --host-merge $merge --verify --json \
				--queues 4 --iodepth 16
			claim job is $rw backend is "$disk" errors eq 0 mismatches eq 0 injected eq 0 \
				verified_bytes eq $bytes bytes eq $bytes
		done
		for disk in file $others; do
			passes --rw $rw --image img --backend "$disk" --host-merge $merge --plug off \
				--verify --json --iodepth 16 --poll
			claim errors eq 0 mismatches eq 0 verified_bytes eq $bytes
		done
		passes --rw $rw --size 2m --host-merge $merge --plug off --inject 0 --verify --json
		claim errors eq 0 mismatches eq 0 injected eq 0 verified_bytes eq $bytes
	done
done

# Neighbours are joined where that was asked for, and nowhere else.
for disk in "--size 2m" "--image img" "--image img --backend threads"; do
	# shellcheck disable=SC2086 # words
	passes --rw write $disk --host-merge on --iodepth 32 --verify --json --bs 4k
	claim bios eq 512 host_merges ge 1 host_submissions le 511 errors eq 0 mismatches eq 0
	# shellcheck disable=SC2086 # words
	passes --rw write $disk --host-merge off --iodepth 32 --verify --json --bs 4k
	claim bios eq 512 host_merges eq 0 host_submissions eq 512
done

# faulty SEED ARGUMENT...: passes, with faults that were injected; added up, as there may be none where
# much is joined to little.
injected=0
errors=0
faulty() {
	passes --inject 0.05 --seed "$@" --json
	claim mismatches eq 0 interrupted eq 0
	injected=$((injected + $(sed 's/.*"injected":\([0-9]*\),.*/\1/' out)))
	errors=$((errors + $(sed 's/.*"errors":\([0-9]*\),.*/\1/' out)))
}

seed=0
for rw in read write randread randwrite randrw; do
	for merge in on off; do
		for disk in "--size 2m" "--image img" "--backend null --size 2m"; do
			seed=$((seed + 1))
			verify=--verify
			case $disk in *null*) verify= ;; esac
			# shellcheck disable=SC2086 # words
			faulty $seed --rw $rw $disk $verify --queues 4 --iodepth 16 --host-merge $merge
			# shellcheck disable=SC2086 # words
			faulty $seed --rw $rw $disk $verify --queues 4 --iodepth 64 --ring 16 --bs 12k \
				--host-merge $merge --poll
			# shellcheck disable=SC2086 # words
			faulty $seed --rw $rw $disk --queues 4 --iodepth 8 --host-merge $merge \
				--event-idx off --indirect never --ring 8
		done
		for disk in $others; do
			for how in "--bs 4k" "--plug off --bs 12k" "--poll --bs 512"; do
				seed=$((seed + 1))
				# shellcheck disable=SC2086 # words
				faulty $seed --rw $rw --image img --backend $disk --verify --queues 4 \
					--iodepth 16 --host-merge $merge $how
			done
		done
	done
done
if [ "$errors" -lt 500 ] || [ "$injected" -lt "$errors" ]; then
	wrong "$errors errors, of $injected faults"
fi

# The damage that faults do is not more than that: sectors are whole, and no later run complains.
passes --rw read --image img --verify

# Copies and logs. What was lost of a copy is not compared.
random_file file 1000001
{
	echo "fio version 2 iolog"
	echo "disk add"
	echo "disk open"
	i=0
	while [ $i -lt 400 ]; do
		echo "disk write $((i * 5 % 100 * 4096)) 8192"
		echo "disk read $((i * 7 % 100 * 4096)) 4096"
		[ $((i % 20)) != 0 ] || echo "disk sync 0 0"
		i=$((i + 1))
	done
	echo "disk close"
} >log
for merge in on off; do
	for disk in file $others; do
		faulty 7 --copy file --image img --backend "$disk" --host-merge $merge --queues 4 --iodepth 8
		claim injected ge 1 errors ge 1 verified_bytes le 1000448
		faulty 8 --read_iolog log --image img --backend "$disk" --host-merge $merge --verify \
			--queues 4 --iodepth 8
		claim bios eq 820 injected ge 1 errors ge 1
	done
done

# The rate is one: nothing gets through, and all of it was meant to fail.
passes --rw randrw --size 2m --inject 1 --verify --iodepth 4 --json
claim errors ge 512 mismatches eq 0 bytes eq 0

# An error that was not injected is none of them: the image loses its end under the program.
truncate -s 4m short
(
	sleep 0.3
	truncate -s 1m short
) &
fails "failed" --rw randread --image short --runtime 1 --inject 0.01 --json
claim errors ge 1
wait
# Nor is data that was not injected to be lost.
truncate -s 64m short
(
	sleep 0.2
	head -c 16777216 /dev/zero | dd of=short bs=1M seek=10 conv=notrunc status=none
	sleep 0.5
	head -c 16777216 /dev/zero | dd of=short bs=1M seek=30 conv=notrunc status=none
) &
fails "should be" --rw randrw --image short --verify --runtime 1 --iodepth 8 --inject 0.01 --json \
	--backend threads
claim mismatches ge 1
wait

# Past the page cache, where the disk can do that: whole units of it.
rm -f img
truncate -s 2m img
run --rw randrw --image img --backend uring --direct --bs 64k --json
if [ "$rc" = 0 ]; then
	for merge in on off; do
		for inject in "" "--inject 0.05"; do
			# shellcheck disable=SC2086 # words
			passes --rw randrw --image img --backend uring --direct --verify --bs 4k --queues 2 \
				--iodepth 16 --host-merge $merge $inject --json
			claim mismatches eq 0
			# shellcheck disable=SC2086 # words
			passes --copy file --image img --backend uring --direct --host-merge $merge $inject \
				--iodepth 4 --json
			claim mismatches eq 0
		done
	done
else
	[ "$(wc -l <err)" = 1 ] || wrong "not one line: $(cat err)"
	echo "faults: no direct I/O here: $(cat err)"
fi

finish
