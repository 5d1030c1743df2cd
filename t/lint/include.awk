# Reads sources; prints the includes that the part they are in may not have.
# The parts, and what each may include: names of parts, or of what is outside the tree.

BEGIN {
	allow["lib/util"] = "libc util"
	allow["lib/proto"] = "libc util proto"
	allow["lib/kern"] = "libc util kern kernel libnl"
	allow["lib/cm"] = "libc util kern cm rdma libibverbs"
	allow["lib/preload"] = "libc util preload rdma"
	allow["lib/rs"] = "libc util proto rs rdma libibverbs"
	# The event layer is in floors: each may include its own headers, and those of the floors below.
	ev = "libc util proto rdma evrdma libibverbs libevent"
	n = split("core cm device memory queue connection datagram stream", floors)
	for (i = 1; i <= n; i++)
		allow["lib/ev/" floors[i]] = ev = ev " ev/" floors[i]
	allow["lib/ev"] = ev
	allow["include/rdma"] = "libc rdma libibverbs"
	allow["include/infiniband"] = "libc libibverbs"
	allow["include/evrdma"] = "libc evrdma"
	allow["examples"] = "libc rdma evrdma libibverbs libevent examples"
	libc = "^(assert|ctype|dirent|dlfcn|endian|errno|fcntl|fnmatch|getopt|ifaddrs|inttypes|limits|locale" \
		"|malloc|math|netdb|poll|pthread|sched|search|semaphore|setjmp|signal|stdalign|stdarg" \
		"|stdatomic|stdbool|stddef|stdint|stdio|stdlib|string|strings|syslog|termios|time|unistd" \
		"|(sys|net|netinet|arpa|bits)/[a-z0-9_]+)\\.h$"
}

# The part a file is in.
function part_of(file) {
	if (file ~ /^examples\//)
		return "examples"
	if (!match(file, /^lib\/ev\/[^\/]+\//))
		match(file, /^[^\/]+\/[^\/]+\//)
	return substr(file, 1, RLENGTH - 1)
}

# Whose header it is, for <name>.
function owner_of(name) {
	if (name == "config.h" || name == "linux/types.h" || name ~ libc)
		return "libc"
	if (name ~ /^(linux|asm)\// || name ~ /^rdma\/(rdma_user|ib_user|rdma_netlink)/)
		return "kernel"
	if (name ~ /^netlink\//)
		return "libnl"
	if (name ~ /^event2?[\/.]/)
		return "libevent"
	if (name ~ /^infiniband\//)
		return "libibverbs"
	if (name ~ /^(rdma|evrdma)\//)
		return substr(name, 1, index(name, "/") - 1)
	return "nobody known"
}

# Whose header it is, for "name": the tree's own, by the folder under lib/.
function own_part(name, part) {
	if (name == "config.h")
		return "libc"
	if (part == "examples")
		return name ~ /^(util|proto|kern|cm|rs|preload|ev|lib)\// ? "lib" : "examples"
	if (name !~ /\//)
		return "a file named without its folder"
	if (!match(name, /^ev\/[^\/]+\//))
		match(name, /^[^\/]+\//)
	return substr(name, 1, RLENGTH - 1)
}

/^[ \t]*#[ \t]*include[ \t]*[<"]/ {
	part = part_of(FILENAME)
	name = $0
	sub(/^[^<"]*[<"]/, "", name)
	sub(/[>"].*/, "", name)
	seen++
	if (name ~ /(^|\/)\.\.?\//) {
		print FILENAME ":" FNR ": climbs to " name
		next
	}
	if (part ~ /^t\//)
		next
	owner = $0 ~ /include[ \t]*</ ? owner_of(name) : own_part(name, part)
	if (!(part in allow))
		print FILENAME ":" FNR ": " part " is in no table"
	else if (index(" " allow[part] " ", " " owner " ") == 0)
		print FILENAME ":" FNR ": " part " may not include " name " (" owner ")"
}

END {
	if (!seen)
		print "no include was found at all"
}
