#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# What weft-mpirun hands to launchers: programs in their place print their version, arguments and
# environment.

# shellcheck source=test/proc/lib.sh
. "$(dirname "$0")/../proc/lib.sh"

for variable in "${!FI_@}" "${!OMPI_@}" "${!WEFT_@}"; do
	unset "$variable"
done
export WEFT_CONFIG=off
export FI_PROVIDER_PATH=$build/provider PATH=$dir/bin:$PATH
mkdir -p "$dir/bin"

# launcher NAME VERSION-TEXT
launcher() {
	cat >"$dir/bin/$1" <<-END
		#!/bin/sh
		[ "\$1" != --version ] || { echo '$2'; exit; }
		echo "ARGS \$*"
		env
	END
	chmod 755 "$dir/bin/$1"
}
launcher mpirun 'mpirun (Open MPI) 4.1.4'
launcher mpirun5 'mpirun (Open MPI) 5.0.7'
launcher mpiexec.hydra 'HYDRA build details: Version: 4.2.1'
launcher srun 'slurm 22.05.8'
launcher other 'other 1.0'

# with ARGUMENT...: runs it; output in out and err.
with() {
	sh "$build/weft-mpirun" "$@" >"$dir/out" 2>"$dir/err"
}

# has PATTERN...: each is a line.
has() {
	local pattern
	for pattern; do
		grep -qE "^$pattern$" "$dir/out" && continue
		echo "no line $pattern"
		cat "$dir/out" "$dir/err"
		return 1
	done
}

has_not() {
	! grep -E -e "$1" "$dir/out"
}

open_mpi_4() {
	with -n 2 ./program && has 'ARGS .*-n 2 ./program' 'OMPI_MCA_pml=cm' 'OMPI_MCA_mtl=ofi' \
		'OMPI_MCA_opal_common_ofi_provider_include=weft' \
		'ARGS (.* )?-x FI_PROVIDER_PATH .*' && has_not '^OMPI_MCA_osc' || return 1
	with --rma -n 2 ./program && has 'OMPI_MCA_pml=cm' 'OMPI_MCA_osc=rdma' \
		'OMPI_MCA_osc_rdma_btls=ofi' 'OMPI_MCA_btl=ofi,self'
}

open_mpi_5() {
	with --launcher mpirun5 -n 2 ./program && has 'OMPI_MCA_pml=cm' 'OMPI_MCA_mtl=ofi' ||
		return 1
	with --rma --launcher mpirun5 -n 2 ./program &&
		has 'OMPI_MCA_pml=ob1' 'OMPI_MCA_osc=rdma' \
		'OMPI_MCA_btl=self,ofi' 'OMPI_MCA_btl_ofi_mode=2' && has_not '^OMPI_MCA_mtl'
}

others() {
	with --launcher mpiexec.hydra -n 2 ./program &&
		has 'ARGS -n 2 ./program' 'FI_PROVIDER=weft' && has_not '^OMPI_' || return 1
	with --launcher srun -n 2 ./program &&
		has 'ARGS -n 2 ./program' 'FI_PROVIDER=weft' 'OMPI_MCA_pml=cm' || return 1
	with --launcher other -n 2 ./program && return 1
	grep -q "not a launcher that is known here" "$dir/err"
}

# A host's own lanes hold: the job's go by another name.
own_lanes() {
	WEFT_LANES=dpdk:0 WEFT_EAL_ARGS='--no-huge' WEFT_CC=fixed with -n 2 ./program || return 1
	has 'ARGS .*-x WEFT_CC .*' 'ARGS .*-x FI_WEFT_JOB_LANES .*' \
		'ARGS .*-x FI_WEFT_JOB_EAL_ARGS .*' 'FI_WEFT_JOB_LANES=dpdk:0' \
		'FI_WEFT_JOB_EAL_ARGS=--no-huge' && has_not '-x WEFT_(LANES|EAL_ARGS)'
}

# The user's own values hold.
quick() {
	with --quick -n 2 ./program && has 'HWLOC_COMPONENTS=-x86' 'HWLOC_PLUGINS_PATH=.*' \
		'ARGS .*-x HWLOC_COMPONENTS .*' || return 1
	HWLOC_COMPONENTS=-cuda with --quick -n 2 ./program && has 'HWLOC_COMPONENTS=-cuda' ||
		return 1
	with -n 2 ./program && has_not HWLOC
}

shows() {
	with --show --rma --launcher mpirun5 -n 2 ./program || return 1
	cat "$dir/err"
	grep -q "is openmpi 5.0.7$" "$dir/err" && grep -q ": OMPI_MCA_pml=ob1$" "$dir/err" &&
		grep -q "mpirun5 .*-n 2 ./program$" "$dir/err" || return 1
	with -n 2 ./program && [ ! -s "$dir/err" ]
}

# A libfabric that is put first, unless the system's is newer.
lean() {
	local system
	system=$(ldd "$build/provider/libweft-fi.so" |
		sed -n 's/.*libfabric.so.1 => \([^ ]*\) .*/\1/p')
	mkdir -p "$dir/lean" "$dir/old"
	cp "$(readlink -f "$system")" "$dir/lean/libfabric.so.1.999.0"
	ln -s libfabric.so.1.999.0 "$dir/lean/libfabric.so.1"
	: >"$dir/old/libfabric.so.1.0.1"
	ln -s libfabric.so.1.0.1 "$dir/old/libfabric.so.1"
	with --libfabric "$dir/lean" -n 2 ./program && has 'ARGS .*-x LD_LIBRARY_PATH .*' \
		"LD_LIBRARY_PATH=$dir/lean.*" || return 1
	with --libfabric "$dir/old" -n 2 ./program && has_not '-x LD_LIBRARY_PATH' || return 1
	grep -q "is older than" "$dir/err" || return 1
	with --libfabric "$dir/nowhere" -n 2 ./program && return 1
	grep -q "no libfabric.so.1 in" "$dir/err"
}

check "Open MPI 4, with and without --rma" open_mpi_4
check "Open MPI 5, with and without --rma" open_mpi_5
check "Hydra, srun, and a launcher that is not known" others
check "a host's own lanes are not overridden" own_lanes
check "--quick" quick
check "--show" shows
check "a lean libfabric comes first, unless it is older" lean
tap_end
