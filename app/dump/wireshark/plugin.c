/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Wireshark's plugin, which shows what weft.lua shows. Here are its entry points, and the messages
 * of lanes without frames.
 */

#include <string.h>

#include <epan/packet.h>
#include <wiretap/wtap.h>
#include <ws_version.h>

#include <epan/dissectors/packet-infiniband.h> /* uses types of the headers above */

#include "core/wire_def.h"
#include "core/wire_tap_def.h"
#include "dump/wireshark/credit.h"
#include "dump/wireshark/fields.h"
#include "dump/wireshark/items.h"
#include "dump/wireshark/lane.h"
#include "dump/wireshark/learn.h"

/* Until 4.2 a heuristic returns GLib's boolean. */
#if WIRESHARK_VERSION_MAJOR == 4 && WIRESHARK_VERSION_MINOR < 4
typedef gboolean found;
#else
typedef bool found;
#endif

#define UDP_PORT 9338
#define HEAD ((uint32_t)sizeof(struct weft_record_head))
/* RoCE: the opcode of a send with immediate data; bytes and bits of these data. */
#define SEND_ONLY_IMM 5
#define IMM_LEN 4
#define IMM_CONTROL 0x80000000u
#define IMM_ID_SHIFT 25
/* What takes the place of a connection. */
#define OF_RECORD ((uint64_t)1 << 63)
#define OF_ROCE UINT64_MAX

/* ---- message records: packets of LINKTYPE_USER15 -------------------------------------------- */

/* A message or a native operation behind the head. @return its name */
static const char *record_body(proto_tree *tree, struct dissect_part p, uint64_t conn,
			       uint32_t reported)
{
	const struct weft_record_head *r = (const void *)p.raw;
	const char *kind = dissect_word(&dump_shape_record_head,
					offsetof(struct weft_record_head, kind), r->kind);
	const bool message = r->kind == WEFT_RECORD_MESSAGE;
	uint32_t length = weft_get32(r->length);
	const char *name;

	if (p.len == HEAD)
		return kind ? kind : "?"; /* cut by the capture */
	if (!kind || reported - HEAD != (message ? length : sizeof(struct weft_record_native))) {
		expert_add_info_format(p.pinfo, tree, &dissect_ids.e_wrong,
				       "Kind or length of a record");
		return "record";
	}
	p.at = HEAD;
	p.len -= HEAD;
	if (!message) {
		dissect_items_add(tree, &dump_shape_record_native, p,
				  dump_shape_record_native.name);
		return weft_get16(r->flags) & WEFT_RECORD_F_DONE
			       ? wmem_strdup_printf(p.pinfo->pool, "%s done", kind)
			       : kind;
	}
	name = dissect_items_read(r->am_id, p, conn);
	dissect_items_message(tree, r->am_id, p, length, 1);
	return name;
}

/* Records of both ends of a lane in one file differ in their interfaces. */
static int dissect_message_record(tvbuff_t *tvb, packet_info *pinfo, proto_tree *root, void *data)
{
	struct dissect_part p = {.pinfo = pinfo, .tvb = tvb, .len = tvb_captured_length(tvb)};
	const struct weft_record_head *r;
	struct dissect_part head;
	proto_tree *tree;
	uint64_t from, to;
	const char *text;
	uint32_t stream;
	proto_item *item;

	(void)data;
	item = proto_tree_add_item(root, dissect_ids.weft, tvb, 0, (int)p.len, ENC_NA);
	proto_item_set_text(item, "Weft message record");
	tree = proto_item_add_subtree(item, dissect_ids.tree);
	col_set_str(pinfo->cinfo, COL_PROTOCOL, "Weft");
	p.raw = tvb_get_ptr(tvb, 0, (int)p.len);
	head = p;
	r = (const void *)p.raw;
	if (p.len < HEAD || weft_get16(r->magic) != WEFT_RECORD_MAGIC ||
	    r->version != WEFT_RECORD_VERSION) {
		expert_add_info_format(pinfo, tree, &dissect_ids.e_wrong, "No message record");
		return (int)p.len;
	}
	head.len = HEAD;
	dissect_items_add(tree, &dump_shape_record_head, head, dump_shape_record_head.name);
	from = weft_get64(r->from);
	to = weft_get64(r->to);
	col_add_fstr(pinfo->cinfo, COL_DEF_SRC, "%016" G_GINT64_MODIFIER "x", from);
	col_add_fstr(pinfo->cinfo, COL_DEF_DST, "%016" G_GINT64_MODIFIER "x", to);
	stream = dissect_record_stream(from, to, weft_get32(r->conn_sn), r->lane);
	dissect_items_number(tree, dissect_ids.stream, stream);
	text = record_body(tree, p, OF_RECORD | (uint64_t)stream << 32 | dissect_place(pinfo),
			   tvb_reported_length(tvb));
	col_add_fstr(pinfo->cinfo, COL_INFO, "%s %u bytes, lane %u", text, weft_get32(r->length),
		     r->lane);
	proto_item_append_text(item, ", %s", text);
	return (int)p.len;
}

/* ---- messages of RoCE lanes, in captures of the network device ------------------------------ */

/* Wireshark dissects the rest of the packet. Other programs' messages have other immediate data. */
static found dissect_roce(tvbuff_t *tvb, packet_info *pinfo, proto_tree *root, void *data)
{
	struct dissect_part p = {.pinfo = pinfo, .tvb = tvb, .len = tvb_captured_length(tvb)};
	const struct infinibandinfo *info = data;
	const int at = tvb_raw_offset(tvb) - IMM_LEN;
	const struct dump_shape *s;
	const char *text;
	proto_tree *tree;
	proto_item *item;
	uint32_t imm;
	uint8_t id;

	if (!info || info->opCode != SEND_ONLY_IMM || p.len == 0 || at < 0)
		return false;
	imm = tvb_get_ntohl(tvb_get_ds_tvb(tvb), at);
	id = imm >> IMM_ID_SHIFT & 31;
	s = dump_shape_of_msg(id);
	/* Control messages have no payload; messages have all fields. */
	if (imm & IMM_CONTROL || !s || p.len < s->size)
		return false;
	p.raw = tvb_get_ptr(tvb, 0, (int)p.len);
	item = proto_tree_add_item(root, dissect_ids.weft, tvb, 0, (int)p.len, ENC_NA);
	proto_item_set_text(item, "Weft, a RoCE lane");
	tree = proto_item_add_subtree(item, dissect_ids.tree);
	col_set_str(pinfo->cinfo, COL_PROTOCOL, "Weft");
	text = dissect_items_read(id, p, OF_ROCE);
	dissect_items_message(tree, id, p, p.len, 1);
	col_add_fstr(pinfo->cinfo, COL_INFO, "RoCE %s %u bytes", text, p.len);
	proto_item_append_text(item, ", %s", text);
	return true;
}

/* ---- entry points --------------------------------------------------------------------------- */

static found dissect_udp(tvbuff_t *tvb, packet_info *pinfo, proto_tree *root, void *data)
{
	return dissect_lane(tvb, pinfo, root, data) > 0;
}

static dissector_handle_t lane, record;

static void register_all(void)
{
	dissect_fields_register();
	dissect_learn_register();
	dissect_credit_register();
	/* The names: weft.lua does nothing where there are dissectors of them. */
	lane = register_dissector("weft", dissect_lane, dissect_ids.weft);
	record = register_dissector("weft_record", dissect_message_record, dissect_ids.record);
}

static void hand_off(void)
{
	dissector_add_uint_with_preference("udp.port", UDP_PORT, lane);
	dissector_add_uint("ethertype", WEFT_FRAME_ETHERTYPE, lane);
	dissector_add_uint("wtap_encap", WTAP_ENCAP_USER15, record);
	heur_dissector_add("udp", dissect_udp, "Weft over UDP", "weft_udp", dissect_ids.weft,
			   HEURISTIC_ENABLE);
	heur_dissector_add("infiniband.payload", dissect_roce, "Weft over RoCE", "weft_roce",
			   dissect_ids.weft, HEURISTIC_ENABLE);
}

/* Wireshark finds these by their names. */
#define EXPORTED __attribute__((visibility("default")))

EXPORTED extern const char plugin_version[];
EXPORTED extern const int plugin_want_major, plugin_want_minor;
EXPORTED void plugin_register(void);
EXPORTED uint32_t plugin_describe(void);

const char plugin_version[] = PLUGIN_VERSION;
const int plugin_want_major = WIRESHARK_VERSION_MAJOR;
const int plugin_want_minor = WIRESHARK_VERSION_MINOR;

void plugin_register(void)
{
	static proto_plugin plugin = {.register_protoinfo = register_all,
				      .register_handoff = hand_off};

	proto_register_plugin(&plugin);
}

/* Since 4.2: a dissector, of those that are in no repository of Wireshark's. */
uint32_t plugin_describe(void)
{
	return 1;
}
