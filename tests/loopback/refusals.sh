#!/bin/sh
# What can't be done is refused in one line, with a status of its own, and touches nothing.
# shellcheck source=tests/loopback/lib.sh
. "$(dirname "$0")/lib.sh"

random_file img 100000
random_file file 1000
random_file big 100001
keep img

refused "what is to be done"
refused "--rw sideways: not one of read, write, randread, randwrite, randrw" --rw sideways
refused "only one of" --rw read --copy file --image img
refused "img: no option" --rw read img
refused "--bs 1000" --rw write --image img --bs 1000
refused "--bs 0" --rw write --image img --bs 0
refused "--bs 131072: the disk has only 99840 bytes" --rw write --image img --bs 128k
refused "--iodepth 0" --rw write --image img --iodepth 0
refused "--queues none" --rw write --image img --queues none
refused "--requests -1" --rw write --image img --requests -1
refused "--runtime never" --rw write --image img --runtime never
refused "--size 100" --rw write --image img --size 100
refused "--size 1048576: img has only 99840 bytes" --rw write --image img --size 1m
refused "--ring 100: not a power of two" --rw write --image img --ring 100
refused "--ring 2" --rw write --image img --ring 2 --indirect never
refused "--ring 65536" --rw write --image img --ring 65536
refused "--indirect often: not one of never, always, adaptive, threshold, decay" --rw write --image img --indirect often
refused "--event-idx perhaps: not one of off, on" --rw write --image img --event-idx perhaps
refused "--backend tape: not one of memory, file, uring, threads, null" --rw write --backend tape
refused "needs --image" --rw write --backend file
refused "needs --image" --rw write --backend uring
refused "needs --image" --rw write --backend threads
refused "--image goes with --backend file, uring or threads only" --rw write --image img --backend memory
refused "--direct goes with --backend uring only" --rw write --image img --direct
refused "--direct goes with --backend uring only" --rw write --image img --backend threads --direct
refused "--plug perhaps: not one of off, on" --rw write --image img --plug perhaps
refused "--host-merge yes: not one of off, on" --rw write --image img --host-merge yes
for rate in 0.0000001 1.1 -0.1 nan 5% much; do
	refused "--inject $rate: not 0, nor a share" --rw write --image img --inject $rate
done
for rate in 0.0000001 2 much; do
	refused "--cancel $rate: not 0, nor a share" --rw write --image img --cancel $rate
	refused "--reset $rate: not 0, nor a share" --rw write --image img --reset $rate
	refused "--fua $rate: not 0, nor a share" --rw write --image img --fua $rate
	refused "--zeroes $rate: not 0, nor a share" --rw write --image img --zeroes $rate
	refused "--discard $rate: not 0, nor a share" --rw write --image img --discard $rate
done
refused "--path elevator: not one of bio, request, merge-when-full" --rw write --image img --path elevator
refused "--guest-merge no: not one of off, on" --rw write --image img --guest-merge no
refused "--guest-merge on: with --path bio nothing is ever merged" --rw write --image img --path bio \
	--guest-merge on
refused "--jobs 3: fewer than the 4 queues" --rw write --image img --queues 4 --jobs 3
refused "--jobs 1025" --rw write --image img --jobs 1025
refused "shares of writes, and there are none" --rw read --image img --fua 0.1
refused "shares of writes, and there are none" --rw randread --image img --zeroes 0.1
refused "more than all writes together" --rw write --image img --zeroes 0.7 --discard 0.4
refused "--zeroes means nothing to --copy" --copy file --image img --zeroes 0.1
refused "--discard means nothing to --read_iolog" --read_iolog file --image img --discard 0.1
refused "--max-sectors 0: not a number from 1 to 8388607" --rw write --image img --max-sectors 0
refused "--max-sectors 4k: not a number" --rw write --image img --max-sectors 4k
refused "--max-segments none: not a number" --rw write --image img --max-segments none
refused "--max-segments 9: in a ring of 8 a request has no more than 6" --rw write --image img \
	--ring 8 --max-segments 9
refused "--verify needs a disk" --rw write --backend null --verify
refused "read-only" --rw write --image img --readonly
refused "read-only" --rw randwrite --image img --readonly
refused "read-only" --rw randrw --image img --readonly
refused "read-only" --copy file --image img --readonly
refused "--requests means nothing to --copy" --copy file --image img --requests 5
refused "--bs means nothing to --read_iolog" --read_iolog file --image img --bs 4k
refused "--copy needs --image" --copy file
refused "--frobnicate: no such option" --frobnicate
refused "-x: no such option" -xy
refused "-x: no such option" --rw read -x
refused "--verify=1: no such option, or it takes no value" --rw read --verify=1
refused "--rw: wants a value" --rw

# Files.
refused "big: has 100001 bytes, and the disk of img only 99840" --copy big --image img
refused "nothing.here: No such file" --copy nothing.here --image img
refused "nothing.here: No such file" --copy file --image nothing.here
[ ! -e nothing.here ] || wrong "made an image"
refused ".: neither a file nor a block device" --copy . --image img
refused "/dev/null: neither a file nor a block device" --copy file --image /dev/null
refused ".: " --rw read --image .
refused "img: is the image itself" --copy img --image img
ln -s img link
ln img hard
refused "link: is the image itself" --copy link --image img
refused "hard: is the image itself" --copy hard --image img
rm link hard
if [ "$(id -u)" != 0 ]; then
	chmod 000 file
	refused "file: Permission denied" --copy file --image img
	chmod 644 file
	chmod 444 img
	refused "img: Permission denied" --rw read --image img
	chmod 644 img
fi
random_file tiny 511
refused "tiny: has not one whole sector" --copy file --image tiny

# An image can be written by one at a time.
truncate -s 1m other
"$program" --rw randwrite --image other --runtime 30 >/dev/null 2>&1 &
pid=$!
begun other
refused "other: in use by another program" --copy file --image other
kill -INT $pid
wait $pid || wrong "interrupted, with status $?"
passes --copy file --image other

# Asked for, so it comes on stdout and is a success.
passes --help
for option in copy rw bs iodepth size requests runtime seed verify read_iolog image backend queues \
	ring indirect event-idx poll readonly direct host-merge plug inject path guest-merge jobs cancel \
	reset fua zeroes discard max-sectors max-segments json help version; do
	grep -qF -e "--$option" out || wrong "--$option is missing in --help"
done
passes --version
grep -qE '^vqblk-loopback [0-9]+\.[0-9]+\.[0-9]+$' out || wrong "--version: $(cat out)"

# Nor is the image what stdout or stderr turn into when they are closed.
"$program" --rw read --size 4k --image img >&- 2>err || :
unchanged img
"$program" --rw read --image img --bs 2g 2>&- >out || :
unchanged img

# A report that can't be written is no success.
if [ -w /dev/full ]; then
	for how in "--rw read --size 64k" "--rw read --size 64k --json" --version --help; do
		# shellcheck disable=SC2086 # words
		if "$program" $how >/dev/full 2>err; then
			wrong "a full disk under stdout went unnoticed"
		fi
		[ "$(wc -l <err)" = 1 ] || wrong "not one line: $(cat err)"
	done
fi

finish
