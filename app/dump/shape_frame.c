/* SPDX-License-Identifier: BSD-3-Clause */
/* Lane frames: header and bodies. */

#include "drivers/dpdk/frame/frame.h"
#include "dump/shape.h"

static const char *const type_names[] = {
	[WEFT_FRAME_HELLO] = "HELLO",         [WEFT_FRAME_HELLO_ACK] = "HELLO_ACK",
	[WEFT_FRAME_PROBE] = "PROBE",         [WEFT_FRAME_PROBE_ACK] = "PROBE_ACK",
	[WEFT_FRAME_READY] = "READY",         [WEFT_FRAME_READY_ACK] = "READY_ACK",
	[WEFT_FRAME_DATA] = "DATA",           [WEFT_FRAME_ACK] = "ACK",
	[WEFT_FRAME_RESET] = "RESET",         [WEFT_FRAME_BYE] = "BYE",
	[WEFT_FRAME_BYE_ACK] = "BYE_ACK",     [WEFT_FRAME_HELLO_RETRY] = "HELLO_RETRY",
	[WEFT_FRAME_CHALLENGE] = "CHALLENGE", [WEFT_FRAME_CHALLENGE_ACK] = "CHALLENGE_ACK",
	[WEFT_FRAME_PART] = "PART",           [WEFT_FRAME_ALIVE] = "ALIVE",
};

#define HDR struct weft_frame_hdr
static const struct dump_field header[] = {
	DUMP_DECIMAL(HDR, version), DUMP_WORDS(HDR, type, type_names), DUMP_HEXADECIMAL(HDR, flags),
	DUMP_DECIMAL(HDR, length),  DUMP_HEXADECIMAL(HDR, dst_conn),   DUMP_HEXADECIMAL(HDR, token),
	DUMP_HEXADECIMAL(HDR, seq), DUMP_HEXADECIMAL(HDR, ack),        DUMP_DECIMAL(HDR, src_conn),
	DUMP_DECIMAL(HDR, path),    DUMP_DECIMAL(HDR, echo_path),      DUMP_DECIMAL(HDR, order),
	DUMP_HEXADECIMAL(HDR, ts),  DUMP_HEXADECIMAL(HDR, ts_echo),    DUMP_DECIMAL(HDR, ts_hold),
};
const struct dump_shape dump_shape_header = DUMP_SHAPE("header", header, HDR, DUMP_NOTHING);

#define ECN struct weft_frame_ecn_path
static const struct dump_field ecn_path[] = {DUMP_DECIMAL(ECN, path), DUMP_DECIMAL(ECN, marked)};
const struct dump_shape dump_shape_ecn_path = DUMP_SHAPE("ecn", ecn_path, ECN, DUMP_NOTHING);

static const char *const csum_names[] = {
	[WEFT_FRAME_CSUM_NONE] = "none",
	[WEFT_FRAME_CSUM_UDP] = "udp",
	[WEFT_FRAME_CSUM_CRC32C] = "crc32c",
};

#define HELLO struct weft_frame_hello
static const struct dump_field hello[] = {
	DUMP_HEXADECIMAL(HELLO, conn),       DUMP_HEXADECIMAL(HELLO, token),
	DUMP_HEXADECIMAL(HELLO, worker_id),  DUMP_HEXADECIMAL(HELLO, iface_id),
	DUMP_HEXADECIMAL(HELLO, peer_iface), DUMP_HEXADECIMAL(HELLO, first_seq),
	DUMP_DECIMAL(HELLO, rx_frames),      DUMP_DECIMAL(HELLO, rx_bufs),
	DUMP_DECIMAL(HELLO, frame_size),     DUMP_WORDS(HELLO, csum, csum_names),
	DUMP_DECIMAL(HELLO, paths),          DUMP_HEXADECIMAL(HELLO, features),
	DUMP_DECIMAL(HELLO, udp_port),       DUMP_DECIMAL(HELLO, steer),
	DUMP_DECIMAL(HELLO, rx_shift),       DUMP_HEXADECIMAL(HELLO, secret),
	DUMP_HEXADECIMAL(HELLO, cookie),
};

#define PROBE struct weft_frame_probe
static const struct dump_field probe[] = {DUMP_DECIMAL(PROBE, id), DUMP_DECIMAL(PROBE, frame_size)};

#define READY struct weft_frame_ready
static const struct dump_field ready[] = {DUMP_DECIMAL(READY, frame_size),
					  DUMP_DECIMAL(READY, paths)};
struct port {
	weft_le16 port;
};
static const struct dump_field port[] = {DUMP_DECIMAL(struct port, port)};
static const struct dump_shape port_shape = DUMP_SHAPE("port", port, struct port, DUMP_NOTHING);

static const char *const reasons[] = {
	[WEFT_RESET_UNKNOWN] = "UNKNOWN", [WEFT_RESET_IFACE] = "IFACE",
	[WEFT_RESET_VERSION] = "VERSION", [WEFT_RESET_BUSY] = "BUSY",
	[WEFT_RESET_REFUSED] = "REFUSED",
};

#define RESET struct weft_frame_reset
static const struct dump_field reset[] = {
	DUMP_WORDS(RESET, reason, reasons),  DUMP_DECIMAL(RESET, version_min),
	DUMP_DECIMAL(RESET, version_max),    DUMP_HEXADECIMAL(RESET, echo_conn),
	DUMP_HEXADECIMAL(RESET, echo_token),
};

#define RETRY struct weft_frame_retry
static const struct dump_field retry[] = {DUMP_HEXADECIMAL(RETRY, cookie)};

#define CHALLENGE struct weft_frame_challenge
static const struct dump_field challenge[] = {DUMP_HEXADECIMAL(CHALLENGE, number),
					      DUMP_HEXADECIMAL(CHALLENGE, proof)};

#define PART struct weft_frame_part
static const struct dump_field part[] = {DUMP_DECIMAL(PART, offset), DUMP_DECIMAL(PART, total)};

static const struct dump_shape frames[WEFT_FRAME_TYPE_END] = {
	[WEFT_FRAME_HELLO] = DUMP_SHAPE("hello", hello, HELLO, DUMP_NOTHING),
	[WEFT_FRAME_HELLO_ACK] = DUMP_SHAPE("hello", hello, HELLO, DUMP_NOTHING),
	[WEFT_FRAME_PROBE] = DUMP_SHAPE("probe", probe, PROBE, DUMP_NOTHING),
	[WEFT_FRAME_PROBE_ACK] = DUMP_SHAPE("probe", probe, PROBE, DUMP_NOTHING),
	[WEFT_FRAME_READY] = DUMP_SHAPE("ready", ready, READY, DUMP_ITEMS, .item = &port_shape),
	[WEFT_FRAME_READY_ACK] = {.name = "ready_ack"},
	[WEFT_FRAME_DATA] = {.name = "data", .rest = DUMP_MESSAGES},
	[WEFT_FRAME_ACK] = {.name = "ack"},
	[WEFT_FRAME_RESET] = DUMP_SHAPE("reset", reset, RESET, DUMP_NOTHING),
	[WEFT_FRAME_BYE] = {.name = "bye"},
	[WEFT_FRAME_BYE_ACK] = {.name = "bye_ack"},
	[WEFT_FRAME_HELLO_RETRY] = DUMP_SHAPE("retry", retry, RETRY, DUMP_NOTHING),
	[WEFT_FRAME_CHALLENGE] = DUMP_SHAPE("challenge", challenge, CHALLENGE, DUMP_NOTHING),
	[WEFT_FRAME_CHALLENGE_ACK] = DUMP_SHAPE("challenge", challenge, CHALLENGE, DUMP_NOTHING),
	[WEFT_FRAME_PART] = DUMP_SHAPE("part", part, PART, DUMP_BYTES),
	[WEFT_FRAME_ALIVE] = {.name = "alive"},
};

const struct dump_shape *dump_shape_of_frame(uint8_t type)
{
	return type < WEFT_FRAME_TYPE_END && frames[type].name ? &frames[type] : NULL;
}

const char *dump_word(const struct dump_field *field, uint64_t value)
{
	return value < field->num_words ? field->words[value] : NULL;
}
