#!/bin/sh
# instructions.sh: what a connection takes in instructions, made, used and closed on the fake, among
# hundreds and among thousands: nothing walks through all of them. The fake's own are counted too.
program=${top_builddir:-.}/t/scale/fake.t
percent=120

# instructions_of NUM: those of the whole run.
instructions_of() {
	LD_LIBRARY_PATH=$top_builddir/.libs valgrind --tool=cachegrind --cache-sim=no \
		--cachegrind-out-file=/dev/null "$program" "$1" 2>&1 >/dev/null |
		sed -n 's/.*I *refs: *//p' | tr -d ,
}

# each NUM: what one more takes, between half as many and so many.
each() {
	few=$(instructions_of $(($1 / 2))) many=$(instructions_of "$1")
	echo $(((many - few) / ($1 - $1 / 2)))
}

hundreds=$(each 500) thousands=$(each 4000)
echo "# one of 500 takes $hundreds instructions, one of 4000 takes $thousands"
if [ "$hundreds" -gt 0 ] && [ $((thousands * 100)) -le $((hundreds * percent)) ]; then
	echo "ok - a connection among thousands takes what it takes among hundreds"
else
	echo "not ok - a connection among thousands takes what it takes among hundreds"
fi
echo 1..1
