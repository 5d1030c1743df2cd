#!/bin/sh
# rtools_rcopy.sh rxe|siw [CLIENT SERVER]...: the matrix of rcopy pairs on one device.
# time: virtual
. "$top_srcdir/t/interop/rtools.sh"

kind=$1
shift
# The control first. Other librdmacms than the stock one come in as other ends: ours@ours.
[ $# -gt 0 ] || set -- stock@stock stock@stock ours@stock ours@stock \
	ours@stock stock@stock stock@stock ours@stock

serve() {
	port=$((port + 1))
	mkdir -p "$tmp/folder"
	(cd "$tmp/folder" && end_run "$1" 0 rcopy -p $port) >"$tmp/server" 2>&1 &
	pid=$!
	wait_until 60 is_listening $port
}

stop() {
	kill $pid
	{ wait $pid; } 2>/dev/null
	rm -rf "$tmp/folder"
}

# copy CLIENT SOURCE DESTINATION [ADDRESS]: leaves what was printed in $tmp/client.
copy() { (end_run "$1" 90 rcopy "$2" "${4:-$EVR_IP4}:$3" -p $port) >"$tmp/client" 2>&1; }

# What was sent arrived, with its mode, and nothing but it.
arrives() {
	copy "$1" "$2" "$3" && cmp "$2" "$tmp/folder/$3" &&
		[ "$(stat -c %a "$2")" = "$(stat -c %a "$tmp/folder/$3")" ] &&
		[ "$(ls -A "$tmp/folder")" = "$(basename "$3")" ] &&
		grep -q '^opening...transferring...closing...done$' "$tmp/client" &&
		grep -Eq '^[0-9]+ bytes in [0-9.]+ seconds = [0-9.]+ Gb/sec$' "$tmp/client" && return
	cat "$tmp/client" "$tmp/server"
	return 1
}

# fails CLIENT SOURCE DESTINATION: and leaves nothing behind.
fails() {
	copy "$1" "$2" "$3" && return 1
	cat "$tmp/client"
	! grep -q 'bytes in' "$tmp/client"
}

matrix() {
	serve "$2"
	for size in 1 100 65536 1000000 6291456 40000000; do
		head -c $size /dev/urandom >"$tmp/source"
		chmod 640 "$tmp/source"
		cell "$kind: $1 client, $2 server, rcopy of $size bytes" arrives "$1" "$tmp/source" copied
	done
	head -c 5000 /dev/urandom >"$tmp/source"
	cell "$kind: $1 client, $2 server, rcopy over an older file" arrives "$1" "$tmp/source" copied
	cell "$kind: $1 client, $2 server, rcopy into a folder that is not there" \
		fails "$1" "$tmp/source" nosuch/copied
	cell "$kind: $1 client, $2 server, rcopy of no file" fails "$1" "$tmp/nosuch" copied
	cell "$kind: $1 client, $2 server, rcopy once more" arrives "$1" "$tmp/source" copied
	stop
}

# --- what is ours alone ------------------------------------------------------------

ends_well() {
	copy ours@stock "$tmp/source" "$1" "${2:-$EVR_IP4}" && cmp "$tmp/source" "$tmp/folder/$1"
}

refused() {
	fails "$1" "$tmp/source" "$2" && grep -q "$3" "$tmp/client" &&
		[ -z "$(find "$tmp/folder" -newer "$tmp/mark" -type f)" ] && [ ! -e "$tmp/outside/x" ]
}

outside() {
	mkdir -p "$tmp/outside" "$tmp/folder/in"
	ln -s "$tmp/outside" "$tmp/folder/link"
	: >"$tmp/mark"
	# The stock client does not say what the answer was.
	case $1 in
	stock*) why=opening folder=opening ;;
	*) why="Permission denied; name a file in the server's folder" folder=directory ;;
	esac
	for path in ../x in/../../x "$tmp/outside/x" link/x /x in/../x; do
		cell "$kind: our server refuses $path from $1" refused "$1" "$path" "$why"
	done
	cell "$kind: our server refuses a folder as a file from $1" refused "$1" in "$folder"
}

# A client in the middle, as $client. The file is so large, and empty, that none is done with it before
# something happens to it. Leaves the name of the part in $part.
in_the_middle() {
	truncate -s 20G "$tmp/large"
	(end_run "$1" 0 rcopy "$tmp/large" "$EVR_IP4:half" -p $port) >"$tmp/client" 2>&1 &
	client=$!
	wait_until 60 coming && part=$(find "$tmp/folder" -name '.rcopy-*')
}
coming() { [ -n "$(find "$tmp/folder" -name '.rcopy-*' -size +0)" ]; }
nothing_left() { [ -z "$(find "$tmp/folder" -name '.rcopy-*')" ] && [ ! -e "$tmp/folder/half" ]; }

end_client() {
	kill -9 $client
	{ wait $client; } 2>/dev/null
	rm -f "$tmp/large"
}

# Nothing of a file that did not come whole is left, and the next one is served.
broken() {
	in_the_middle "$1"
	end_client
	wait_until 90 nothing_left && ends_well after
}

still() {
	in_the_middle "$1" && kill -STOP $client
	wait_until 90 nothing_left && ends_well after && result=0 || result=1
	end_client
	return $result
}

killed() {
	cell "$kind: our server keeps nothing of a client that is killed" broken ours@stock
	first=$part
	cell "$kind: our server keeps nothing of a stock client that is killed" broken stock@stock
	cell "$kind: the part files of our server have names of their own" test "$first" != "$part"
	cell "$kind: our server keeps nothing of a client that stands still" still ours@stock
}

# --- what a hostile client may do --------------------------------------------------

# The name that a part file had, once for all transfers of a server.
old_part() { ends_well ".rcopy-$pid" && ends_well next; }

# A name of so many bytes.
name_of() { printf "%0$1d" 0; }

names() {
	cell "$kind: our server takes what is called as a part file was" old_part
	cell "$kind: our server takes what is called as a part file is" ends_well .rcopy-0123456789abcdef
	rm -f "$tmp/folder"/.rcopy-*
	cell "$kind: our server takes a name of 255 bytes" ends_well "$(name_of 255)"
	: >"$tmp/mark"
	cell "$kind: our server refuses a name of 256 bytes" \
		refused ours@stock "$(name_of 256)" 'File name too long'
	cell "$kind: our server refuses a file that ends with a slash" \
		refused ours@stock nosuch/ directory
	ln -s "$tmp/outside/x" "$tmp/folder/dangling"
	: >"$tmp/mark"
	cell "$kind: our server writes through no link" refused ours@stock dangling 'Permission denied'
}

# Each of them waits for those before it.
crowd() {
	clients=
	for i in 1 2 3 4 5; do
		(end_run ours@stock 90 rcopy "$tmp/source" "$EVR_IP4:crowd$i" -p $port) >"$tmp/crowd$i" 2>&1 &
		clients="$clients $!"
	done
	result=0
	for client in $clients; do wait "$client" || result=1; done
	for i in 1 2 3 4 5; do cmp "$tmp/source" "$tmp/folder/crowd$i" || result=1; done
	return $result
}

# too_large: more than the server may write, which is told, and leaves the server to the next client.
too_large() {
	: >"$tmp/mark"
	prlimit --pid $pid --fsize=65536:1048576
	head -c 500000 /dev/urandom >"$tmp/source"
	refused ours@stock large 'File too large' && result=0 || result=1
	prlimit --pid $pid --fsize=1048576:1048576
	head -c 5000 /dev/urandom >"$tmp/source"
	return $result
}

# A server that has descriptors to be connected, but none to go on with, until it has more: three are
# taken by a connection that nobody has accepted.
no_descriptors() {
	files=$(find "/proc/$pid/fd" -type l | wc -l)
	prlimit --pid $pid --nofile=$((files + 3)):1024
	(end_run ours@stock 90 rcopy "$tmp/source" "$EVR_IP4:few" -p $port) >"$tmp/client" 2>&1 &
	client=$!
	wait_until 60 has_none && result=0 || result=1
	prlimit --pid $pid --nofile=1024:1024
	{ wait $client; } 2>/dev/null && cmp "$tmp/source" "$tmp/folder/few" && return $result
	cat "$tmp/client"
	tail -n 5 "$tmp/server"
	return 1
}
has_none() { grep -q 'no connection: Too many open files' "$tmp/server"; }

# What is no rcopy at all, or one that breaks off, and a client after each.
raw() {
	timeout 60 "$top_builddir/t/interop/rcopy_raw" "$EVR_IP4" $port "$1" || return
	ends_well after && nothing_left
}

hostile() {
	names
	cell "$kind: our server serves five clients at once" crowd
	cell "$kind: our server says that a file is too large" too_large
	cell "$kind: our server goes on after one that was too large" ends_well after
	for what in nothing half version command length small unended close huge; do
		cell "$kind: our server goes on after a client that sends: $what" raw $what
	done
	cell "$kind: our server is the one that began" kill -0 $pid
}

# How far it is: on a terminal, where each number is written over the one before, and nowhere else.
# in_terminal COMMAND: its standard output is the terminal, and so are the others.
in_terminal() {
	(end_env ours@ours && exec busybox timeout 90 script -qec "$1" /dev/null) </dev/null |
		tr -d '\r' >"$tmp/client"
}
copy_shown() { echo "$ours_bin/rcopy '$tmp/source' '$EVR_IP4:shown' -p $port"; }

# is_shown PERCENT...: these and no others, one over the other, and what remains is the line as ever.
is_shown() {
	in_terminal "$(copy_shown)" && cmp "$tmp/source" "$tmp/folder/shown" || return
	for percent; do printf '%3d%%\n' "$percent"; done >"$tmp/want"
	grep -o '[ 0-9]*%' "$tmp/client" | cmp - "$tmp/want" &&
		tr '\b' '<' <"$tmp/client" | sed 's/[ 0-9]\{3\}%<<<<//g' |
		grep -q '^opening...transferring...closing...done$' && return
	cat -v "$tmp/client"
	return 1
}

# A terminal there is, but the copy's output goes into a file.
is_silent() {
	in_terminal "$(copy_shown) >'$tmp/said'" && cmp "$tmp/source" "$tmp/folder/shown" &&
		[ ! -s "$tmp/client" ] && grep -q '^opening...transferring...closing...done$' "$tmp/said" &&
		return
	cat -v "$tmp/client" "$tmp/said"
	return 1
}

# A complaint before anything was begun is the first line; one behind it begins a line of its own.
complains() {
	in_terminal "$1; true" && [ "$(head -n 1 "$tmp/client" | cut -c 1-"${#2}")" = "$2" ] &&
		[ "$(wc -l <"$tmp/client")" -eq "$3" ] && tail -n 1 "$tmp/client" | grep -q "^rcopy: " &&
		return
	cat -v "$tmp/client"
	return 1
}
copy_of() { echo "$ours_bin/rcopy '$1' '$EVR_IP4:$2' -p $port"; }

progress() {
	cell "$kind: our client says on a terminal that there is no source, in one line" \
		complains "$(copy_of "$tmp/nosuch" x)" "rcopy: " 1
	cell "$kind: our client says on a terminal what the server answers, in its own line" \
		complains "$(copy_of "$tmp/source" nosuch/x)" "opening..." 2
	head -c 4194304 /dev/urandom >"$tmp/source"
	cell "$kind: our client shows on a terminal how far it is" is_shown 25 50 75 100
	cell "$kind: our client shows it in no file" is_silent
	head -c 100 /dev/urandom >"$tmp/source"
	cell "$kind: our client shows a small file on a terminal" is_shown 100
}

own() {
	serve ours@stock
	head -c 5000 /dev/urandom >"$tmp/source"
	outside ours@stock
	outside stock@stock
	cell "$kind: our server takes a path in a folder of its own" ends_well in/copied
	cell "$kind: our server takes an absolute path of its folder" \
		copy ours@stock "$tmp/source" "$tmp/folder/absolute"
	: >"$tmp/source"
	cell "$kind: our tools copy an empty file" ends_well empty
	progress
	head -c 5000 /dev/urandom >"$tmp/source"
	killed
	hostile
	stop
	serve ours@ours
	cell "$kind: our server waits until it has descriptors for a client" no_descriptors
	stop
	cell "$kind: our client says that no server is there" refused ours@stock x 'is running there'
}

cell "$kind comes up" dev_up "$kind"
while [ $# -gt 0 ]; do
	matrix "$1" "$2"
	shift 2
done
own
cell "$kind goes away" dev_down
rm -rf "$tmp"
done_testing
