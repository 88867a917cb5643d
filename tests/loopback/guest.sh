#!/bin/sh
# --path, --guest-merge, --jobs, --cancel, --reset: how I/Os share requests is the guest's choice,
# and whatever becomes of them, each comes back once, and what is on the disk is right.
# shellcheck source=tests/loopback/lib.sh
. "$(dirname "$0")/lib.sh"

truncate -s 512k img
disks="memory file threads"
run --rw read --image img --backend uring
if [ "$rc" = 0 ]; then
	disks="$disks uring"
else
	echo "guest: no io_uring here"
fi

# disk_of KIND: the options for a disk of 512 KiB.
disk_of() {
	case $1 in
	memory) echo "--size 512k" ;;
	*) echo "--image img --backend $1" ;;
	esac
}

# field NAME: of the JSON that the last run printed.
field() {
	sed 's/.*"'"$1"'":\([0-9]*\),.*/\1/' out
}

# balanced: without resets, what the driver took went out once, or once more, or was cancelled.
balanced() {
	[ $(($(field guest_bios) + $(field guest_retried))) = \
		$(($(field guest_requests) + $(field guest_merges) + $(field cancelled))) ] ||
		wrong "I/Os and requests don't add up: $(cat out)"
	claim guest_bios eq "$(field bios)" resets eq 0 undecided eq 0 unsent eq 0
}

# Who shares requests, and when. 1024 sectors in a row, or at random.
for jobs in 1 3; do
	for rw in write randrw; do
		how="--rw $rw --size 512k --bs 512 --verify --json --jobs $jobs"
		for path in bio request merge-when-full; do
			# shellcheck disable=SC2086 # words
			passes $how --iodepth 64 --ring 8 --path $path --guest-merge off
			claim path is $path guest_merge eq 0 guest_merges eq 0 guest_requests eq 1024 \
				requests eq 1024 host_submissions ge 1024 jobs eq $jobs
			balanced
		done
		# shellcheck disable=SC2086 # words
		passes $how --iodepth 64 --ring 8 --path bio
		claim guest_merge eq 0 guest_merges eq 0 requests eq 1024
		# shellcheck disable=SC2086 # words
		passes $how --iodepth 32 --ring 256
		claim path is merge-when-full guest_merge eq 1 guest_full eq 0 guest_merges eq 0 \
			requests eq 1024
	done
	how="--rw write --size 512k --bs 512 --verify --json --jobs $jobs"
	# shellcheck disable=SC2086 # words
	passes $how --iodepth 64 --ring 256 --path request
	claim guest_merges ge 512 requests le 512 errors eq 0 mismatches eq 0 verified_bytes eq 524288
	balanced
	# shellcheck disable=SC2086 # words
	passes $how --iodepth 64 --ring 8
	claim guest_full ge 1 guest_merges ge 256 requests le 768 errors eq 0 mismatches eq 0
	balanced
done

# What is cancelled is what still waits, and nobody waits where there is room.
passes --rw randrw --size 512k --bs 512 --verify --json --iodepth 64 --ring 8 --cancel 0.5 --seed 1
claim cancelled ge 50 cancelled_late ge 5 errors eq 0 mismatches eq 0
balanced
passes --rw randrw --size 512k --bs 512 --verify --json --iodepth 4 --cancel 1
claim cancelled eq 0 cancelled_late eq 1024 bios eq 1024
passes --rw randwrite --size 512k --bs 512 --verify --json --iodepth 64 --ring 4 --jobs 4 --cancel 1 \
	--path bio --poll
claim bios eq 1024 errors eq 0 mismatches eq 0
balanced

# A reset for each I/O, and nothing is lost.
for path in bio request merge-when-full; do
	passes --rw randrw --size 512k --bs 4k --verify --json --iodepth 32 --ring 16 --path $path --reset 1
	claim bios eq 128 resets ge 2 errors eq 0 mismatches eq 0 verified_bytes eq 524288 cancelled eq 0
done

# Everything at once.
cancelled=0 late=0 resets=0 undecided=0 unsent=0 merges=0 retried=0 injected=0 errors=0
count() {
	cancelled=$((cancelled + $(field cancelled)))
	late=$((late + $(field cancelled_late)))
	resets=$((resets + $(field resets)))
	undecided=$((undecided + $(field undecided)))
	unsent=$((unsent + $(field unsent)))
	merges=$((merges + $(field guest_merges)))
	retried=$((retried + $(field guest_retried)))
	injected=$((injected + $(field injected)))
	errors=$((errors + $(field errors)))
}

# Cancelled while it waits to be sent again: after a shared request failed, which may have left a
# part of it on the disk; or after a reset, with the first attempt undecided.
for seed in 1 2 3 4 5 6 7 8; do
	for path in request merge-when-full; do
		passes --rw write --size 256k --bs 512 --iodepth 256 --ring 16 --path $path --cancel 0.7 \
			--inject 0.2 --seed $seed --verify --json
		claim bios eq 512 mismatches eq 0
		count
		passes --rw write --size 256k --bs 512 --iodepth 256 --ring 16 --path $path --cancel 0.7 \
			--reset 0.05 --seed $seed --verify --json
		claim bios eq 512 errors eq 0 mismatches eq 0
		count
	done
done

seed=0
for merging in "--path bio" "--path request --guest-merge off" "--guest-merge off" "--path request" ""; do
	for shape in "--jobs 1 --iodepth 64 --ring 8" "--jobs 5 --queues 2 --iodepth 16 --ring 16"; do
		for disk in $disks; do
			for host in on off; do
				seed=$((seed + 1))
				case $((seed % 4)) in
				0) how="--rw randrw --bs 4k --requests 512 --poll" ;;
				1) how="--rw write --bs 2k --requests 512" ;;
				2) how="--rw randrw --bs 1k --indirect never" ;;
				*) how="--rw randwrite --bs 1k --event-idx off" ;;
				esac
				# shellcheck disable=SC2086,SC2046 # words
				passes $how $(disk_of "$disk") $merging $shape --host-merge $host --verify \
					--json --seed $seed --inject 0.02 --cancel 0.2 --reset 0.02
				claim bios eq 512 mismatches eq 0 interrupted eq 0
				case $merging in
				*off* | *bio*) claim guest_merges eq 0 ;;
				esac
				count
			done
		done
	done
done
echo "cancelled $cancelled, too late $late; $resets resets, $undecided undecided, $unsent unsent;" \
	"$merges merged, $retried retried; $injected faults, $errors errors"
[ $cancelled -ge 100 ] || wrong "only $cancelled were cancelled"
[ $late -ge 100 ] || wrong "only $late were too late"
[ $resets -ge 100 ] || wrong "only $resets resets"
[ $undecided -ge 100 ] || wrong "only $undecided were left undecided"
[ $unsent -ge 100 ] || wrong "only $unsent were unsent when a reset came"
[ $merges -ge 100 ] || wrong "only $merges were merged"
[ $retried -ge 10 ] || wrong "only $retried were sent again, alone"
[ $errors -ge 100 ] || wrong "only $errors errors"

# What all that did to the image is not more than what was counted: no sector is torn or misplaced.
passes --rw read --image img --verify

# Copies and logs keep their order, and flushes theirs.
random_file file 300001
{
	echo "fio version 2 iolog"
	echo "disk add"
	echo "disk open"
	i=0
	while [ $i -lt 200 ]; do
		echo "disk write $((i * 5 % 50 * 4096)) 8192"
		echo "disk read $((i * 7 % 50 * 4096)) 4096"
		[ $((i % 20)) != 0 ] || echo "disk sync 0 0"
		i=$((i + 1))
	done
	echo "disk close"
} >log
for path in bio request merge-when-full; do
	passes --copy file --image img --path $path --jobs 3 --iodepth 32 --ring 8 --reset 0.05 --json
	claim errors eq 0 mismatches eq 0 verified_bytes eq 300032 resets ge 1
	cmp -s -n 300001 img file || wrong "the copy differs: $path"
	passes --copy file --image img --path $path --jobs 3 --iodepth 32 --ring 8 --reset 0.05 --json \
		--cancel 0.2 --inject 0.02
	claim mismatches eq 0 verified_bytes le 300032
	passes --read_iolog log --image img --path $path --verify --jobs 3 --queues 2 --iodepth 32 --ring 8 \
		--reset 0.05 --cancel 0.2 --inject 0.02 --json
	claim bios eq 410 mismatches eq 0
done

# For people, too.
passes --rw write --size 512k --jobs 2 --ring 8 --iodepth 32 --cancel 0.1 --reset 0.1
for word in 'path' 'merge-when-full' 'cancelled' 'too late' 'resets' 'undecided' '2 jobs'; do
	grep -qF "$word" out || wrong "no '$word' in the table"
done

finish
