# Reads what `many` prints and prints each cell by name, and the count as the last line. A script
# that fails without a failed cell, prints no plan, or does not end, is a failed cell itself.

function cell(result, name) {
	count[result]++
	print result " - " name
	fflush()
}

function close_script(status) {
	if (planned != seen)
		cell("not ok", script ": planned " (planned < 0 ? "nothing" : planned) ", ran " seen)
	if (status != 0 && bad == 0)
		cell("not ok", script ": ended with " status)
	script = ""
}

BEGIN { count["ok"] = count["not ok"] = count["skip"] = 0 }

{ sub(/\r$/, "") }

/^@begin / {
	script = substr($0, 8)
	seen = bad = 0
	planned = -1
	next
}

/^@end / { close_script($2); next }

script != "" && /^1\.\.[0-9]+/ { planned = (planned < 0 ? 0 : planned) + substr($1, 4); next }

script != "" && /^(not )?ok/ {
	seen++
	result = /^not/ ? "not ok" : "ok"
	name = $0
	sub(/^(not )?ok *[0-9]* *-? */, "", name)
	sub(/^[^ ]*\//, "", name)	# Check names the file where the test is, wherever that lies
	if (result == "not ok")
		bad++
	else if (name ~ /# *[Ss][Kk][Ii][Pp]/)
		result = "skip"
	cell(result, script ": " name)
	next
}

{ print; fflush() }

END {
	if (script != "")
		close_script("no status")
	printf "%d passed, %d failed, %d skipped\n", count["ok"], count["not ok"], count["skip"]
}
