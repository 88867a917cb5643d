#!/bin/sh
# Checks that every row of rows.md has a test that names it or a reason in reasons.md.
#
# usage: check.sh [DIR]     DIR is the top of the tree; by default the one this script lies in
#
# Exit status: 0 all is well, 1 a fault was found, 2 nothing could be checked.

# The awk programs stand in single quotes on purpose.
# shellcheck disable=SC2016

LC_ALL=C
export LC_ALL

top=${1:-$(dirname -- "$0")/../..}
cd -- "$top" || exit 2
here=tests/conformance
for page in "$here/rows.md" "$here/reasons.md"; do
	if ! [ -r "$page" ]; then
		echo "conformance: no $page in $(pwd)" >&2
		exit 2
	fi
done

# Each reader prints records of tab-separated fields: a kind, where it was found, and what was found.
is_id='function is_id(s) { return s ~ /^(K|[A-Z]+-[A-Z]+-)[0-9][0-9]+$/ }
{ sub(/\r$/, ""); at = FILENAME ":" FNR }'

# A table row whose first cell is an ID. Headings and rules are passed over, anything else is a slip.
read_rows='/^[ \t]*\|/ {
	split($0, cell, "|")
	gsub(/^[ \t]+|[ \t]+$/, "", cell[2])
	if (is_id(cell[2]))
		print "row\t" at "\t" cell[2]
	else if (cell[2] != "ID" && cell[2] !~ /^:?-+:?$/)
		print "bad\t" at "\tnot an ID: " cell[2]
}'

# "ID: reason" at the start of a line.
read_reasons='match($0, /^(K|[A-Z]+-[A-Z]+-)[0-9]+/) {
	id = substr($0, 1, RLENGTH)
	rest = substr($0, RLENGTH + 1)
	if (rest !~ /^:/) {
		print "bad\t" at "\tnot of the form ID: reason"
		next
	}
	print "reason\t" at "\t" id
	if (rest !~ /[A-Za-z0-9]/)
		print "empty\t" at "\t" id
}'

# "Shows: ID ..." in a C comment, or at the start of a shell comment.
read_tests='FILENAME ~ /\.sh$/ ? /^[ \t]*#[ \t]*Shows:/ : /(^|[ \t*\/])Shows:/ {
	print "test\t" at "\t" FILENAME
	sub(/^.*Shows:/, "")
	sub(/\*\/.*/, "")
	n = split($0, id, /[ \t,]+/)
	for (i = 1; i <= n; i++)
		if (id[i] != "")
			print "shown\t" at "\t" id[i]
}'

# Every word of a CMake file, comments aside, without the folders before it.
read_cmake='{
	sub(/#.*/, "")
	n = split($0, word, /[ \t();"]+/)
	for (i = 1; i <= n; i++) {
		sub(/.*\//, "", word[i])
		if (word[i] != "")
			print "cmake\t" at "\t" word[i]
	}
}'

# A row's own order is kept, so that faults are listed as the pages are read.
judge='BEGIN { FS = "\t" }

function fault(text) { print text | "cat 1>&2"; faults++ }

$1 == "row" {
	if ($3 in row)
		fault($2 ": " $3 " is there twice; see " row[$3])
	else {
		row[$3] = $2
		order[++rows] = $3
	}
}
$1 == "reason" {
	if ($3 in reason)
		fault($2 ": " $3 " has a reason already; see " reason[$3])
	else {
		reason[$3] = $2
		reasons++
	}
	if (!($3 in row))
		fault($2 ": no row " $3)
}
$1 == "empty" { fault($2 ": " $3 " has an empty reason") }
$1 == "bad" { fault($2 ": " $3) }
$1 == "cmake" { cmake[$3] }
$1 == "shown" {
	if (!($3 in row))
		fault($2 ": Shows: names " $3 ", but there is no such row")
	else if (!($3 in shown)) {
		shown[$3] = $2
		tests++
	}
}
$1 == "test" && !($3 in seen) {
	seen[$3]
	file = stem = $3
	sub(/.*\//, "", file)
	stem = file
	sub(/\.[^.]*$/, "", stem)
	if (!(file in cmake) && !(stem in cmake))
		fault($2 ": " file " is in no CMakeLists.txt below tests/")
}
END {
	for (i = 1; i <= rows; i++) {
		id = order[i]
		if (!(id in shown) && !(id in reason))
			fault(row[id] ": " id " has neither a test nor a reason")
		if ((id in shown) && (id in reason))
			fault(reason[id] ": " id " has a reason, but also a test: " shown[id])
	}
	if (!rows)
		fault("no rows")
	close("cat 1>&2")
	printf "conformance: %d rows, %d shown by tests, %d with reasons", rows, tests, reasons
	print faults ? "; " faults (faults > 1 ? " faults" : " fault") : ""
	exit faults > 0
}'

# Rows and CMake words come first: what follows is judged against them.
{
	awk "$is_id $read_rows" "$here/rows.md"
	find tests -type f -name CMakeLists.txt -exec awk "$is_id $read_cmake" {} +
	awk "$is_id $read_reasons" "$here/reasons.md"
	find tests -type f \( -name '*.c' -o -name '*.sh' \) -exec awk "$is_id $read_tests" {} + |
		sort -t "$(printf '\t')" -k 2,2
} | awk "$judge"
