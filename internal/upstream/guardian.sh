# Kills the servers of a mcpmend that was killed itself. Builtins only, and what dash,
# bash and busybox have in common. $2 is the number of mcpmend, $3 that of its session.
# File 4 is this script. File 3 is a pipe that ends when mcpmend does; its lines are
# "+ PID START" for a server, "& PID START" for what a server has started, "- PID" when
# that has ended, or empty.

# look sets state, session, threads and start of process $1; it fails if there is none.
look() {
	state= session=$ours threads= start=
	read -r line <"/proc/$1/stat" || return 1
	set -- ${line##*) } # the name in parentheses may hold anything
	[ $# -lt 20 ] || { state=$1 session=$4 threads=${18} start=${20}; }
}

# stop_tree stops server $1 and everything below it, from the top, until nothing new
# is found, and adds it to found: nobody starts another while we look, and no shell
# goes on to its next command. What has a session of its own was detached on purpose.
stop_tree() {
	own=$session rounds=0 new=1
	while [ "$new" ] && [ $rounds -lt 20 ]; do
		new= below=$1 rounds=$((rounds + 1))
		while [ "$below" ]; do
			level=$below below=
			for pid in $level; do
				[ "$pid" -gt 1 ] && look "$pid" || continue
				[ "$pid" = "$1" ] || [ "$session" = "$ours" ] || [ "$session" = "$own" ] || continue
				case " $found " in
				*" $pid "*) ;;
				*) kill -STOP "$pid" && new=1 found="$found $pid" ;;
				esac
				for list in /proc/"$pid"/task/*/children; do
					children=
					read -r children <"$list"
					below="$below $children"
				done
			done
		done
	done
}

# without sets left to a list of PID:START less that of process $1.
without() {
	gone=$1 left=
	shift
	for one; do
		case $one in "$gone":*) ;; *) left="$left $one" ;; esac
	done
}

# is_still looks at PID:START and fails if there is no such process any more.
is_still() { look "${1%:*}" && [ "${start:-${1#*:}}" = "${1#*:}" ]; }

guard() {
	servers= others=
	while read -r sign pid start; do
		case $sign in
		+) servers="$servers $pid:$start" ;;
		"&") others="$others $pid:$start" ;;
		-)
			without "$pid" $servers
			servers=$left
			without "$pid" $others
			others=$left
			;;
		esac
	done
	[ "$servers" ] || return 0
	# When mcpmend has ended, and not only some of its threads, the kernel may hang up on
	# the group that it left without a parent, and wake what is stopped there.
	rounds=0
	while [ $rounds -lt 500 ] && look "$1"; do
		case $state$threads in [ZX][01]) break ;; esac
		rounds=$((rounds + 1))
	done
	found=
	for one in $servers; do
		is_still "$one" && stop_tree "${one%:*}"
	done
	# A server may have left by itself when its input ended. What it had started is no
	# longer below it then.
	for one in $others; do
		is_still "$one" && [ "$session" = "$ours" ] && stop_tree "${one%:*}"
	done
	for one in $servers; do
		# The group goes at once, if the server has one. Its number is the server's own,
		# even when the server has gone, unless that was given to another process.
		{ is_still "$one" || ! look "${one%:*}"; } && kill -KILL "-${one%:*}"
	done
	for pid in $found; do kill -KILL "$pid"; done
}

# The first shell ends here, so that the second one is not a child of mcpmend.
ours=$3
(
	trap '' HUP INT TERM
	exec <&3 3<&- 4<&- >/dev/null 2>&1
	guard "$2"
) &
