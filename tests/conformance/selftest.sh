#!/bin/sh
# Checks check.sh: a right tree passes, and each fault put into that tree is found and named.

here=$(cd -- "$(dirname -- "$0")" && pwd) || exit 2
tree=$(mktemp -d) || exit 2
trap 'rm -rf "$tree"' EXIT
trap 'exit 1' HUP INT TERM
failed=0

# Four rows: two shown by C tests, one by a shell test, one with a reason.
right_tree() {
	rm -rf "$tree/tests"
	mkdir -p "$tree/tests/conformance" "$tree/tests/ring" "$tree/tests/build"
	cat >"$tree/tests/conformance/rows.md" <<-'END'
		# Rows

		| ID | Side | Strength | What must hold |
		|---|---|---|---|
		| SR-DEV-30 | device | DERIVED | one |
		| SR-DRV-02 | driver | MUST | two |
		| BF-DRV-05 | driver | MUST NOT | three |

		| ID | Side | Input | Outcome |
		|:---|---|---|---|
		| K08 | device | four | right |
	END
	cat >"$tree/tests/conformance/reasons.md" <<-'END'
		# Reasons

		BF-DRV-05: the transport does it
	END
	cat >"$tree/tests/ring/device.c" <<-'END'
		/* What the device takes.
		 *
		 * Shows: SR-DEV-30
		 */
		int main(void) { return 0; }

		/* Shows: K08 SR-DEV-30 */
		static void test(void) { puts("Shows: nothing"); }
	END
	printf '#!/bin/sh\n# Shows: SR-DRV-02\n' >"$tree/tests/build/symbols.sh"
	cat >"$tree/tests/CMakeLists.txt" <<-'END'
		# unregistered.c is only spoken of here
		add_test(NAME symbols COMMAND sh ${CMAKE_CURRENT_SOURCE_DIR}/build/symbols.sh)
	END
	echo 'vqblk_test(device)' >"$tree/tests/ring/CMakeLists.txt"
}

# expect STATUS TEXT NAME: runs the check on the tree and looks for TEXT in what it says.
expect() {
	said=$(sh "$here/check.sh" "$tree" 2>&1)
	status=$?
	if [ "$status" -eq "$1" ] && printf '%s\n' "$said" | grep -qF -- "$2"; then
		echo "ok: $3"
		return
	fi
	echo "FAILED: $3: wanted status $1 and \"$2\", got status $status and:"
	printf '%s\n' "$said" | sed 's/^/    /'
	failed=1
}

rows=tests/conformance/rows.md
reasons=tests/conformance/reasons.md

right_tree
expect 0 'conformance: 4 rows, 3 shown by tests, 1 with reasons' 'a right tree passes'
if [ "$(printf '%s\n' "$said" | wc -l)" -ne 1 ]; then
	echo 'FAILED: a right tree gets more than one line'
	failed=1
fi

right_tree
echo '| SR-DRV-09 | driver | MUST NOT | five |' >>"$tree/$rows"
expect 1 "$rows:12: SR-DRV-09 has neither a test nor a reason" 'a row with neither test nor reason'

right_tree
echo '/* Shows: SR-DEV-99 */' >>"$tree/tests/ring/device.c"
expect 1 'tests/ring/device.c:9: Shows: names SR-DEV-99' 'a test of no row'

right_tree
echo '// Shows: SR-DEV-30 and more' >>"$tree/tests/ring/device.c"
expect 1 'tests/ring/device.c:9: Shows: names and' 'a word that is no ID'

right_tree
echo 'K77: there is no such row' >>"$tree/$reasons"
expect 1 "$reasons:4: no row K77" 'a reason for no row'

right_tree
echo 'K08: out of reach' >>"$tree/$reasons"
expect 1 "$reasons:4: K08 has a reason, but also a test: tests/ring/device.c:7" 'a stale reason'

for empty in 'BF-DRV-05:' 'BF-DRV-05: ' 'BF-DRV-05: ...'; do
	right_tree
	echo "$empty" >"$tree/$reasons"
	expect 1 "$reasons:1: BF-DRV-05 has an empty reason" "an empty reason: '$empty'"
done

right_tree
echo 'BF-DRV-05 the colon is missing' >"$tree/$reasons"
expect 1 "$reasons:1: not of the form ID: reason" 'a reason without a colon'

right_tree
echo 'BF-DRV-05: said again' >>"$tree/$reasons"
expect 1 "$reasons:4: BF-DRV-05 has a reason already; see $reasons:3" 'a second reason'

right_tree
echo '| K08 | device | again | right |' >>"$tree/$rows"
expect 1 "$rows:12: K08 is there twice; see $rows:11" 'a row that is there twice'

right_tree
echo '| SR-DEV30 | device | MUST | five |' >>"$tree/$rows"
expect 1 "$rows:12: not an ID: SR-DEV30" 'a row whose ID is misspelt'

right_tree
echo '/* Shows: K08 */' >"$tree/tests/ring/unregistered.c"
expect 1 'tests/ring/unregistered.c:1: unregistered.c is in no CMakeLists.txt' 'a C test that never runs'

right_tree
echo '# Shows: K08' >"$tree/tests/build/frames.sh"
expect 1 'tests/build/frames.sh:1: frames.sh is in no CMakeLists.txt' 'a shell test that never runs'

right_tree
: >"$tree/$rows"
expect 1 'no rows' 'a page without rows'

right_tree
rm "$tree/$rows"
expect 2 "no $rows" 'no page of rows'

exit "$failed"
