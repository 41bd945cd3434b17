# SPDX-License-Identifier: BSD-3-Clause
# An MPI program of 4 ranks over nothing but RoCE devices: two ranks at each end of a rail, so that
# peers have the same device and another one.
. "$(dirname "$0")/../lib.sh"

ranks=$build/test/provider/mpi_ranks
if [ ! -x "$ranks" ] || ! type -P mpirun >/dev/null; then
	skip "an MPI program of 4 ranks" "there is no Open MPI here"
	tap_end
	exit
fi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export FI_PROVIDER_PATH=$build/provider FI_PROVIDER=weft
hostname localhost
# There are more ranks than processors: those that wait let others run.
run=(timeout -k 5 100 mpirun --oversubscribe --bind-to none
	--mca orte_tmpdir_base "$dir" --mca oob_tcp_if_include lo --mca mpi_yield_when_idle 1
	--mca pml cm --mca mtl ofi --mca opal_common_ofi_provider_include weft
	-x FI_PROVIDER_PATH -x FI_PROVIDER)

packets() {
	echo $(($(counter rxe0a sent_pkts) + $(counter rxe0b sent_pkts)))
}

# mpi WHAT: no errors, and the devices carried it.
mpi() {
	local before after rc=0
	before=$(packets)
	"${run[@]}" -n 2 -x WEFT_LANES=roce:rxe0a "$ranks" "$1" : \
		-n 2 -x WEFT_LANES=roce:rxe0b "$ranks" "$1" >"$dir/mpi.out" 2>&1 || rc=$?
	cat "$dir/mpi.out"
	after=$(packets)
	echo "$((after - before)) packets were sent"
	[ $rc = 0 ] && says "$dir/mpi.out" "$1: 4 ranks, 0 errors" &&
		[ $((after - before)) -gt 500 ]
}

rail 0 || exit
check "4 MPI ranks: messages from one to another" mpi p2p
check "4 MPI ranks: collectives" mpi coll
tap_end
