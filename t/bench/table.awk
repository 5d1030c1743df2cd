# The samples of table.sh as a table of tab-separated fields: row, unit, ours, the best of the others,
# which that is, ours by theirs, the goal, how many runs failed and whose, and the shortest and longest of
# both. Medians of those that did not fail.
BEGIN { FS = OFS = "\t" }
{
	note($1, $5)
	unit[$1] = $2
	better[$1] = $3
	goal[$1] = $4
	runs[$1, $5]++
}
is_number($6) { value[$1, $5, ++n[$1, $5]] = $6 + 0 }

function is_number(text) { return text ~ /^[0-9]+(\.[0-9]*)?(e[-+]?[0-9]+)?$/ }

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

# Of an even number the mean of the two in the middle.
function median(row, side,    low, high) {
	low = int((n[row, side] + 1) / 2)
	high = int(n[row, side] / 2) + 1
	return (value[row, side, low] + value[row, side, high]) / 2
}

function spread(row, side) {
	return n[row, side] ? value[row, side, 1] " to " value[row, side, n[row, side]] : "-"
}

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

# Of every side, also of one that is the best in no other run.
function failed_text(row,    i, side, text) {
	for (i = 1; i <= sides[row]; i++) {
		side = whose[row, i]
		if (n[row, side] < runs[row, side])
			text = text (text == "" ? "" : ", ") side " " runs[row, side] - n[row, side] \
				" of " runs[row, side]
	}
	return text == "" ? "none" : text
}

function median_text(row, side) { return side != "" && n[row, side] ? median(row, side) "" : "-" }

function ratio_text(row, ours, theirs) {
	if (!n[row, ours] || theirs == "" || !median(row, theirs))
		return "-"
	return sprintf("%.2f", median(row, ours) / median(row, theirs))
}

function print_row(row,    i, ours, theirs) {
	for (i = 1; i <= sides[row]; i++)
		sort(row, whose[row, i])
	ours = whose[row, 1]
	theirs = best_of_others(row)
	print row, unit[row], median_text(row, ours), median_text(row, theirs), theirs == "" ? "-" : theirs,
		ratio_text(row, ours, theirs), goal_text(row), failed_text(row),
		spread(row, ours) "; " (theirs == "" ? "-" : spread(row, theirs))
}

END {
	print "row", "unit", "ours", "theirs", "whose", "ratio", "goal", "failed", "shortest to longest"
	for (i = 1; i <= n_rows; i++)
		print_row(rows[i])
}
