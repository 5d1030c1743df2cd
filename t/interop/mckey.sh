#!/bin/sh
# mckey.sh rxe [SENDER RECEIVER]...: one sender and its receivers on one host, all cells of a pair
# at once on groups of their own.
# time: virtual
. "$top_srcdir/t/interop/groups.sh"

kind=$1
shift
[ $# -gt 0 ] || set -- stock@stock stock@stock \
	ours@ours stock@stock stock@stock ours@ours ours@ours ours@ours \
	ours@stock ours@stock stock@ours stock@ours ours@stock stock@ours stock@ours ours@stock

# What is varied: receivers, then the options of both sides, then the sender's own.
variants='1|-c 1 -S 100|
3|-c 1 -S 100|
1|-c 4 -S 1|
2|-c 1 -S 1024|
1|-c 1 -S 100|-o
3|-c 2 -S 64|-o'

# one CELL SENDER RECEIVER COUNT OPTIONS SENDER-OPTIONS
one() {
	i=$1 s=$2 r=$3 count=$4 options=$5 own=$6
	conns=$(echo "$options" | sed 's/-c \([0-9]*\).*/\1/')
	j=0
	# shellcheck disable=SC2086 # options are words
	while [ $j -lt "$count" ]; do
		j=$((j + 1))
		mckey_run "$i.receiver$j" "$r" -b "$EVR_IP4" -m "$(group $set $i)" $options &
	done
	wait_until 60 has_users $set $i $((count * conns)) || :
	# shellcheck disable=SC2086 # options are words
	mckey_run "$i.sender" "$s" -s -b "$EVR_IP4" -m "$(group $set $i)" $options $own
	wait
}

names() {
	echo "$1.sender"
	seq -f "$1.receiver%g" "$2"
}

verdict() {
	# shellcheck disable=SC2046 # words
	cell "$kind: mckey $2 sender, $4 $3 receivers, $5 $6" run_well $(names $1 $4)
}

pair() {
	set=$((set + 1))
	i=0
	while IFS='|' read -r count options own; do
		i=$((i + 1))
		one $i "$1" "$2" "$count" "$options" "$own" &
	done <"$tmp/variants"
	wait
	i=0
	while IFS='|' read -r count options own; do
		i=$((i + 1))
		verdict $i "$1" "$2" "$count" "$options" "$own"
	done <"$tmp/variants"
}

echo "$variants" >"$tmp/variants"
set=0
cell "$kind comes up" dev_up "$kind"
while [ $# -gt 0 ]; do
	pair "$1" "$2"
	shift 2
done
cell "$kind goes away" dev_down
done_testing
