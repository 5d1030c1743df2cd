# The samples of table.sh as a table of tab-separated fields: row, unit, ours, the best of the others,
# which that is, ours by theirs, the goal, and the shortest and longest of both. Medians.
BEGIN { FS = OFS = "\t" }
$6 == "" { failed[$1, $5]++; note($1, $5); unit[$1] = $2; better[$1] = $3; goal[$1] = $4; next }
{
	note($1, $5)
	unit[$1] = $2
	better[$1] = $3
	goal[$1] = $4
	value[$1, $5, ++n[$1, $5]] = $6 + 0
}

function note(row, side) {
	if (!(row in sides))
		rows[++n_rows] = row
	if (!((row, side) in seen)) {
		seen[row, side]
		whose[row, ++sides[row]] = side
	}
}

# In place, as they are few.
function sort(row, side,    i, j, x) {
	for (i = 2; i <= n[row, side]; i++) {
		x = value[row, side, i]
		for (j = i - 1; j >= 1 && value[row, side, j] > x; j--)
			value[row, side, j + 1] = value[row, side, j]
		value[row, side, j + 1] = x
	}
}

function median(row, side) { return value[row, side, int((n[row, side] + 1) / 2)] }
function spread(row, side) { return value[row, side, 1] " to " value[row, side, n[row, side]] }

function best_of_others(row,    i, side, best) {
	for (i = 2; i <= sides[row]; i++) {
		side = whose[row, i]
		if (!n[row, side])
			continue
		if (best == "" || (better[row] == "lower") == (median(row, side) < median(row, best)))
			best = side
	}
	return best
}

# A row without a goal is there to be known.
function goal_text(row) {
	if (goal[row] == "-")
		return "reported"
	if (goal[row] ~ /^=/)
		return "ours " (better[row] == "lower" ? "at most " : "at least ") substr(goal[row], 2)
	return (better[row] == "lower" ? "at most " : "at least ") goal[row]
}

function print_row(row,    i, ours, theirs) {
	for (i = 1; i <= sides[row]; i++)
		sort(row, whose[row, i])
	ours = whose[row, 1]
	theirs = best_of_others(row)
	if (!n[row, ours] || theirs == "") {
		print row, unit[row], "-", "-", theirs, "-", goal_text(row), "failed"
		return
	}
	print row, unit[row], median(row, ours), median(row, theirs), theirs,
		sprintf("%.2f", median(row, ours) / median(row, theirs)),
		goal_text(row),
		spread(row, ours) "; " spread(row, theirs)
}

END {
	print "row", "unit", "ours", "theirs", "whose", "ratio", "goal", "shortest to longest"
	for (i = 1; i <= n_rows; i++)
		print_row(rows[i])
}
