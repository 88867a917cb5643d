# Counting instructions with callgrind: sourced by the scripts of that name in ring, block and seeds,
# with $top set to the top of the tree, $requests to how many a case has, and before count $program.
# shellcheck shell=sh disable=SC2154

fail() {
	echo "instructions: $1" >&2
	exit 1
}

command -v valgrind >/dev/null || fail "needs valgrind: apt-get install valgrind"
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# count CASE FUNCTION [FLAG...]: what CASE takes within FUNCTION of $program, which runs it when it is
# told so by -c. Leaves the counts in $out/cg and the number of requests in $out/requests.
count() {
	case=$1
	within=$2
	shift 2
	valgrind --tool=callgrind --callgrind-out-file="$out/cg" \
		"--toggle-collect=$within" "$@" \
		"$program" -c "$case,$requests" >"$out/requests" 2>"$out/log" ||
		{ cat "$out/log" >&2; exit 1; }
}

# build_profile TARGET [FLAG...]: one that knows its lines, in build/profile/bin.
build_profile() {
	target=$1
	shift
	{
		cmake -S "$top" -B "$top/build/profile" -DCMAKE_BUILD_TYPE=Release \
			-DCMAKE_C_FLAGS_RELEASE="-O2 -DNDEBUG -g" -DVQBLK_BUILD_BENCH=ON \
			-DVQBLK_BUILD_TESTS=OFF -DVQBLK_BUILD_EXAMPLES=OFF -DVQBLK_BUILD_HOST=OFF \
			"$@" &&
			cmake --build "$top/build/profile" --target "$target"
	} >"$out/log" 2>&1 || { cat "$out/log" >&2; exit 1; }
}

# print_profile: a row for each call and each function of the source in it, and the three dearest lines
# of that.
# In the counts, fn names a function of the program, and fl, fi and fe the source file of the
# lines that follow; what comes after "calls" is the callee's. Functions of the source are found
# by its style: a name in the first column, braces alone there.
print_profile() {
	awk -v requests="$(cat "$out/requests")" '
	function learn(file,    line, n, name, found) {
		known[file] = 1
		while ((getline line < file) > 0) {
			n++
			if (line ~ /^[A-Za-z_].*\(/ && match(line, /[a-z_0-9]+\(/))
				name = substr(line, RSTART, RLENGTH - 1)
			if (line ~ /^\{/) found = name
			owner[file, n] = found
			if (line ~ /^\}/) found = ""
		}
		close(file)
	}
	/^fn=/ { call = substr($0, 4); next }
	/^f[lie]=/ { file = substr($0, 4); next }
	/^calls=/ { getline; next }
	/^[0-9]+ [0-9]+$/ && file ~ /\/(lib|include)\// {
		if (!(file in known)) learn(file)
		name = owner[file, $1]
		if (name == "") name = "?"
		short = file
		sub(/.*\//, "", short)
		key = call SUBSEP name " (" short ")"
		of_call[call] += $2
		cost[key] += $2
		line_cost[key, $1] += $2
		lines[key] = lines[key] " " $1
	}
	function dearest(key,    n, l, i, k, best, text, seen) {
		n = split(lines[key], l, " ")
		for (k = 0; k < 3; k++) {
			best = 0
			for (i = 1; i <= n; i++)
				if (!(l[i] in seen) && (!best || line_cost[key, l[i]] > line_cost[key, best]))
					best = l[i]
			if (!best || line_cost[key, best] < 0.05 * requests) break
			seen[best] = 1
			text = text sprintf("  line %d: %.1f", best, line_cost[key, best] / requests)
		}
		return text
	}
	END {
		for (call in of_call)
			if (of_call[call] >= requests / 10)
				printf "%s\t%09d\t0\t%-40s %7.1f\n", call, 0, call, of_call[call] / requests
		for (key in cost) {
			split(key, part, SUBSEP)
			if (cost[key] >= requests / 10)
				printf "%s\t%09d\t1\t  %-38s %7.1f %s\n", part[1], 1e9 - 1 - cost[key],
					part[2], cost[key] / requests, dearest(key)
		}
	}' "$out/cg" | sort | cut -f 4
}
