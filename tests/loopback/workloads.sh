#!/bin/sh
# --rw: every pattern on every disk, checked; and what is wrong with a disk is found.
# shellcheck source=tests/loopback/lib.sh
. "$(dirname "$0")/lib.sh"

truncate -s 2m img
bytes=2097152
for rw in read write randread randwrite randrw; do
	for how in "" "--queues 4 --iodepth 32" "--indirect never --ring 4 --iodepth 16" \
		"--event-idx off --iodepth 8 --queues 2" "--poll --queues 2 --iodepth 16" \
		"--bs 512 --iodepth 64 --indirect adaptive" "--bs 1m --indirect threshold" "--bs 12k --queues 3 --indirect decay" \
		"--indirect never --event-idx off --poll"; do
		for disk in "--size 2m" "--image img"; do
			# shellcheck disable=SC2086 # words
			passes --rw $rw $how $disk --verify --json
			claim job is $rw errors eq 0 mismatches eq 0 verified_bytes eq $bytes \
				bytes eq $bytes interrupted eq 0 host_merges eq 0
		done
		# shellcheck disable=SC2086 # words
		passes --rw $rw $how --backend null --size 2m --json
		claim errors eq 0 verified_bytes eq 0 bytes eq $bytes
	done
done

# What the counts say.
passes --rw randread --requests 1000 --json
claim bios eq 1000 requests eq 1000 descriptors eq 4000 indirect_requests eq 1000 \
	host_submissions eq 1000 iops ge 1 bytes_per_second ge 4096
passes --rw randread --requests 1000 --indirect never --json
claim requests eq 1000 descriptors eq 3000 indirect_requests eq 0
passes --rw randread --requests 1000 --poll --json --queues 2
claim bios eq 1000 kicks eq 0 interrupts eq 0
passes --rw randread --requests 1000 --json
claim kicks ge 1 interrupts ge 1
passes --rw write --requests 1001 --queues 7 --iodepth 5 --verify --size 8k --json
claim bios eq 1001 mismatches eq 0
passes --rw write --queues 8 --size 512 --bs 512 --json
claim bios eq 1
passes --rw randwrite --runtime 0.2 --requests 100 --json
claim bios eq 100

# The first part of an image, and no more.
random_file img 1000000
tail -c +40961 img >rest
passes --rw write --image img --size 40k --verify --json
claim bytes eq 40960 verified_bytes eq 40960
tail -c +40961 img | cmp -s - rest || wrong "written beyond --size"

# Reading leaves an image alone, and finds it as it is.
keep img
passes --rw randread --image img --verify --iodepth 8 --json
claim verified_bytes eq 999936
passes --rw read --image img --readonly --verify --json
unchanged img

# The same seed is the same image.
truncate -s 0 img
truncate -s 1m img other
for rw in randwrite randrw; do
	passes --rw $rw --image img --seed 3 --iodepth 8 --queues 2
	passes --rw $rw --image other --seed 3 --iodepth 3 --queues 2
	cmp -s img other || wrong "$rw with the same seed, and another image"
	passes --rw $rw --image img --seed 4 --verify
	passes --rw $rw --image other --seed 4 --verify --poll --iodepth 16
	cmp -s img other || wrong "$rw --verify with the same seed, and another image"
done

# One damaged byte of what an earlier run has stamped.
passes --rw write --image img --verify
passes --rw read --image img --verify
printf X | dd of=img bs=1 seek=400123 conv=notrunc status=none
fails "sector 781 should be as it was found, and is a damaged version" --rw read --image img --verify --json
claim mismatches eq 1 errors eq 0
[ "$rc" = 1 ] || wrong "status $rc"
passes --rw write --image img --verify

# Sectors in the wrong place.
dd if=img of=img bs=512 count=1 skip=100 seek=200 conv=notrunc status=none
fails "sector 200 should be" --rw randread --image img --verify

# An image that changes under the program's feet: what it has written is not there any more.
truncate -s 0 img
truncate -s 64m img
(
	sleep 0.2
	head -c 1048576 /dev/zero | dd of=img bs=1M seek=10 conv=notrunc status=none
	sleep 0.3
	head -c 1048576 /dev/zero | dd of=img bs=1M seek=30 conv=notrunc status=none
) &
fails "should be version" --rw randrw --image img --verify --runtime 1 --iodepth 8 --json
claim mismatches ge 1 errors eq 0
wait

# One that loses its end: reads fail, and that is told once for each queue.
truncate -s 4m img
(
	sleep 0.3
	truncate -s 1m img
) &
fails "failed" --rw randread --image img --runtime 1 --json
claim errors ge 1
wait

finish
