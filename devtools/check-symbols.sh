#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# check-symbols.sh LIBRARY HEADER: what the library exports is what the header declares WEFT_API, no
# more and no less.
set -euo pipefail

[ $# = 2 ] || { echo "usage: check-symbols.sh LIBWEFT.SO WEFT.H" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

nm -D --defined-only "$1" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' |
	sort -u >"$work/exported"

# The preprocessor takes the comments away and turns WEFT_API into an attribute. A declaration
# reaches from there to its semicolon; its name is the last word before the first parenthesis or
# bracket.
cc -E -P "$2" | tr '\n' ' ' | tr ';' '\n' |
	sed -E 's/__attribute__ *\( *\( *visibility *\( *"default" *\) *\) *\)/@API@/g' |
	sed -n 's/.*@API@//p' |
	sed -E 's/__attribute__ *\(\(([^()]|\([^()]*\))*\)\)//g; s/ *[([].*//; s/ *$//' |
	awk '{ sub(/^\*+/, "", $NF); print $NF }' | sort -u >"$work/declared"

bad=0
complain() {
	[ -z "$2" ] || { echo "$1: $(echo "$2" | tr '\n' ' ')"; bad=1; }
}
complain "exported but not declared in $2" "$(comm -23 "$work/exported" "$work/declared")"
complain "declared in $2 but not exported" "$(comm -13 "$work/exported" "$work/declared")"
complain "exported without the prefix weft_" "$(grep -v '^weft_' "$work/exported" || true)"
[ -s "$work/declared" ] || { echo "no declaration found in $2"; bad=1; }
[ $bad = 1 ] || echo "$(wc -l <"$work/declared") symbols, all declared and all exported"
exit $bad
