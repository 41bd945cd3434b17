#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The options of the programs that have a table of them: --help, the manual page and the completion
# of bash have the same ones.

# shellcheck source=test/proc/lib.sh
. "$(dirname "$0")/lib.sh"

sources=$(dirname "$0")/../..

# completes PROGRAM LINE WORDS: bash offers these words, sorted, for the last word of LINE.
completes() {
	local program=$1 line=$2 wanted=$3 offered
	offered=$(bash -c '
		. "$1"
		read -ra COMP_WORDS <<<"$2"
		[[ $2 != *" " ]] || COMP_WORDS+=("")
		COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
		"_$3"
		printf "%s\n" "${COMPREPLY[@]}" | sort | xargs' \
		- "$build/doc/$program" "$line" "$program") || return
	[ "$offered" = "$wanted" ] || { echo "'$offered', not '$wanted'"; return 1; }
}

# The long options, sorted.
of_help() {
	"$build/app/$1" "${@:2}" --help | grep -oP '^  (-\w,|   ) --\K[a-z-]+' | sort
}

of_manual() {
	grep -oP '^\.It (Fl \w , )?Fl -\K[a-z-]+' "$build/doc/$1.1" | sort
}

of_completion() {
	bash -c '. "$1"; COMP_WORDS=(x --) COMP_CWORD=1; "_$2"; printf "%s\n" "${COMPREPLY[@]#--}"' \
		- "$build/doc/$1" "$1" | sort
}

same() {
	[ "$(of_help "$1")" = "$("$2" "$1")" ] && [ "$(of_help "$1" | wc -l)" -ge 5 ]
}

# The page of weft-info has a second list, that of its command protocols.
info_manual() {
	local both
	both=$( (of_help weft-info && of_help weft-info protocols) | sort)
	[ "$both" = "$(of_manual weft-info)" ]
}

# Of the two scripts: usage and completion, which is a file of the sources.
of_script() {
	case $1 in
	weft-mpirun) sh "$build/weft-mpirun" --help | grep -oP '[[ ]--\K[a-z-]+' && echo help ;;
	weft-bind)
		python3 "$sources/devtools/weft-bind.py" --help | grep -oP '^  (-h, )?--\K[a-z-]+'
		;;
	esac | sort -u
}

same_script() {
	local offered
	offered=$(bash -c '. "$1"; COMP_WORDS=(x --) COMP_CWORD=1; "_$2"
		printf "%s\n" "${COMPREPLY[@]#--}"' - "$sources/packaging/completion/$1" "$1" |
		sort)
	echo "$offered"
	of_script "$1"
	[ "$offered" = "$(of_script "$1")" ] && [ "$(wc -l <<<"$offered")" -ge 7 ]
}

# script_completes LINE WORDS: the same for a script, whose line bash has divided at : and =.
script_completes() {
	local program=${1%% *} offered
	offered=$(bash -c '
		COMP_WORDBREAKS=" =:"
		. "$1"
		COMP_LINE=$2 COMP_POINT=${#2}
		read -ra COMP_WORDS < <(sed "s/[:=]/ & /g" <<<"$2")
		[[ $2 != *" " ]] || COMP_WORDS+=("")
		COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
		"_$3"
		printf "%s\n" "${COMPREPLY[@]}" | sort | xargs' \
		- "$sources/packaging/completion/$program" "$1" "$program") || return
	[ "$offered" = "$2" ] || { echo "'$offered', not '$2'"; return 1; }
}

for program in weft-cat weft-dump weft-info weft-perf weft-switch weft-wire; do
	[ -x "$build/app/$program" ] || continue
	[ $program = weft-info ] ||
		check "$program: the manual has the options of --help" same $program of_manual
	check "$program: the completion has the options of --help" same $program of_completion
	check "$program: no line of an option is longer than 79 columns" \
		awk '/^ +--?[a-z]|^ {25}/ && length > 79 { print; wrong = 1 } END { exit wrong }' \
		<("$build/app/$program" --help)
done
check "weft-info: the manual has the options of --help" info_manual
check "an option is completed" completes weft-cat "weft-cat -l --bl" "--block"
check "several are offered" completes weft-cat "weft-cat --s" "--set --summary"
check "the argument of an option is no option" completes weft-cat "weft-cat --block " ""
check "nor is a host" completes weft-cat "weft-cat -q " ""
check "a letter is completed" completes weft-wire "weft-wire -S" "-S"

mkdir -p "$dir/sys/class/net/ens6/device" "$dir/sys/class/net/lo" \
	"$dir/sys/bus/pci/devices/0000:00:06.0" "$dir/sys/bus/pci/devices/0000:00:07.0"
echo 0x020000 >"$dir/sys/bus/pci/devices/0000:00:06.0/class"
echo 0x030000 >"$dir/sys/bus/pci/devices/0000:00:07.0/class"
for program in weft-mpirun weft-bind; do
	check "$program: the completion has the options of --help" same_script $program
done
check "modes of --seal" script_completes "weft-mpirun --rma --seal=" "auth encrypt off"
check "a mode of --seal" script_completes "weft-mpirun --seal=a" "auth"
check "options behind --seal" script_completes "weft-mpirun --seal=auth --s" "--seal --show"
check "options of the launcher are not weft-mpirun's" script_completes \
	"weft-mpirun --seal -n 2 --s" ""
check "a NIC's interface" script_completes "weft-bind --root $dir " "0000:00:06.0 ens6"
check "a NIC's address behind its colons" script_completes "weft-bind --root $dir 0000:00:0" "06.0"
check "a driver" script_completes "weft-bind --undo --driver v" "vfio-pci"
tap_end
