# Reads manual pages in mdoc; prints what their SYNOPSIS says in the form of prototypes.awk.

function unquote(text) {
	gsub(/"/, "", text)
	sub(/^[ \t]+/, "", text)
	return text
}

function emit(name, args, text) {
	if (name ~ /^\(\*/) {
		text = type name "(" args ")"
		gsub(/[(*)]/, "", name)
	} else {
		text = type "(" args ")"
	}
	gsub(/[ \t]/, "", text)
	print name, text
	type = ""
}

# The arguments of .Fn, quoted or not, with commas between them.
function commas(text, out, arg) {
	while (text !~ /^[ \t]*$/) {
		sub(/^[ \t]+/, "", text)
		if (text ~ /^"/) {
			text = substr(text, 2)
			arg = substr(text, 1, index(text, "\"") - 1)
			text = substr(text, index(text, "\"") + 1)
		} else {
			arg = text
			sub(/[ \t].*/, "", arg)
			text = substr(text, length(arg) + 1)
		}
		out = out (out == "" ? "" : ",") arg
	}
	return out
}

/^\.Sh / { synopsis = /SYNOPSIS/; next }
!synopsis { next }
/^\.Ft / { type = unquote(substr($0, 5)) }
/^\.Fn / {
	line = substr($0, 5)
	name = line
	sub(/^"/, "", name)
	sub(/[" \t].*/, "", name)
	sub(/^"?[^" \t]+"?/, "", line)
	emit(name, commas(line))
}
/^\.Fo / { in_fo = 1; name = unquote(substr($0, 5)); args = "" }
/^\.Fa / && in_fo { args = args (args == "" ? "" : ",") unquote(substr($0, 5)) }
/^\.Fc/ { in_fo = 0; emit(name, args) }
