# Reads "CORE SIDE CONNECTIONS KIND NUMBER COUNT" and prints what one more connection costs each
# side on each core, a row per command. Variables: few and many, the connections of the two runs.
# Ends with 1 when ours asks the kernel for more than the stock core does, in any row or in all.

function kind_of(kind) { return kind == "cm" ? "cm" : "verbs" }

function shown(x) { return sprintf(x == int(x) ? "%d" : "%.2f", x) }

function row(side, what, name,	ours, stock, verdict) {
	ours = slope[side, "ours", what, name]
	stock = slope[side, "stock", what, name]
	if (!ours && !stock)
		return
	verdict = ours > stock ? "  more" : ours < stock ? "  fewer" : ""
	printf "%-8s %-6s %-28s %8s %8s%s\n", side, what, name, shown(stock), shown(ours), verdict
	if (ours > stock)
		bad = 1
	total[side, what, "ours"] += ours
	total[side, what, "stock"] += stock
}

function sum(side, what,	ours, stock) {
	ours = total[side, what, "ours"]
	stock = total[side, what, "stock"]
	printf "%-8s %-6s %-28s %8s %8s\n", side, what, "in all", shown(stock), shown(ours)
	all["ours"] += ours
	all["stock"] += stock
}

{
	what = kind_of($4)
	name = name_of($4, $5)
	if (!((what, name) in known)) {
		known[what, name] = 1
		what_of[++rows] = what
		name_of_row[rows] = name
	}
	slope[$2, $1, what, name] += ($3 == many ? $6 : -$6) / (many - few)
}

END {
	printf "%-8s %-6s %-28s %8s %8s\n", "side", "", "per connection", "stock", "ours"
	for (s = split("active passive", sides, " "); s > 0; s--)
		for (w = split("verbs cm", kinds, " "); w > 0; w--) {
			for (r = 1; r <= rows; r++)
				if (what_of[r] == kinds[w])
					row(sides[s], kinds[w], name_of_row[r])
			sum(sides[s], kinds[w])
		}
	printf "%-8s %-6s %-28s %8s %8s\n", "both", "", "in all", shown(all["stock"]),
		shown(all["ours"])
	exit bad || !rows || all["ours"] > all["stock"]
}
