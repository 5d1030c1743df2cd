# The blocks of C in a page's EXAMPLES, as the reader sees them. Each one with a main() is a program, and goes to
# OUT.1.c, OUT.2.c and so on; the others, together, to OUT.c. With JOIN, all of them do.
#
# A block after a line with `.Pa NAME :` is a file, wherever it is on the page, and a later one of the same name
# replaces it. With FILES, a folder, what there is after the section `.Ss STEP.` goes there, and nothing else;
# without STEP, what there is at the end.

/^\.Sh / { examples = /EXAMPLES/ }
/^\.Ss [0-9]+\./ { at = $2 + 0 }
/^\.Bd -literal/ && (name != "" || examples && !files) {
	inside = 1
	text = ""
	next
}
/^\.Ed/ && inside && name != "" {
	inside = 0
	if (files && (step == "" || at <= step))
		file[name] = text
}
/^\.Ed/ && inside {
	inside = 0
	printf "%s", text >(!join && text ~ /(^|\n)int main\(/ ? out "." ++programs ".c" : out ".c")
}
!inside { name = /^\.Pa [^ ]+ :$/ ? $2 : "" }
inside {
	gsub(/\\e/, "\\")
	gsub(/\\&/, "")
	gsub(/\\-/, "-")
	gsub(/\\(dq|q)/, "\"")
	text = text $0 "\n"
}
END {
	for (name in file)
		printf "%s", file[name] >(files "/" name)
}
