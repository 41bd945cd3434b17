#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# check-symbols.sh LIBRARY LIST HEADER...: the library must export the symbols that the headers
# declare WEFT_API, and the list (lib/libweft.abi) must have the same symbols, each with its
# version. A change of the interface updates the list:
#
#     devtools/check-symbols.sh --list build/libweft.so >lib/libweft.abi
set -euo pipefail

exported() {
	nm -D --defined-only "$1" | awk '$2 != "A" { print $3 }' | sed 's/@@*/ /' | LC_ALL=C sort -u
}

if [ $# = 2 ] && [ "$1" = --list ]; then
	echo "# SPDX-License-Identifier: BSD-3-Clause"
	exported "$2"
	exit
fi
[ $# -ge 3 ] || {
	echo "usage: check-symbols.sh {LIBRARY LIST HEADER... | --list LIBRARY}" >&2
	exit 2
}
library=$1 list=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

exported "$library" >"$work/versions"
grep -v "^#" "$list" >"$work/list"
awk '{ print $1 }' "$work/versions" >"$work/exported"

# The preprocessor removes the comments and turns WEFT_API into an attribute. A declaration extends
# from there to its semicolon; its name is the last word before the first parenthesis or bracket.
for header; do
	cc -E -P -I "$(dirname "$header")" "$header"
done | tr '\n' ' ' | tr ';' '\n' |
	sed -E 's/__attribute__ *\( *\( *visibility *\( *"default" *\) *\) *\)/@API@/g' |
	sed -n 's/.*@API@//p' |
	sed -E 's/__attribute__ *\(\(([^()]|\([^()]*\))*\)\)//g; s/ *[([].*//; s/ *$//' |
	awk '{ sub(/^\*+/, "", $NF); print $NF }' | LC_ALL=C sort -u >"$work/declared"

bad=0
complain() {
	[ -z "$2" ] || { echo "$1: $(echo "$2" | tr '\n' ' ')"; bad=1; }
}
export LC_ALL=C
complain "exported but not declared in the headers" "$(comm -23 "$work/exported" "$work/declared")"
complain "declared but not exported" "$(comm -13 "$work/exported" "$work/declared")"
complain "exported but not in $list" "$(comm -23 "$work/versions" "$work/list")"
complain "in $list but not exported" "$(comm -13 "$work/versions" "$work/list")"
complain "exported without the prefix weft_" "$(grep -v '^weft_' "$work/exported" || true)"
[ -s "$work/declared" ] || { echo "no declaration found"; bad=1; }
[ $bad = 1 ] || echo "$(wc -l <"$work/declared") symbols, all declared, all exported, all in $list"
exit $bad
