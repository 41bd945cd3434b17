/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Wireshark's plugin, which shows what weft.lua shows. This file dissects frames of raw lanes,
 * message records and messages of RoCE lanes, and has the entry points.
 */

#include <string.h>

#include <epan/packet.h>
#include <wiretap/wtap.h>
#include <ws_version.h>

#include <epan/dissectors/packet-infiniband.h> /* uses types of the headers above */

#include "core/wire_conn_def.h"
#include "core/wire_def.h"
#include "core/wire_frame_def.h"
#include "core/wire_tap_def.h"
#include "dump/wireshark/items.h"
#include "dump/wireshark/learn.h"

#define HEAD ((uint32_t)sizeof(struct weft_frame_hdr))
#define CRC_LEN 4u
#define NAMED 4u /* messages that the line of a frame names, at most */
#define UDP_PORT 9338
#define RECORD_HEAD ((uint32_t)sizeof(struct weft_record_head))
/* RoCE: the opcode of a send with immediate data; bytes and bits of these data. */
#define SEND_ONLY_IMM 5
#define IMM_LEN 4
#define IMM_CONTROL 0x80000000u
#define IMM_ID_SHIFT 25
/* Numbers in place of connection and token: for records (with more bits), for RoCE lanes. */
#define OF_RECORD ((uint64_t)1 << 63)
#define OF_ROCE UINT64_MAX

/* Until 4.2 a heuristic returns GLib's boolean. */
#if WIRESHARK_VERSION_MAJOR == 4 && WIRESHARK_VERSION_MINOR < 4
typedef gboolean found;
#else
typedef bool found;
#endif

/* A frame of a raw lane. All of its bytes up to `end` were captured. */
struct lane {
	struct dissect_part p; /* from the lane header on */
	const struct weft_frame_hdr *hdr;
	uint16_t flags;
	uint32_t end;  /* offset of the end of the body */
	uint32_t body; /* offset of the body; 0: there is none, or it cannot be read */
	uint32_t stream;
};

/* ---- messages ------------------------------------------------------------------------------- */

/* Read the next message. @param[in,out] at  its offset; then its end. @return false: none */
static bool next(const struct lane *l, uint32_t *at, struct dissect_part *m, uint8_t *id,
		 uint32_t *len)
{
	const struct weft_frame_msg *head = (const void *)(l->p.raw + *at);

	if (*at > l->end || l->end - *at < sizeof(*head))
		return false;
	*id = head->am_id;
	*len = weft_get16(head->length);
	*at += (uint32_t)sizeof(*head);
	*m = l->p;
	m->at = *at;
	m->len = *len < l->end - *at ? *len : l->end - *at;
	*at += *len;
	return true;
}

/* @return the names of the first NAMED messages. On the first pass pieces are learned. */
static const char *read_messages(const struct lane *l)
{
	packet_info *pinfo = l->p.pinfo;
	wmem_strbuf_t *text = wmem_strbuf_new(pinfo->pool, " ");
	uint64_t conn;
	struct dissect_part m;
	uint32_t at = l->body, n = 0, len;
	uint8_t id;

	memcpy(&conn, &l->hdr->dst_conn, sizeof(conn)); /* and the token */
	while (next(l, &at, &m, &id, &len)) {
		const char *name = m.len > 0 ? dissect_items_read(id, m, conn) : NULL;

		if (name && ++n <= NAMED)
			wmem_strbuf_append_printf(text, "%s%s", n > 1 ? " " : "", name);
	}
	if (n > NAMED)
		wmem_strbuf_append(text, " ...");
	return wmem_strbuf_get_str(text);
}

static void add_messages(const struct lane *l, proto_tree *tree)
{
	struct dissect_part m;
	uint32_t at = l->body, pieces = 0, len;
	proto_item *item;
	uint8_t id;

	while (next(l, &at, &m, &id, &len)) {
		const struct dump_shape *s = dump_shape_of_msg(id);

		if (m.len > 0) {
			pieces += dissect_is_piece(id) && m.len >= s->size;
			dissect_items_message(tree, id, m, len, pieces);
		} else if (len == 0) {
			item = proto_tree_add_item(tree, dissect_ids.weft, m.tvb, (int)m.at - 4, 4,
						   ENC_NA);
			proto_item_set_text(item, "%s", s ? s->name : dissect_unknown.name);
		}
	}
}

/* ---- blocks --------------------------------------------------------------------------------- */

/*
 * Where a block ends that counts units, or 0: it is malformed or cut.
 * @param unit  bytes of each. @param most  units
 */
static uint32_t block_end(const struct lane *l, uint32_t at, uint32_t unit, uint32_t most)
{
	const struct weft_frame_ecn *head = (const void *)(l->p.raw + at);
	uint32_t n;

	if (l->p.len < at + sizeof(*head))
		return 0;
	n = weft_get16(head->paths);
	if (n == 0 || n > most || weft_get16(head->reserved) ||
	    at + sizeof(*head) + n * unit > l->p.len)
		return 0;
	return at + (uint32_t)sizeof(*head) + n * unit;
}

static struct dissect_part part(const struct lane *l, uint32_t at, uint32_t len)
{
	struct dissect_part p = l->p;

	p.at = at;
	p.len = len;
	return p;
}

/* Add the blocks to the tree, if there is one. @return their end; 0 = one is malformed or cut */
static uint32_t blocks(const struct lane *l, proto_tree *tree)
{
	const uint32_t ecn_len = sizeof(struct weft_frame_ecn_path);
	uint32_t at = HEAD, end;

	if (l->flags & WEFT_FRAME_F_SACK) {
		end = block_end(l, at, 8, 64);
		for (at += 4; tree && at < end; at += 8)
			proto_tree_add_item(tree, *dissect_ids.word, l->p.tvb, (int)at, 8,
					    ENC_LITTLE_ENDIAN);
		if (end == 0)
			return 0;
		at = end;
	}
	if (l->flags & WEFT_FRAME_F_ECN) {
		end = block_end(l, at, ecn_len, 16);
		for (at += 4; tree && at < end; at += ecn_len)
			dissect_items_add(tree, &dump_shape_frame_ecn_path, part(l, at, ecn_len),
					  dump_shape_frame_ecn_path.name);
		if (end == 0)
			return 0;
		at = end;
	}
	if (l->flags & WEFT_FRAME_F_PROGRESS) {
		end = at + (uint32_t)sizeof(struct weft_frame_progress);
		if (end > l->p.len)
			return 0;
		if (tree)
			dissect_items_add(tree, &dump_shape_frame_progress, part(l, at, end - at),
					  dump_shape_frame_progress.name);
		at = end;
	}
	return at;
}

/* ---- the tree ------------------------------------------------------------------------------- */

static void add_flags(const struct lane *l, proto_tree *tree)
{
	for (unsigned int i = 0; tree && i < DUMP_FLAGS; i++)
		if (dissect_ids.flag[i])
			proto_tree_add_item(tree, *dissect_ids.flag[i], l->p.tvb,
					    offsetof(struct weft_frame_hdr, flags), 2,
					    ENC_LITTLE_ENDIAN);
}

/* Everything behind the header. Behind that of a sealed frame no byte can be read. */
static void add_frame(const struct lane *l, proto_tree *tree)
{
	const struct dump_shape *s = dump_shape_of_frame(l->hdr->type);

	add_flags(l, tree);
	if (l->flags & WEFT_FRAME_F_SEALED)
		return;
	if (tree)
		blocks(l, tree);
	if (l->body && s->rest == DUMP_MESSAGES)
		add_messages(l, tree);
	else if (l->body && s->size > 0)
		dissect_items_add(tree, s, part(l, l->body, l->end - l->body), s->name);
	if (l->flags & WEFT_FRAME_F_CRC32C && l->p.len >= l->end + CRC_LEN)
		proto_tree_add_item(tree, *dissect_ids.crc, l->p.tvb, (int)l->end, CRC_LEN,
				    ENC_LITTLE_ENDIAN);
}

static void add_answer(const struct dissect_note *note, proto_tree *tree, uint8_t type)
{
	proto_item *item;

	dissect_items_number(tree,
			     type == WEFT_FRAME_PROBE ? dissect_ids.answer : dissect_ids.question,
			     note->answer);
	if (!note->timed)
		return;
	item = proto_tree_add_time(tree, *dissect_ids.response, NULL, 0, 0, &note->response);
	proto_item_set_generated(item);
}

/* What other frames show, with expert information: Wireshark counts it also without a tree. */
static void add_note(const struct dissect_note *note, packet_info *pinfo, proto_tree *tree,
		     uint8_t type)
{
	if (note->missing) {
		dissect_items_number(tree, dissect_ids.missing, note->missing);
		expert_add_info(pinfo, tree, &dissect_ids.e_missing);
	}
	if (note->answer)
		add_answer(note, tree, type);
	if (note->spent)
		expert_add_info(pinfo, tree, &dissect_ids.e_spent);
	if (note->again) {
		dissect_items_number(tree, dissect_ids.again, note->again);
		expert_add_info(pinfo, tree, &dissect_ids.e_again);
	} else if (note->twice) {
		dissect_items_number(tree, dissect_ids.twice, note->twice);
		expert_add_info(pinfo, tree, &dissect_ids.e_twice);
	}
}

static void add_facts(const struct dissect_note *note, packet_info *pinfo, proto_tree *tree,
		      uint8_t type, bool visited)
{
	if (note)
		add_note(note, pinfo, tree, type);
	/* On the first pass the answer may yet come. */
	if (type == WEFT_FRAME_PROBE && visited && !(note && note->answer))
		expert_add_info(pinfo, tree, &dissect_ids.e_silent);
	if (type == WEFT_FRAME_RESET)
		expert_add_info(pinfo, tree, &dissect_ids.e_reset);
	else if (type == WEFT_FRAME_CHALLENGE)
		expert_add_info(pinfo, tree, &dissect_ids.e_moved);
	else if (type == WEFT_FRAME_PART)
		expert_add_info(pinfo, tree, &dissect_ids.e_search);
}

/* ---- a frame -------------------------------------------------------------------------------- */

static void learn(const struct lane *l)
{
	packet_info *pinfo = l->p.pinfo;
	const struct dissect_note *note;
	uint32_t place, len = l->body ? l->end - l->body : 0;
	uint8_t type = l->hdr->type;

	if (type == WEFT_FRAME_DATA) {
		place = dissect_place(pinfo);
		dissect_learn_data(pinfo, place, l->hdr);
		note = dissect_note(pinfo);
		if (l->body && !(note && (note->again || note->twice)))
			dissect_learn_credit(pinfo, place, l->hdr, l->p.raw + l->body, len);
	} else if ((type == WEFT_FRAME_PROBE || type == WEFT_FRAME_PROBE_ACK) &&
		   len >= sizeof(struct weft_frame_probe)) {
		dissect_learn_probe(pinfo, type, l->stream, (const void *)(l->p.raw + l->body));
	}
}

static void column(const struct lane *l, const char *type, const char *messages, proto_item *item)
{
	const struct dissect_note *note = dissect_note(l->p.pinfo);
	wmem_strbuf_t *text = wmem_strbuf_new(l->p.pinfo->pool, type);
	const char *before = " [";

	wmem_strbuf_append(text, messages);
	for (unsigned int i = 0; i < DUMP_FLAGS; i++) {
		if (!(l->flags & 1u << i) || !dump_frame_flags[i])
			continue;
		wmem_strbuf_append_printf(text, "%s%s", before, dump_frame_flags[i]);
		before = " ";
	}
	wmem_strbuf_append_printf(text, "%s%s", before[1] ? "" : "]",
				  !note         ? ""
				  : note->again ? " (again)"
				  : note->twice ? " (duplicate)"
						: "");
	col_add_fstr(l->p.pinfo->cinfo, COL_INFO, "%s conn %u > %u seq %08x ack %08x path %u",
		     wmem_strbuf_get_str(text), weft_get16(l->hdr->src_conn),
		     weft_get32(l->hdr->dst_conn) & 0xffff, weft_get32(l->hdr->seq),
		     weft_get32(l->hdr->ack), l->hdr->path);
	proto_item_append_text(item, ", %s", wmem_strbuf_get_str(text));
}

static void dissect_known(struct lane *l, proto_tree *tree, const char *type)
{
	packet_info *pinfo = l->p.pinfo;
	bool visited = pinfo->fd->visited, sealed = l->flags & WEFT_FRAME_F_SEALED;
	uint32_t length = weft_get16(l->hdr->length), at;
	const char *messages = "";

	l->end = length < l->p.len ? length : l->p.len;
	/* Frames that do not name both ends have no number of a connection. */
	if (l->hdr->type != WEFT_FRAME_HELLO && l->hdr->type != WEFT_FRAME_RESET) {
		l->stream = dissect_stream(pinfo, l->hdr);
		dissect_items_number(tree, dissect_ids.stream, l->stream);
	}
	at = sealed ? 0 : blocks(l, NULL);
	l->body = at < l->end ? at : 0;
	if (!sealed && at == 0)
		expert_add_info_format(pinfo, tree, &dissect_ids.e_wrong,
				       "SACK, ECN or progress block");
	if (!visited)
		learn(l);
	if (l->hdr->type == WEFT_FRAME_DATA && l->body)
		messages = read_messages(l);
	add_frame(l, tree);
	add_facts(dissect_note(pinfo), pinfo, tree, l->hdr->type, visited);
	column(l, type, messages, tree);
}

/* @return the bytes dissected; 0: it is no lane frame */
static int dissect_lane(tvbuff_t *tvb, packet_info *pinfo, proto_tree *root, void *data)
{
	struct lane l = {.p = {.pinfo = pinfo, .tvb = tvb, .len = tvb_captured_length(tvb)}};
	proto_item *item;
	proto_tree *tree;
	const char *type;

	(void)data;
	if (l.p.len < HEAD || tvb_get_letohs(tvb, 0) != WEFT_FRAME_MAGIC)
		return 0;
	l.p.raw = tvb_get_ptr(tvb, 0, (int)l.p.len);
	l.hdr = (const void *)l.p.raw;
	l.flags = weft_get16(l.hdr->flags);
	item = proto_tree_add_item(root, dissect_ids.weft, tvb, 0, (int)l.p.len, ENC_NA);
	tree = proto_item_add_subtree(item, dissect_ids.tree);
	col_set_str(pinfo->cinfo, COL_PROTOCOL, "Weft");
	dissect_items_fields(tree, &dump_shape_frame_hdr, l.p);
	type = dissect_word(&dump_shape_frame_hdr, offsetof(struct weft_frame_hdr, type),
			    l.hdr->type);
	if (!type || (l.hdr->version != WEFT_FRAME_VERSION && l.hdr->type != WEFT_FRAME_RESET))
		expert_add_info_format(pinfo, tree, &dissect_ids.e_wrong, "Version or type");
	else
		dissect_known(&l, tree, type);
	return (int)l.p.len;
}

/* ---- message records: packets of LINKTYPE_USER15 -------------------------------------------- */

/* Add the message or the native operation behind the head of a record. @return its name */
static const char *record_body(proto_tree *tree, struct dissect_part p, uint64_t conn,
			       uint32_t reported)
{
	const struct weft_record_head *r = (const void *)p.raw;
	const char *kind = dissect_word(&dump_shape_record_head,
					offsetof(struct weft_record_head, kind), r->kind);
	const bool message = r->kind == WEFT_RECORD_MESSAGE;
	uint32_t length = weft_get32(r->length);
	const char *name;

	if (p.len == RECORD_HEAD)
		return kind ? kind : "?"; /* cut by the capture */
	if (!kind ||
	    reported - RECORD_HEAD != (message ? length : sizeof(struct weft_record_native))) {
		expert_add_info_format(p.pinfo, tree, &dissect_ids.e_wrong,
				       "Kind or length of a record");
		return "record";
	}
	p.at = RECORD_HEAD;
	p.len -= RECORD_HEAD;
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
	if (p.len < RECORD_HEAD || weft_get16(r->magic) != WEFT_RECORD_MAGIC ||
	    r->version != WEFT_RECORD_VERSION) {
		expert_add_info_format(pinfo, tree, &dissect_ids.e_wrong, "No message record");
		return (int)p.len;
	}
	head.len = RECORD_HEAD;
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

/*
 * Wireshark dissects the headers of the packet. Messages of other programs mostly have other
 * immediate data.
 */
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
	/* Where dissectors with these names exist, weft.lua does nothing. */
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

/* Called by Wireshark from 4.2 on: the kind of the plugin, 1 = it has a dissector. */
uint32_t plugin_describe(void)
{
	return 1;
}
