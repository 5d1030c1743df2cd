# Reads public headers; prints one line per function declared there, "name type(arguments)", and one
# per type of a callback, "name typedef type(*name)(arguments)", with no white space but after the
# name. Functions defined in the header are left out, unless inlines is set.

function squeeze() {
	gsub(/[ \t]+/, " ", statement)
	sub(/^ /, "", statement)
}

function flush_statement() {
	squeeze()
	if (statement ~ /^typedef .*\(\*/)
		print_callback(statement)
	else if (statement !~ /^(typedef|static|__attribute__)/ && statement ~ /\(/)
		print_prototype(statement)
	statement = ""
}

function flush_function() {
	squeeze()
	if (inlines)
		print_prototype(statement)
	statement = ""
}

function print_prototype(text, head, args, name) {
	head = substr(text, 1, index(text, "(") - 1)
	args = substr(text, index(text, "("))
	sub(/ $/, "", head)
	name = head
	sub(/.*[ *]/, "", name)
	head = substr(head, 1, length(head) - length(name))
	text = head args
	gsub(/ /, "", text)
	print name, text
}

function print_callback(text, name) {
	name = text
	sub(/^[^(]*\(\*/, "", name)
	sub(/\).*/, "", name)
	gsub(/ /, "", text)
	print name, text
}

# The line without its comments.
function strip_comments(line, out, at) {
	for (;;) {
		if (in_comment) {
			if (!(at = index(line, "*/")))
				return out
			line = substr(line, at + 2)
			in_comment = 0
		}
		if (!(at = index(line, "/*")))
			return out line
		out = out substr(line, 1, at - 1) " "
		line = substr(line, at + 2)
		in_comment = 1
	}
}

FNR == 1 { in_comment = in_cxx = in_macro = depth = 0; statement = "" }
{ line = strip_comments($0) }
line ~ /^#ifdef __cplusplus/ { in_cxx = 1 }
in_cxx { if (line ~ /^#endif/) in_cxx = 0; next }
in_macro || line ~ /^[ \t]*#/ { in_macro = line ~ /\\$/; next }
{ statement_part(line " ") }

# Adds the characters outside braces; a statement ends with ';', or with the '}' of a function.
function statement_part(text, i, c) {
	for (i = 1; i <= length(text); i++) {
		c = substr(text, i, 1)
		if (c == "{") {
			depth++
		} else if (c == "}") {
			if (--depth == 0 && statement ~ /\)[ \t]*$/)
				flush_function()
		} else if (depth == 0) {
			if (c == ";")
				flush_statement()
			else
				statement = statement c
		}
	}
}
