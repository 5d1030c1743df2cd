# Reads `readelf --debug-dump=info` of one compilation unit and prints, a line each: every struct and
# union with its size, every field with its place and type, every enumerator with its value, and
# every global variable with its type. What a header says to the compiler, that is.

function value(line)
{
	sub(/^[^:]*: */, "", line)
	sub(/^\((indirect|indexed|alt)[^)]*\): */, "", line)
	sub(/[ \t]+$/, "", line)
	return line
}

function reference(text)
{
	gsub(/[<>]|0x/, "", text)
	return text
}

function number(text)
{
	sub(/[ \t(].*/, "", text)
	return text
}

# The type as one would write it, near enough.
function type_name(die, i, text, kid)
{
	if (die == "")
		return "void"
	if (tag[die] ~ /pointer_type$/)
		return type_name(type[die]) " *"
	if (tag[die] ~ /const_type$/)
		return "const " type_name(type[die])
	if (tag[die] ~ /volatile_type$/)
		return "volatile " type_name(type[die])
	if (tag[die] ~ /array_type$/) {
		text = type_name(type[die])
		for (i = 1; i <= kids[die]; i++)
			text = text "[" bound[kid_of[die, i]] "]"
		return text
	}
	if (tag[die] ~ /subroutine_type$/) {
		for (i = 1; i <= kids[die]; i++) {
			kid = kid_of[die, i]
			text = text (i > 1 ? ", " : "") \
				(tag[kid] ~ /unspecified/ ? "..." : type_name(type[kid]))
		}
		return type_name(type[die]) " (" text ")"
	}
	if (name[die] == "")
		return "unnamed " kind(die) " of " size[die] " bytes"
	return kind(die) name[die]
}

function kind(die)
{
	if (tag[die] ~ /structure_type$/)
		return "struct "
	if (tag[die] ~ /union_type$/)
		return "union "
	if (tag[die] ~ /enumeration_type$/)
		return "enum "
	return ""
}

# The fields of a struct, those of unnamed ones in it as its own, as the compiler sees them.
function print_fields(die, path, base, i, kid, at, inner)
{
	for (i = 1; i <= kids[die]; i++) {
		kid = kid_of[die, i]
		if (tag[kid] !~ /_member$/)
			continue
		at = base + place[kid]
		inner = type[kid]
		if (kind(inner) ~ /struct|union/ && name[inner] == "")
			print_fields(inner, name[kid] == "" ? path : path "." name[kid], at)
		if (name[kid] != "")
			print path "." name[kid] " at " at (bits[kid] == "" ? "" : " bits " bits[kid]) \
				": " type_name(inner)
	}
}

{ sub(/\r$/, "") }

/^ *<[0-9a-f]+><[0-9a-f]+>: Abbrev Number:/ {
	split($0, part, /[<>]/)
	depth = part[2]
	die = part[4]
	if ($0 ~ /Abbrev Number: 0/)
		next
	tag[die] = $0
	sub(/.*\(/, "", tag[die])
	sub(/\).*/, "", tag[die])
	at_depth[depth] = die
	parent = at_depth[depth - 1]
	kid_of[parent, ++kids[parent]] = die
	if (depth == 1)
		top[++tops] = die
	next
}

/DW_AT_name / { name[die] = value($0) }
/DW_AT_byte_size/ { size[die] = number(value($0)) }
/DW_AT_type / { type[die] = reference(value($0)) }
/DW_AT_data_member_location/ { place[die] = number(value($0)) }
/DW_AT_(data_bit_offset|bit_size)/ { bits[die] = bits[die] " " number(value($0)) }
/DW_AT_const_value/ { constant[die] = number(value($0)) }
/DW_AT_(upper_bound|count)/ { bound[die] = number(value($0)) }

END {
	for (t = 1; t <= tops; t++) {
		die = top[t]
		if (kind(die) ~ /struct|union/ && name[die] != "" && size[die] != "") {
			print kind(die) name[die] " has " size[die] " bytes"
			print_fields(die, kind(die) name[die], 0)
		}
		if (tag[die] ~ /enumeration_type$/)
			for (i = 1; i <= kids[die]; i++)
				print name[kid_of[die, i]] " is " constant[kid_of[die, i]]
		if (tag[die] ~ /variable$/)
			print name[die] ": " type_name(type[die])
	}
}
