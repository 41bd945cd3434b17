/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of faults, and what to do about them. */

#include "dump/trace.h"

static const struct {
	const char *name, *advice;
} faults[FAULT_COUNT] = {
	[FAULT_NONE] = {"none", ""},
	[FAULT_RANDOM_LOSS] = {"random loss",
			       "compare error counters of ports on this way; a cable, a connector"},
	[FAULT_BURST_LOSS] = {"burst loss",
			      "look for a link or a switch on this way that comes and goes"},
	[FAULT_QUEUE_LOSS] = {"queue or policer loss",
			      "look for a full queue or a rate limit on this way; lower the rate"},
	[FAULT_DUPLICATION] = {"duplication",
			       "look for a loop or a mirror port between the two hosts"},
	[FAULT_REORDERING] = {"reordering",
			      "look for packets spread over links on this way (hash of flows)"},
	[FAULT_CORRUPTION] = {"corruption",
			      "compare CRC counters of ports on this way; a cable, a NIC, memory"},
	[FAULT_DELAY] = {"delay or jitter",
			 "look for a changed route or a standing queue on this way"},
	[FAULT_BLACKHOLE_ONE_WAY] = {"blackhole one way",
				     "look on this way: route, firewall, TTL, a port that is down"},
	[FAULT_BLACKHOLE_BOTH_WAYS] = {"blackhole both ways",
				       "look for a link or a switch between the two that is down"},
	[FAULT_LANE_DOWN] = {"lane down", "check the link of this interface: ip link, cable"},
	[FAULT_PATH_MTU] = {"path MTU",
			    "give all hops of this way the MTU of the hosts, or lower theirs"},
	[FAULT_MOVED_MAC] = {"moved MAC",
			     "was the NIC, the bond or the gateway exchanged? else look for a "
			     "second owner of the address"},
	[FAULT_STOPPED_PEER] =
		{"stopped peer",
		 "check the process there: it may be stopped, swapped out, in a debugger, or "
		 "computing without progress calls"},
	[FAULT_SLOW_RECEIVER] = {"slow receiver",
				 "give the process there a core of its own, or call "
				 "weft_worker_progress() more often"},
	[FAULT_PEER_GONE] = {"peer gone", "look for the end of the process there: log, core dump"},
	[FAULT_WRONG_VLAN] = {"wrong VLAN", "give both ends the same vlan= in WEFT_LANES"},
	[FAULT_TWO_ANSWERS] = {"two ARP answers", "remove the address from one of the two hosts"},
	[FAULT_FIREWALL] = {"firewall", "permit Weft's UDP port at the reporting host"},
	[FAULT_TTL] = {"TTL", "look for a routing loop, or a ttl= that is too small"},
	[FAULT_UNREACHABLE] = {"unreachable",
			       "check the route there, and whether the process is running"},
	[FAULT_CAPTURE_GAPS] = {"capture with gaps",
				"capture with a larger buffer (tcpdump -B, WEFT_CAPTURE ring=) or "
				"a smaller snaplen"},
};

const char *trace_fault_name(enum trace_fault fault)
{
	return faults[fault].name;
}

const char *trace_fault_advice(enum trace_fault fault)
{
	return faults[fault].advice;
}
