/* SPDX-License-Identifier: BSD-3-Clause */

/* doc/confman.c makes the manual page weft-config(7) from this table. */

#include "core/config.h"

#include <assert.h>

#define FIELD(f) .offset = offsetof(struct weft_conf, f)
#define TEXT_OF(x) #x
#define TEXT(x) TEXT_OF(x)
#define CC_WORD(id, name) "|" #name

/* clang-format off */
const struct weft_option weft_options[] = {
	{
		"CONFIG", WEFT_OPT_STRING, FIELD(file), .def = "", .unit = "file",
		.guarded = true, .environment = true,
		.help = "File of further settings. Its lines have priority over those of "
			"/etc/weft.conf and of the user's weft.conf. A file that cannot be used "
			"is an error. off: no file is read, not even these two.",
	},
	/* ---- which lanes */
	{
		"LANES", WEFT_OPT_STRING, FIELD(lanes), .def = "", .unit = "lanes",
		.help = "Lanes that a worker opens: items separated by ';', each "
			"DRIVER:RESOURCE[,OPTION=VALUE...], for example "
			"'dpdk:0,ip=10.0.0.1/24;dpdk:1'. DRIVER:* takes all resources of a driver; "
			"empty or '*' takes all resources that are not named; '-DRIVER' leaves a "
			"driver out: '-shm'. 'udp:eth0' and 'udp:*' are lanes over UDP sockets, "
			"for ordinary users; '*' opens them where no other lane reaches other "
			"hosts. A lane requested by name must open; of '*' the usable ones are "
			"opened. Two processes of one host and user connect over shared memory "
			"(shm) alone if both have it.",
	},
	{
		"MIN_LANES", WEFT_OPT_UINT, FIELD(min_lanes), .def = "1", .unit = "number",
		.min = 1, .max = 16,
		.help = "A worker with fewer lanes to other hosts is not created. An endpoint that "
			"both ends have agreed on with fewer lanes fails. The error message names "
			"the missing lanes and the reasons. With the default the log has one line "
			"about them. Shared memory does not count as such a lane, and a peer on "
			"shared memory needs none.",
	},
	{
		"EAL_ARGS", WEFT_OPT_STRING, FIELD(lane.eal_args), .def = "", .unit = "arguments",
		.guarded = true,
		.help = "Arguments for DPDK's EAL when the program does not initialise it itself, "
			"separated by spaces.",
	},
	{
		"PORTS", WEFT_OPT_STRING, FIELD(lane.ports), .def = "", .unit = "patterns",
		.guarded = true,
		.help = "Devices of which this process takes one free device, so that all "
			"processes of a host may have the same environment: patterns of a shell, "
			"such as '0000:3b:02.*' (PCI network devices) or 'net_af_xdp*' (of "
			"WEFT_EAL_ARGS). Patterns are separated by ';', and each gives one device. "
			"Devices near the process's processors come first. The processes of a job "
			"begin at different devices. It applies where Weft or its programs start "
			"the EAL.",
	},
	{
		"DUMPCAP", WEFT_OPT_BOOL, FIELD(lane.dumpcap), .def = "n", .unit = "y|n",
		.guarded = true,
		.help = "y: let DPDK's own tools attach to this process and capture frames of its "
			"ports, dpdk-dumpcap and dpdk-pdump. The EAL must have hugepages and share "
			"files: --in-memory is left out where Weft or its programs start it, and "
			"each process of a host wants a --file-prefix of its own (doc/capture.md).",
	},
	{
		"SWITCH", WEFT_OPT_STRING, FIELD(lane.switch_path), .def = "auto", .unit = "path",
		.guarded = true,
		.help = "Socket of weft-switch, which gives this process a port when the process "
			"has no other one for DPDK. auto: /run/weft/switch.sock, if it exists. "
			"off: weft-switch is not used.",
	},
	{
		"ENCAP", WEFT_OPT_ENUM, FIELD(encap), .def = "udp", .unit = "word",
		.words = "udp|ether",
		.help = "How raw lanes wrap their frames: udp (IPv4 and UDP, which clouds let "
			"pass) or ether (an own ethertype, for links without a router). Must be "
			"the same at both ends.",
	},
	{
		"UDP_PORT", WEFT_OPT_PORT, FIELD(lane.udp_port), .def = TEXT(WEFT_LANE_UDP_PORT),
		.unit = "port",
		.min = 1, .max = 65535,
		.help = "UDP destination port of raw lanes, and the first of their source ports.",
	},
	{
		"PATHS", WEFT_OPT_UINT, FIELD(lane.paths), .def = "auto", .unit = "number",
		.has_auto = true,
		.auto_value = 0, .min = 1, .max = 16,
		.help = "Paths per raw lane. Each is a pair of UDP ports, used both ways, so that "
			"a network which spreads flows (ECMP, limits per flow) carries one lane "
			"over several paths. auto: one, others in reserve, and more where trials "
			"show that they help.",
	},
	{
		"CSUM", WEFT_OPT_ENUM, FIELD(lane.csum), .def = "auto", .unit = "word",
		.words = "auto|none|udp|crc32c",
		.help = "Checksum over raw frames. auto: CRC32C, unless the port is memory or the "
			"NIC checks UDP checksums itself. Headers are validated in every case.",
	},
	/* ---- sealed lanes */
	{
		"JOB_KEY", WEFT_OPT_STRING, FIELD(job_key), .def = "", .unit = "file",
		.guarded = true,
		.help = "File of 32 random bytes, the same for all processes of a job, which only "
			"its owner may use (mode 0600): 'head -c 32 /dev/urandom'. All lanes to "
			"other hosts seal their frames (doc/sealing.md). A peer without this key "
			"is refused.",
	},
	{
		"SEAL", WEFT_OPT_ENUM, FIELD(seal), .def = "auto", .unit = "word",
		.words = "auto|off|auth|encrypt",
		.help = "encrypt: frames are authenticated, and messages are encrypted. auth: "
			"messages stay readable, and no host can change them. Both ends need the "
			"same. off: frames are plain, also with WEFT_JOB_KEY. auto: encrypt with "
			"WEFT_JOB_KEY, off without it.",
	},
	{
		"SEAL_DH", WEFT_OPT_BOOL, FIELD(lane.seal_dh), .def = "y", .unit = "y|n",
		.help = "y: each connection makes its keys with X25519, so a recording stays "
			"closed when the job key leaks later. n: from the job key alone, in less "
			"time. Both ends need the same.",
	},
	{
		"SEAL_ALLOW", WEFT_OPT_ENUM, FIELD(seal_allow), .def = "none", .unit = "word",
		.words = "none|roce",
		.help = "roce: with WEFT_JOB_KEY, lanes that cannot seal, such as those of RoCE, "
			"are used all the same, and their messages are not protected. none: they "
			"are left out.",
	},
	{
		"SEAL_REKEY", WEFT_OPT_TIME, FIELD(lane.seal_rekey_ns), .def = "3600s",
		.unit = "time", .min = 1e8, .has_inf = true, .hidden = true,
		.help = "Age at which a sealed connection replaces its keys. Each end does so for "
			"what it sends, also after 2^31 frames. inf: after that number only.",
	},
	{
		"KEYLOG", WEFT_OPT_STRING, FIELD(keylog), .def = "", .unit = "file",
		.guarded = true, .hidden = true,
		.help = "For finding faults: append the keys of all sealed frames to this file, "
			"with which weft-dump --keylog reads a capture. Processes may share it. A "
			"reader of the file can read all messages of its connections. Another "
			"user's file, or one that others may use, is refused.",
	},
	/* ---- lanes at work */
	{
		"CC", WEFT_OPT_ENUM, FIELD(lane.cc), .def = "auto", .unit = "word",
		.words = "auto" WEFT_CC_LIST(CC_WORD),
		.help = "Congestion control of raw lanes. fixed: the window of WEFT_WINDOW, "
			"independent of the network. delay: a window per path that follows round "
			"trips, congestion marks and losses, so that queues stay short and flows "
			"share (doc/raw-lanes.md); WEFT_WINDOW is its maximum. auto: fixed where "
			"the port is memory, delay otherwise.",
	},
	{
		"WINDOW", WEFT_OPT_BYTES, FIELD(lane.window), .def = "auto", .unit = "bytes",
		.has_auto = true,
		.auto_value = 0, .min = 1024,
		.help = "Bytes that a raw lane may have sent to a peer without an acknowledgement. "
			"auto: 1 MiB with WEFT_CC=fixed, otherwise up to 64 MiB, as the network "
			"path requires. The number of frames has its own limit: half of the peer's "
			"receive ring, at most 512, with WEFT_CC=fixed; otherwise four times the "
			"ring, at most 4096.",
	},
	{
		"RX_BUFS", WEFT_OPT_UINT, FIELD(lane.rx_bufs), .def = "auto", .unit = "number",
		.has_auto = true,
		.auto_value = 0, .min = 64, .max = 1 << 20,
		.help = "Receive buffers of each raw or RoCE interface. auto: the driver's choice "
			"(RoCE: 16384).",
	},
	{
		"ZCOPY", WEFT_OPT_BOOL, FIELD(lane.zcopy), .def = "y", .unit = "y|n",
		.help = "Let raw lanes send from user memory where the port can; n: always copy.",
	},
	{
		"PEER_TIMEOUT", WEFT_OPT_TIME, FIELD(lane.peer_timeout_ns), .def = "30s",
		.unit = "time", .min = 1e6, .has_inf = true,
		.help = "A peer is dead when no valid frame has arrived on any raw lane for this "
			"time, or when it has acknowledged nothing for this time although its "
			"frames arrive. (One lane of several is given up after tens of "
			"milliseconds.) A peer that does not poll for this time counts as dead, "
			"too. So the value must exceed the longest pause of the program, unless "
			"the program sets WEFT_HEARTBEAT. inf: silence is no death; a restarted "
			"peer and a removed port still end a lane at once. RoCE lanes use their "
			"options timeout and retry, and wait without limit for a peer whose NIC "
			"answers.",
	},
	{
		"HEARTBEAT", WEFT_OPT_TIME, FIELD(heartbeat_ns), .def = "off", .unit = "time",
		.word = "off", .word_value = 0, .min = 1e6,
		.help = "Interval at which a thread, one for all workers, reports to the peers of "
			"raw lanes that this process is alive while it computes without polling. A "
			"peer that receives these frames waits, even if its messages stay "
			"unacknowledged. The value should be less than a third of the peers' "
			"WEFT_PEER_TIMEOUT. Workers then take their lock in each "
			"call. A callback that computes holds the lock, and no "
			"heartbeat leaves during that time. off: no such thread.",
	},
	{
		"CONNECT_TIMEOUT", WEFT_OPT_TIME, FIELD(lane.connect_timeout_ns), .def = "30s",
		.unit = "time", .min = 1e6,
		.help = "An endpoint that is not connected after this time fails. A further lane "
			"that cannot be attached in this time is left out.",
	},
	{
		"WAIT_SLEEP", WEFT_OPT_TIME, FIELD(wait_sleep_ns), .def = "1ms", .unit = "time",
		.min = 1e4, .max = 1e9,
		.help = "Longest sleep of a waiting worker whose lanes cannot wake it (DPDK ports "
			"without a descriptor, such as net_ring). A message may be noticed this "
			"much later. Sleeps begin with 50 us and double while no message arrives.",
	},
	/* ---- which protocol */
	{
		"RNDV_THRESH", WEFT_OPT_BYTES, FIELD(rndv_thresh), .def = "auto", .unit = "bytes",
		.has_auto = true, .auto_value = WEFT_CONF_AUTO, .has_inf = true,
		.word = "model", .word_value = WEFT_CONF_MODEL,
		.help = "Messages of this size and more go by rendezvous, exactly. inf: never. "
			"auto: from the formula of doc/thresholds.md, at most "
			"WEFT_MULTI_EAGER_LIMIT. model: from the staged model.",
	},
	{
		"PROTO_INFO", WEFT_OPT_BOOL, FIELD(proto_info), .def = "n", .unit = "y|n",
		.help = "Print for every set of lanes that endpoints have which protocol is used "
			"for which size, and why each lane is there.",
	},
	{
		"REG_CACHE", WEFT_OPT_ENUM, FIELD(reg_cache), .def = "auto", .unit = "word",
		.words = "auto|on|off",
		.help = "Keep registrations of memory that large messages came from or went to, "
			"for the next message. auto, on: where userfaultfd reports reliably when "
			"memory is unmapped; without it no registration is kept, and the log "
			"reports it.",
	},
	{
		"REG_CACHE_SIZE", WEFT_OPT_BYTES, FIELD(reg_cache_bytes), .def = "1G",
		.unit = "bytes", .min = 4096, .has_inf = true,
		.help = "Bytes of memory that WEFT_REG_CACHE keeps registered, and so out of reach "
			"of swapping.",
	},
	{
		"MULTI_EAGER_LIMIT", WEFT_OPT_BYTES, FIELD(multi_eager_limit), .def = "256k",
		.unit = "bytes",
		.has_inf = true,
		.help = "Messages below this size may go out at once over all lanes, without "
			"waiting for the receiver. 0: only messages of one fragment are eager. A "
			"larger number in WEFT_RNDV_THRESH overrides it.",
	},
	{
		"RNDV_SCHEME", WEFT_OPT_ENUM, FIELD(rndv_scheme), .def = "auto", .unit = "word",
		.words = "auto|get|put|am",
		.help = "Movement of rendezvous data. get: the receiver reads it, by remote memory "
			"access where the lane can, otherwise by pulling it from the sender in "
			"pieces. put: the sender writes it where the lane can. am: the sender "
			"sends it as messages. auto: get, or the faster of put and am without it. "
			"Each end follows its own setting; am replaces a scheme that the other end "
			"does not allow.",
	},
	{
		"RNDV_WINDOW", WEFT_OPT_BYTES, FIELD(rndv_window), .def = "16M",
		.unit = "bytes", .min = 65536,
		.help = "Most bytes that may be outstanding over one lane in each direction: "
			"requested rendezvous data, and native reads and writes of operations that "
			"several lanes share. The lane's measured rate and round trip decide below "
			"this limit.",
	},
	/* ---- memory */
	{
		"UNEXP_LIMIT", WEFT_OPT_BYTES, FIELD(unexp_limit), .def = "64M", .unit = "bytes",
		.min = 65536,
		.help = "Payload of unexpected messages that a worker keeps, all peers together. "
			"For each 256 bytes of it the worker also keeps one message that is short "
			"or only announced. Peers get credit within this limit. When all of it is "
			"granted, each further peer still gets 4 KiB and 16 messages, so the bound "
			"of credit is this value and 4 KiB for each peer. A message without credit "
			"is announced. Without credit for that it waits at its sender.",
	},
	{
		"UNEXP_MEMORY", WEFT_OPT_BYTES, FIELD(unexp_memory), .def = "auto", .unit = "bytes",
		.has_auto = true, .auto_value = WEFT_CONF_AUTO,
		.help = "Memory of a worker for short and announced messages that wait for a "
			"receive beyond WEFT_UNEXP_LIMIT. An endpoint that fills it fails with "
			"-ENOMEM, if it has more than an even share of it; other endpoints "
			"continue. 0: none, and senders wait for receives. auto: a quarter of the "
			"host's memory (of the control group's limit, if that is less), divided "
			"by the processors; at least 64 MiB, or the whole quarter if that is less.",
	},
	{
		"EAGER_CREDIT", WEFT_OPT_BYTES, FIELD(eager_credit), .def = "1M", .unit = "bytes",
		.min = 4096,
		.help = "Eager payload that one peer may have in flight and unmatched.",
	},
	{
		"ATOMIC_MODE", WEFT_OPT_ENUM, FIELD(atomic_device), .def = "cpu", .unit = "word",
		.words = "cpu|device",
		.help = "Executor of weft_atomic(): cpu (the peer's progress, atomic with its "
			"threads' own atomics, all operations) or device (lanes with atomics, "
			"without the peer's processor; add and compare-swap of 8 bytes only). The "
			"two are not atomic against each other, so all peers that share a word "
			"need the same mode. Two devices are not atomic against each other either: "
			"all peers use the first device of the context with the memory. This "
			"device must support atomics, and a peer without a lane to it gets "
			"-EOPNOTSUPP.",
	},
	/* ---- seen from outside */
	{
		"LOG_LEVEL", WEFT_OPT_ENUM, FIELD(log_level), .def = "warning", .unit = "word",
		.words = "error|warning|info|debug",
		.help = "How much is logged.",
	},
	{
		"LOG_FILE", WEFT_OPT_STRING, FIELD(log_file), .def = "", .unit = "file",
		.guarded = true,
		.help = "Where the log goes; empty: stderr. %p becomes the process id, %h the "
			"host's name. A new file is for its owner alone; another user's file or "
			"symbolic link is refused.",
	},
	{
		"CAPTURE", WEFT_OPT_STRING, FIELD(lane.capture), .def = "", .unit = "file",
		.guarded = true,
		.help = "FILE[,filter=EXPR][,snaplen=N][,ring=SIZE][,size=SIZE][,files=N]: write "
			"the frames of every raw lane, and the messages of every shm and RoCE "
			"lane, both directions, to this file (pcapng); %p becomes the process id. "
			"filter: only frames that match tcpdump's expression (without commas). "
			"snaplen: N bytes of each frame. ring: memory in which frames of an "
			"interface wait to be written, 16M; frames that find it full are dropped "
			"and counted. size: of a file; then it becomes FILE.1 (with files=, the "
			"number of files that are kept), or the capture ends. Weft does not see "
			"the frames of shm and RoCE lanes, so the file has their messages; with a "
			"filter it does not.",
	},
	{
		"RECORDER", WEFT_OPT_U32, FIELD(lane.recorder), .def = "1024", .unit = "frames",
		.word = "off", .word_value = 0, .min = 128, .max = 1048576,
		.help = "Flight recorder: the first 112 bytes of the last frames of each raw lane "
			"stay in memory (256 bytes a frame, rounded up to a power of two; 32 are "
			"reserve), and go to WEFT_RECORDER_FILE when a lane fails, or on request.",
	},
	{
		"RECORDER_FILE", WEFT_OPT_STRING, FIELD(lane.recorder_file), .def = "",
		.unit = "file",
		.guarded = true,
		.help = "File of the flight recorder (pcapng); %p becomes the process id, %n a "
			"number. Empty: recorder-PID-RANDOM.pcapng in the folder weft-UID of "
			"TMPDIR or /tmp, or /run/user/UID/weft where that is another user's. The "
			"newest 20 files of all processes stay, at most 64 MiB. Errors write no "
			"more than one file in 10 s and eight in all. A file holds the beginnings "
			"of messages: only its owner can read it. The first lane with a recorder "
			"decides. FILE,messages: the recorder also has the messages of shm and "
			"RoCE lanes, whose frames it does not see, at a cost for short ones.",
	},
	/* ---- hidden: for tests and for finding faults */
	{
		"FRAME_SIZE", WEFT_OPT_BYTES, FIELD(lane.frame_size), .def = "auto",
		.unit = "bytes", .has_auto = true,
		.auto_value = 0, .min = 128, .max = 65536,
		.hidden = true,
		.help = "Largest frame of raw lanes, Ethernet header included. auto: from the "
			"port's MTU. For ports that cannot set an MTU (memif, ring). Peers agree "
			"on the smaller of their sizes.",
	},
	{
		"RX_INTR", WEFT_OPT_ENUM, FIELD(lane.rx_intr), .def = "auto", .unit = "word",
		.words = "auto|y|n",
		.hidden = true,
		.help = "Request RX interrupts from NICs, virtio_user and vhost, which wake a "
			"worker that waits. auto: where interrupts cost a polling worker nothing "
			"and link events remain (doc/ports.md, Waiting); y: from every PMD; n: "
			"from none.",
	},
	{
		"KEEPALIVE_INTERVAL", WEFT_OPT_TIME, FIELD(lane.keepalive_ns), .def = "5s",
		.unit = "time", .min = 1e6,
		.hidden = true,
		.help = "A lane sends a keepalive to its peer after this time without traffic.",
	},
	{
		"MAX_UNCLAIMED_EPS", WEFT_OPT_UINT, FIELD(max_passive_eps), .def = "1024",
		.unit = "number", .min = 1,
		.max = 1 << 20,
		.hidden = true,
		.help = "Endpoints per worker that peers have made by connecting and that the "
			"program has not claimed. One host may have seven of eight, and the last "
			"sixteenth is reserved for hosts that have none. Further ones wait until "
			"some are claimed, and are refused after WEFT_CONNECT_TIMEOUT.",
	},
	{
		"WAIT_SPIN", WEFT_OPT_TIME, FIELD(wait_spin_ns), .def = "10us", .unit = "time",
		.max = 1e9,
		.hidden = true,
		.help = "Time for which weft_worker_wait() polls before it sleeps, if polling has "
			"been useful lately. 0s: no polling.",
	},
	{
		"BCOPY_BW", WEFT_OPT_RATE, FIELD(bcopy_bw), .def = "auto", .unit = "rate",
		.has_auto = true, .min = 1e6, .max = 1e13,
		.hidden = true,
		.help = "Rate at which a CPU copies, for the choice of protocols. auto: measured "
			"once, in about 1 ms. Peers agree on the slower rate.",
	},
	{
		"REG_CACHE_ENTRIES", WEFT_OPT_UINT, FIELD(reg_cache_entries), .def = "1024",
		.unit = "number", .min = 1, .max = 16384,
		.hidden = true,
		.help = "Registrations that WEFT_REG_CACHE keeps; the longest unused ones go.",
	},
	{
		"RNDV_LIMIT", WEFT_OPT_BYTES, FIELD(rndv_limit), .def = "64M",
		.unit = "bytes", .min = 65536,
		.hidden = true,
		.help = "The limit of WEFT_RNDV_WINDOW for a worker, all peers and lanes together: "
			"with many senders this is the data that arrives at a time. Rate and round "
			"trip of the lanes decide below it, with at least 4 MiB. Peers that do not "
			"deliver are not counted. A peer with nothing outstanding always gets a "
			"request for one smallest piece.",
	},
	{
		"RMA_MAX_GETS", WEFT_OPT_UINT, FIELD(rma_max_gets), .def = "64",
		.unit = "number", .min = 1, .max = 65536,
		.hidden = true,
		.help = "Outstanding pieces of a worker's gets, all peers together: pieces of up "
			"to 64 KiB by messages, of 256 KiB where the lane reads remote memory "
			"itself. Further pieces wait, except one piece of each peer that has none "
			"outstanding. Peers that do not deliver are not counted.",
	},
	{
		"THREAD_MULTI", WEFT_OPT_BOOL, FIELD(thread_multi), .def = "n", .unit = "y|n",
		.hidden = true,
		.help = "Every worker takes its lock, even one made for a single thread. The "
			"setting shows whether a fault comes from using a worker in two threads.",
	},
	{
		"SEQ_START", WEFT_OPT_U32, FIELD(seq_start), .def = "0", .unit = "number",
		.max = 4294967295.0,
		.hidden = true,
		.help = "First message sequence of every endpoint, for testing its wrap. Must be "
			"the same at both ends.",
	},
	/* ---- keys of [model] in a profile */
	{
		"RNDV_PERF_DIFF", WEFT_OPT_DOUBLE, FIELD(rndv_perf_diff), .def = "1",
		.unit = "percent", .max = 99.999999,
		.profile = true,
		.help = "Rendezvous is chosen although the model expects it to be slower by this "
			"much, since it needs no memory for unrequested messages.",
	},
	{
		"ZCOPY_THRESH", WEFT_OPT_BYTES, FIELD(zcopy_thresh), .def = "auto", .unit = "bytes",
		.has_auto = true,
		.auto_value = WEFT_CONF_AUTO, .has_inf = true,
		.profile = true,
		.help = "Eager messages of this size and more are sent from user memory where the "
			"lane can. inf: never.",
	},
	{
		"MAX_EAGER_LANES", WEFT_OPT_UINT, FIELD(max_eager_lanes), .def = "16",
		.unit = "number", .min = 1, .max = 16,
		.profile = true,
		.help = "Lanes over which one eager message may be striped.",
	},
	{
		"MAX_RNDV_LANES", WEFT_OPT_UINT, FIELD(max_rndv_lanes), .def = "16",
		.unit = "number", .min = 1, .max = 16,
		.profile = true,
		.help = "Lanes over which one rendezvous message may be striped.",
	},
};
/* clang-format on */

const struct weft_removed weft_removed[] = {
	{"MAX_EAGER_LANES", "0.2.0", "An eager message may use every lane."},
	{"MAX_RNDV_LANES", "0.2.0", "A rendezvous message may use every lane."},
	{"MIN_CHUNK", "0.2.0", "The smallest piece of a striped message is 4 KiB."},
	{"RECORDER_SIGNAL", "0.2.0",
	 "weft_recorder_write() or 'weft-info --recorder' writes the flight recorder's file."},
	{"RNDV_ALIGN", "0.2.0", "Each lane reports its alignment itself."},
	{"RNDV_MIN_PIECE", "0.2.0", "The smallest piece of a rendezvous message is 16 KiB."},
	{"RNDV_PERF_DIFF", "0.2.0",
	 "The model favours rendezvous by 1 %; WEFT_RNDV_THRESH sets a threshold."},
	{"RNDV_THRESH_FALLBACK", "0.2.0", "WEFT_MULTI_EAGER_LIMIT is the limit of eager messages."},
	{"ZCOPY_THRESH", "0.2.0",
	 "The model decides; WEFT_ZCOPY=n prevents sends from user memory."},
};

static_assert(sizeof(weft_removed) / sizeof(weft_removed[0]) <= WEFT_REMOVED_MAX, "raise it");
const unsigned int weft_num_removed = sizeof(weft_removed) / sizeof(weft_removed[0]);

static_assert(sizeof(weft_options) / sizeof(weft_options[0]) <= WEFT_OPTIONS_MAX, "raise it");
const unsigned int weft_num_options = sizeof(weft_options) / sizeof(weft_options[0]);
