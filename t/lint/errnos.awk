# Reads public headers; prints "name errno" for what the comment in front of a call says it fails with.
# known is the names that are errnos, with a blank before and after each.

function add_errnos(line, word) {
	while (match(line, /[A-Z0-9]+/)) {
		word = substr(line, RSTART, RLENGTH)
		line = substr(line, RSTART + RLENGTH)
		if (index(known, " " word " "))
			found = found " " word
	}
}

# The call that a declaration begins with.
function name_of(line) {
	sub(/\(.*/, "", line)
	sub(/.*[ *]/, "", line)
	return line
}

function print_errnos(name, list, n, i) {
	n = split(found, list, " ")
	for (i = 1; i <= n; i++)
		print name, list[i]
}

FNR == 1 { in_comment = 0; found = "" }
/^\/\*/ { in_comment = 1; found = "" }
in_comment { add_errnos($0); if (/\*\//) in_comment = 0; next }
/^[a-z].*\(/ { print_errnos(name_of($0)); found = "" }
