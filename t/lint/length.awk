# Reads C; prints the functions that are longer than 80 lines, from the brace to the brace, and with
# -v all=1 the length of every one.
/^[A-Za-z_].*\(/ { name = $0 }
/^\{/ { start = FNR }
/^\}/ && start {
	length_lines = FNR - start - 1
	functions++
	if (length_lines > 80 || all)
		print FILENAME ":" start ": " length_lines " lines: " name
	start = 0
}
END {
	if (!functions)
		print "no function was found at all"
}
