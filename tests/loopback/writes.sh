#!/bin/sh
# --fua, --zeroes, --discard, --max-sectors, --max-segments: I/Os that are cut into requests, that go
# on with a flush, and that have no data; each comes back once, whatever happens to it.
# shellcheck source=tests/loopback/lib.sh
. "$(dirname "$0")/lib.sh"

truncate -s 2m img
disks="memory file threads"
run --rw read --image img --backend uring
if [ "$rc" = 0 ]; then
	disks="$disks uring"
else
	echo "writes: no io_uring here"
fi

# disk_of KIND: the options for a disk of 2 MiB.
disk_of() {
	case $1 in
	memory) echo "--size 2m" ;;
	*) echo "--image img --backend $1" ;;
	esac
}

# field NAME: of the JSON that the last run printed.
field() {
	sed 's/.*"'"$1"'":\([0-9]*\),.*/\1/' out
}

# How many requests an I/O makes, whatever it is: 8 I/Os of 256 KiB, in 8 parts each.
for disk in $disks; do
	for jobs in 1 3; do
		for what in "" "--zeroes 1" "--discard 1"; do
			# shellcheck disable=SC2086,SC2046 # words
			passes --rw write $(disk_of "$disk") --bs 256k --max-sectors 64 --path bio --verify \
				--jobs $jobs --iodepth 4 --json $what
			claim bios eq 8 requests eq 64 guest_parts eq 64 guest_flushes eq 0 fua eq 0 \
				errors eq 0 mismatches eq 0 verified_bytes eq 2097152 max_sectors eq 64
		done
	done
done
claim discards eq 8 zeroes eq 0 bytes eq 0 discard_rate eq 1
passes --rw read --size 2m --bs 256k --max-sectors 64 --json
claim requests eq 64 guest_parts eq 64 bytes eq 2097152
passes --rw write --size 2m --bs 256k --max-sectors 512 --verify --json
claim requests eq 8 guest_parts eq 0
# 128 I/Os of 12 KiB as 7, 7, 7 and 3 sectors, and alike by segments: 5, 5, 5 and 1 of 4096 bytes.
passes --rw write --size 1536k --bs 12k --max-sectors 7 --path bio --verify --json
claim requests eq 512 guest_parts eq 512
passes --rw write --size 2m --bs 64k --max-segments 5 --path bio --indirect never --verify --json
claim bios eq 32 requests eq 128 guest_parts eq 128 descriptors eq 768 max_segments eq 5
# Both, of which the first is the less; and a ring that never has room for all parts of one.
passes --rw randwrite --size 2m --bs 256k --max-segments 2 --max-sectors 8 --ring 4 --iodepth 4 \
	--path bio --indirect never --verify --json
claim requests eq 512 guest_parts eq 512 guest_full ge 1
# Neighbours share requests up to the limit only: 4096 sectors, of which no two can be one I/O's.
passes --rw write --size 2m --bs 512 --max-sectors 4 --path request --iodepth 64 --verify --json
claim bios eq 4096 requests ge 1024 requests le 2048 guest_parts eq 0

# Each durable write is followed by a flush, and nothing else is.
for disk in $disks; do
	# shellcheck disable=SC2046 # words
	passes --rw randrw $(disk_of "$disk") --fua 1 --zeroes 0.3 --discard 0.3 --verify --iodepth 8 \
		--jobs 2 --json
	claim fua ge 100 fua le 250 zeroes ge 30 discards ge 30 errors eq 0 mismatches eq 0 \
		verified_bytes eq 2097152 guest_flushes eq "$(field fua)"
done
passes --rw write --size 2m --bs 256k --fua 1 --max-sectors 64 --path bio --verify --json
claim bios eq 8 fua eq 8 requests eq 72 guest_parts eq 64 guest_flushes eq 8
passes --rw randwrite --size 2m --fua 0.25 --json --seed 4
claim fua ge 80 fua le 180 guest_flushes eq "$(field fua)" fua_rate ge 0.25 fua_rate le 0.25
first=$(field fua)
passes --rw randwrite --size 2m --fua 0.25 --json --seed 4 --iodepth 16 --poll
claim fua eq "$first"
passes --rw randwrite --size 2m --fua 0.25 --backend null --json
claim fua ge 80 guest_flushes eq "$(field fua)"

# Zeroes are zeroes, wherever they are stored; and discards share requests, neighbours or not.
truncate -s 2m zero
for disk in $disks; do
	[ "$disk" != memory ] || continue
	random_file img 2097152
	passes --rw randwrite --image img --backend "$disk" --zeroes 1 --verify --iodepth 8 --json
	claim zeroes eq 512 bytes eq 0 guest_parts eq 0
	cmp -s img zero || wrong "--zeroes 1 left something: $disk"
done
passes --rw randwrite --size 2m --discard 1 --path request --iodepth 64 --verify --json
claim discards eq 512 requests le 256 guest_merges ge 256
passes --rw randwrite --size 2m --discard 1 --path request --guest-merge off --iodepth 64 --json
claim discards eq 512 requests eq 512 guest_merges eq 0

# The same seed is the same image.
truncate -s 2m other
for how in "--iodepth 1" "--iodepth 16 --jobs 2 --queues 2 --max-sectors 3"; do
	# shellcheck disable=SC2086 # words
	passes --rw randrw --image img --seed 3 --zeroes 0.3 --fua 0.3 --jobs 2 $how
	# shellcheck disable=SC2086 # words
	passes --rw randrw --image other --seed 3 --zeroes 0.3 --jobs 2 --max-segments 1
	cmp -s img other || wrong "the same seed, and another image"
done

# Copies and logs, cut and durable.
random_file file 1000001
passes --copy file --image img --bs 64k --fua 1 --max-sectors 9 --iodepth 4 --jobs 3 --json
claim fua eq 16 guest_flushes eq 16 guest_parts ge 400 verified_bytes eq 1000448
cmp -s -n 1000001 img file || wrong "the copy differs"
passes --read_iolog "$here/data/fio-v3.log" --size 64m --fua 0.5 --max-sectors 5 --verify --json
claim fua ge 1 guest_parts ge 1 mismatches eq 0

# Everything fails that can, and was meant to; reading it back, too.
passes --rw randwrite --size 2m --inject 1 --zeroes 0.3 --discard 0.3 --fua 0.5 --verify \
	--iodepth 4 --max-sectors 3 --json
claim bios eq 512 errors ge 512 bytes eq 0 mismatches eq 0 guest_flushes eq 0

# The last part of a long I/O shares a request with a short one behind it: 24 sectors as 20 and 4,
# and 8. Where that fails all of the long one is sent again, from its beginning, and in parts.
{
	echo "fio version 2 iolog"
	echo "disk add"
	echo "disk open"
	i=0
	while [ $i -lt 128 ]; do
		echo "disk write $((i * 16384)) 12288"
		echo "disk write $((i * 16384 + 12288)) 4096"
		i=$((i + 1))
	done
	echo "disk close"
} >log
passes --read_iolog log --size 2m --path request --iodepth 64 --max-sectors 20 --verify --json
claim bios eq 256 guest_parts eq 256 guest_merges eq 128 requests eq 256 guest_retried eq 0
retried=0
for seed in 1 2 3 4; do
	for path in request merge-when-full; do
		passes --read_iolog log --size 2m --path $path --iodepth 64 --ring 8 --max-sectors 20 \
			--verify --json --inject 0.05 --seed $seed
		claim bios eq 256 mismatches eq 0
		retried=$((retried + $(field guest_retried)))
	done
done
[ $retried -ge 10 ] || wrong "only $retried were sent again, alone"

# Everything at once.
parts=0 flushes=0 zeroes=0 discards=0 errors=0 cancelled=0 undecided=0 retried=0 merges=0
count() {
	parts=$((parts + $(field guest_parts)))
	flushes=$((flushes + $(field guest_flushes)))
	zeroes=$((zeroes + $(field zeroes)))
	discards=$((discards + $(field discards)))
	errors=$((errors + $(field errors)))
	cancelled=$((cancelled + $(field cancelled)))
	undecided=$((undecided + $(field undecided)))
	retried=$((retried + $(field guest_retried)))
	merges=$((merges + $(field guest_merges)))
}

seed=0
for merging in "--path bio" "--path request" "" "--guest-merge off"; do
	for shape in "--jobs 1 --iodepth 64 --ring 8" "--jobs 5 --queues 2 --iodepth 16 --ring 16"; do
		for disk in $disks; do
			for host in on off; do
				seed=$((seed + 1))
				case $((seed % 4)) in
				0) how="--rw randrw --bs 4k --max-sectors 3 --poll" ;;
				1) how="--rw write --bs 2k --max-segments 1" ;;
				2) how="--rw randrw --bs 16k --max-segments 3 --indirect never" ;;
				*) how="--rw randwrite --bs 1k" ;;
				esac
				# shellcheck disable=SC2086,SC2046 # words
				passes $how $(disk_of "$disk") $merging $shape --host-merge $host --verify \
					--requests 512 --json --seed $seed --inject 0.02 --cancel 0.2 \
					--reset 0.01 --fua 0.3 --zeroes 0.2 --discard 0.2
				claim bios eq 512 mismatches eq 0 interrupted eq 0
				count
			done
		done
	done
done
echo "$parts parts, $flushes flushes, $zeroes of zeroes, $discards discards; $errors errors," \
	"$cancelled cancelled, $undecided undecided, $merges merged, $retried retried"
for number in $parts $flushes $zeroes $discards $errors $cancelled $undecided $merges; do
	[ "$number" -ge 100 ] || wrong "only $number of something"
done
[ $retried -ge 1 ] || wrong "none was sent again, alone"
passes --rw read --image img --verify

# Zeroes that don't stay are noticed.
truncate -s 0 img
truncate -s 64m img
random_file file 16777216
(
	sleep 0.2
	dd if=file of=img bs=1M seek=10 conv=notrunc status=none
	sleep 0.3
	dd if=file of=img bs=1M seek=30 conv=notrunc status=none
) &
fails "should be" --rw randrw --image img --verify --runtime 1 --iodepth 8 --zeroes 1 --json
claim mismatches ge 1 errors eq 0
wait

# For people, too.
passes --rw write --size 512k --bs 64k --fua 1 --zeroes 0.5 --max-sectors 8
for word in 'cut' 'durable' 'flushes' 'of zeroes' 'discarded'; do
	grep -qF "$word" out || wrong "no '$word' in the table"
done

finish
