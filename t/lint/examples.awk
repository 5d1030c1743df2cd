# The blocks of C in a page's EXAMPLES, as the reader sees them. Each one with a main() is a program, and goes to
# OUT.1.c, OUT.2.c and so on; the others, together, to OUT.c. With JOIN, all of them do.

/^\.Sh / { examples = /EXAMPLES/ }
/^\.Bd -literal/ && examples {
	inside = 1
	text = ""
	next
}
/^\.Ed/ && inside {
	inside = 0
	printf "%s", text >(!join && text ~ /(^|\n)int main\(/ ? out "." ++programs ".c" : out ".c")
}
inside {
	gsub(/\\e/, "\\")
	gsub(/\\&/, "")
	gsub(/\\-/, "-")
	gsub(/\\(dq|q)/, "\"")
	text = text $0 "\n"
}
