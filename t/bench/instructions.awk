# Of two files of callgrind's, the second after more of the same than the first: what one more takes in
# the functions of lib/, the costliest first, and "total". more: how many that were.
BEGIN { sort = "sort -rn" }
FNR == 1 { file++; split("", names) }

# A name is written out once for each kind; later its number stands for it.
function name_of(line, kind,   number, at) {
	at = index(line, ")")
	number = kind substr(line, 1, at)
	if (length(line) > at)
		names[number] = substr(line, at + 2)
	return names[number]
}

function value() { return substr($0, index($0, "=") + 1) }

/^c(fi|fl)=/ { name_of(value(), "file") }
/^cfn=/ { name_of(value(), "function") }
/^(fi|fe)=/ { name_of(value(), "file") }
/^fl=/ { file_name = name_of(value(), "file") }
/^fn=/ {
	ours = file_name ~ /(^|\/)lib\/(util|proto|kern|cm|rs|ev)\/[^.]/
	now = name_of(value(), "function") " in " substr(file_name, match(file_name, /[^\/]*$/))
}

# What is called has its cost where it stands.
/^calls=/ { getline; next }
/^[-+*0-9]/ && ours { cost[now] += file == 1 ? -$2 : $2 }

END {
	for (now in cost) {
		total += cost[now]
		if (cost[now] > more / 2)
			printf "%d %s\n", cost[now] / more + 0.5, now | sort
	}
	close(sort)
	printf "%d total\n", total / more
}
