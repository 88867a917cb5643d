# handshake.sh SCRATCH: lets the model checker SPIN look for a lost wake-up, for flags and for
# EVENT_IDX: there must be none as the model stands, and one as soon as any of the fences or looks
# is left out, on either side alone.
# Shows: SR-DRV-35 SR-DRV-37 SR-DEV-28 SR-DEV-29 K09
set -eu
scratch=$1 model=$(cd "$(dirname "$0")" && pwd -P)/handshake.pml
command -v spin >/dev/null || { echo "handshake: no spin here (Debian package spin)"; exit 77; }
rm -rf "$scratch" && mkdir -p "$scratch" && cd "$scratch"
wrong=0

# errors_of DEFINE...: how many the verifier counts; it exits 0 either way.
errors_of() {
	spin -a "$@" "$model" >said 2>&1 && "${CC:-cc}" -O0 -DSAFETY -w -o pan pan.c >>said 2>&1 &&
		./pan -m100000 >>said 2>&1 || { cat said >&2; return 1; }
	if grep -q 'max search depth too small' said; then
		echo "handshake: the search was cut short" >&2
		return 1
	fi
	sed -n 's/.*errors: \([0-9]*\).*/\1/p' said
}

# expect HOW DEFINE...: HOW is "none" or "some".
expect() {
	how=$1
	shift
	errors=$(errors_of "$@")
	case $how,$errors in
	none,0 | some,[1-9]*) echo "$*: $errors errors, as expected" ;;
	*)
		echo "$*: ${errors:-no count of} errors, expected $how"
		wrong=1
		;;
	esac
}

for protocol in -DFLAGS -DEVENT_IDX; do
	expect none $protocol
	for part in NO_FENCE_PUBLISH NO_FENCE_ARM NO_FENCE_TURN NO_RECHECK_ARM NO_RECHECK_TURN; do
		expect some $protocol -D$part=DRIVER
		expect some $protocol -D$part=DEVICE
	done
done
exit $wrong
