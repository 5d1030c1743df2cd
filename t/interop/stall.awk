# Reads a page of the manual, then the kernel's trace of one thread, and prints where it slept: a row
# for each kind of call, with how often and how long. A kind may sleep when the page lists it under
# "Calls that may sleep", or when it is the loop's own wait; any other command, for as many
# milliseconds as the page says. Ends with 1 when another slept, or when the trace has gaps.
# Variables: note, the file for a row per kind: KIND TIMES LONGEST.

BEGIN {
	loop["epoll_wait"] = loop["epoll_pwait"] = loop["epoll_pwait2"] = 1
}

FNR == 1 { page = NR == 1 }

page && /^\.S[hs] / { listing = /Calls that may sleep/ }
page && listing && /^\.It [^E].* Ta / {
	sub(/^\.It /, "")
	gsub(/"/, "")
	split($0, cell, / Ta /)
	listed[cell[1]] = cell[3]
}
page { next }

# "# entries-in-buffer/entries-written: 12/34   #P:2"
/^# entries-in-buffer/ {
	split($3, entries, "/")
	lost = entries[1] != entries[2]
}

/^#/ || !match($0, / [0-9]+\.[0-9]+: /) { next }

{
	now = substr($0, RSTART + 1, RLENGTH - 3)
	what = substr($0, RSTART + RLENGTH)
	events++
}

# A call begins: "sys_write(fd: 3, ...)", and its thread is the one that is traced.
what ~ /^sys_[a-z0-9_]+\(/ {
	match($0, /-[0-9]+ +\[/)
	pid = substr($0, RSTART + 1) + 0
	call = substr(what, 5, index(what, "(") - 5)
	next
}

what ~ /^sys_[a-z0-9_]+ -> / { call = ""; next }

# What a write or an ioctl asks for.
what ~ /^(cm|verbs_write|verbs|ioctl): / {
	match(what, /number=[0-9]+/)
	kind = substr(what, 1, index(what, ":") - 1)
	call = kind == "cm" ? "rdma_cm " : "uverbs "
	call = call name_of(kind == "verbs_write" ? "verbs" : kind, \
		substr(what, RSTART + 7, RLENGTH - 7) + 0)
	next
}

# A descriptor is given back on the way out of the call that closed it, after its end was traced.
what ~ /^(close_[a-z]+|late): / { call = substr(what, 1, index(what, ":") - 1); next }
what ~ /^late_end: / { call = ""; next }

what ~ /^sched_switch: / {
	if (what ~ "prev_pid=" pid " " && what !~ /prev_state=R/) {
		since = now
		slept_in = call
	}
	if (what ~ "next_pid=" pid " " && since) {
		count[slept_in]++
		us = (now - since) * 1000000
		if (us > longest[slept_in])
			longest[slept_in] = us
		since = 0
	}
}

function verdict(kind) {
	if (kind in listed)
		return "listed"
	if (kind ~ /^(rdma_cm|uverbs) / && longest[kind] <= listed["any other command"] * 1000)
		return "a moment"
	return "NOT LISTED"
}

function row(kind, why) {
	printf "%-28s %7d %10d  %s\n", kind, count[kind], longest[kind], why
	if (note)
		printf "%s\t%d\t%d\n", kind, count[kind], longest[kind] >>note
}

END {
	printf "%-28s %7s %10s\n", "sleeps of the loop's thread", "times", "longest us"
	for (kind in count) {
		if (kind == "" || kind in loop)
			continue
		row(kind, verdict(kind))
		bad += verdict(kind) == "NOT LISTED"
	}
	for (kind in loop)
		if (kind in count)
			row(kind, "the loop's own wait")
	if ("" in count)
		printf "%-28s %7d %10d  not in a call\n", "page faults", count[""], longest[""]
	printf "%d events\n", events
	if (lost)
		print "the trace has gaps"
	exit lost || bad
}
