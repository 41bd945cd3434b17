# SPDX-License-Identifier: BSD-3-Clause
# Every pair of NICs at every MTU, in one process: each is also a port opened anew with another MTU.
# 1 MiB and 8 B messages go each way.
. "$(dirname "$0")/../nic.sh"

all=(virtio0 virtio1 e1000e0 e1000e1 82545em0 82545em1 vmxnet3-0 vmxnet3-1 virtio2 e1000e2 \
	vmxnet3-2 82545em2)
duos="virtio0:virtio1 e1000e0:e1000e1 82545em0:82545em1 vmxnet3-0:vmxnet3-1"
duos+=" virtio2:e1000e2 vmxnet3-2:82545em2"
if has_nic igb0; then
	all+=(igb0 igb1)
	duos+=" igb0:igb1"
fi

for duo in $duos; do
	one=${duo%:*} two=${duo#*:}
	mtus="1300 1460 9000 1700 3900 9001 1500"
	# One PMD has e1000e and 82545em.
	[[ $one != 82545em* ]] || mtus="1460 9000 9001 1500"
	# Two kinds of NIC, each of which has had all of them.
	[ "${one%?}" = "${two%?}" ] || mtus="1460 9000 1500"
	for mtu in $mtus; do
		# virtio's PMD keeps the receive buffers of a port's last life in its ring, and uses
		# them up: 256, for shorter frames.
		case $one:$mtu in
		virtio*:9000 | virtio*:3900 | virtio*:9001) what="|chains=256" ;;
		*) what= ;;
		esac
		case $duo:$mtu in
		# The most that vmxnet3 takes is 9000.
		vmxnet3*:9001) echo \
			"$one - $two, MTU $mtu: refused|$one,mtu=$mtu|$two,mtu=$mtu|refused=carries frames of at most 9014 bytes (MTU 9000)" ;;
		*) echo "$one - $two, MTU $mtu|$one,mtu=$mtu|$two,mtu=$mtu$what" ;;
		esac
	done
done >"$dir/matrix"
pairs "${all[@]}" <"$dir/matrix"
tap_end
