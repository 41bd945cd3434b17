-- SPDX-License-Identifier: BSD-3-Clause
--
-- Wireshark's dissector of Weft: frames of raw lanes, the messages in them, wire-up. Written from
-- doc/wire.md; the tests hold it against weft-dump field by field. A new frame type or message is
-- one entry in the tables below.
--
-- Filters: weft.type == 7, weft.stream == 3, weft.flags.retx == 1, weft.frag.seq == 0x10,
-- weft.retransmission_of, weft.duplicate_of, weft.message_first, _ws.expert.

-- It may be installed where Wireshark looks, and be named by -X lua_script: too.
if weft_dissector_loaded then
	return
end
weft_dissector_loaded = true

local weft = Proto("weft", "Weft")
local fields = {}

local MAGIC, VERSION = 0x6657, 2
local HEADER, FIXED = 42, 26
local ACK_REQ, SACK, CRC32C, RETX, ECN = 1, 2, 4, 8, 16
local HELLO, PROBE, DATA, RESET = 1, 3, 7, 9

local types = {
	[1] = "HELLO", [2] = "HELLO_ACK", [3] = "PROBE", [4] = "PROBE_ACK", [5] = "READY",
	[6] = "READY_ACK", [7] = "DATA", [8] = "ACK", [9] = "RESET", [10] = "BYE",
	[11] = "BYE_ACK", [12] = "HELLO_RETRY", [13] = "CHALLENGE", [14] = "CHALLENGE_ACK",
	[15] = "PART", [16] = "ALIVE",
}
local wireup_types = {
	[1] = "REQ", [2] = "REP", [3] = "ATTACH", [4] = "ATTACHED", [5] = "CLOSE", [6] = "ERROR",
	[7] = "ACK", [8] = "CLOSING", [9] = "LANE_DOWN", [10] = "LANE_DOWN_ACK",
	[11] = "LANE_SUSPECT", [12] = "LANE_LINK", [13] = "WHO", [14] = "ADDRESS",
}
local resets = {
	[1] = "UNKNOWN", [2] = "IFACE", [3] = "VERSION", [4] = "BUSY", [5] = "REFUSED",
}

-- ---- tables of fields: "name kind". Kinds: d decimal, x hexadecimal, each with its bytes; f a
-- single, ip, mac, ref (index and generation); -N: N bytes that are not shown.

local function shape(name, text, rest, item)
	local s = { name = name, rest = rest, item = item, list = {}, size = 0 }
	for field, kind in text:gmatch("(%S+) (%S+)") do
		if kind == "ref" then
			table.insert(s.list, { name = field, kind = "d4" })
			table.insert(s.list, { name = field .. "_gen", kind = "d4" })
		else
			table.insert(s.list, { name = field, kind = kind })
		end
	end
	for _, f in ipairs(s.list) do
		f.size = f.kind == "f" and 4 or f.kind == "ip" and 4 or f.kind == "mac" and 6 or
			tonumber(f.kind:match("%d+"))
		f.at = s.size
		s.size = s.size + f.size
	end
	return s
end

local header = shape("", "magic -2 version d1 type d1 flags x2 length d2 dst_conn x4 token x4 " ..
	"seq x4 ack x4 src_conn d2 path d1 echo_path d1 order d4 ts x4 ts_echo x4 ts_hold d2")
local ecn_entry = shape("ecn", "path d1 zero -1 marked d2")
local hello = shape("hello", "conn x4 token x4 worker_id x8 iface_id x8 peer_iface x8 " ..
	"first_seq x4 rx_frames d4 rx_bufs d4 frame_size d2 csum d1 paths d1 features x4 " ..
	"udp_port d2 steer d1 rx_shift d1 secret x8 cookie x8")
local probe = shape("probe", "id d2 frame_size d2")
local port = shape("port", "port d2")
local challenge = shape("challenge", "number x8 proof x8")

-- Bodies of frames.
local bodies = {
	[1] = hello, [2] = hello, [3] = probe, [4] = probe,
	[5] = shape("ready", "frame_size d2 paths d2", "items", port),
	[9] = shape("reset", "reason d2 version_min d1 version_max d1 echo_conn x4 echo_token x4"),
	[12] = shape("retry", "cookie x8"),
	[13] = challenge, [14] = challenge,
	[15] = shape("part", "offset d2 total d2", "bytes"),
}

local key = shape("key", "lane d1 zero -1 key x8")
local msg_records = {
	[1] = shape("keys", "offset d8", "items", key),
	[2] = shape("window", "window d8"),
}
local lane = shape("lane", "lane d1 lower_iface d1 higher_iface d1 flags x1 max_frag d4 " ..
	"bandwidth f latency f")
local iface = shape("iface", "index d1 driver_len d1 addr_len d1 zero -1 device x8 features x4 " ..
	"bandwidth f latency f send_overhead f recv_overhead f reg_cost f reg_growth f " ..
	"max_short d4 max_bcopy d4 max_zcopy d4 ep_addr_len d1 domain d1 zero -2")
local raw_iface = shape("iface", "version d1 flags d1 port d2 vlan d2 frame_size d2 ip ip " ..
	"prefix d1 queues d1 mac mac zero -4 iface_id x8")
local wireup_records = {
	[1] = shape("address", "magic x4 major d1 minor d1 length d2 crc x4 zero -4 worker_id x8 " ..
		"features x8 name_len d1 num_ifaces d1 zero -2 secret x8 host_id x8", "address"),
	[2] = shape("lanes", "", "items", lane),
	[3] = shape("boot", "src_iface d1 dst_iface d1 attempt d2"),
	[4] = shape("grant", "bytes d8 seq x4 small d4 am_seq x4"),
	[5] = shape("text", "", "text"),
	[6] = shape("ep_addr", "lane d1 zero -1", "bytes"),
	[7] = shape("model", "bcopy_bw f zero -4"),
	[8] = shape("next_sn", "conn_sn d4"),
	[9] = shape("rx_state", "", "bytes"),
}
local unknown = shape("unknown", "", "bytes")

-- Message records: what lanes without frames of their own (shm, RoCE) carry.
local record = shape("record", "magic x2 version d1 kind d1 am_id d1 lane d1 flags x2 length d4 " ..
	"conn_sn d4 from x8 to x8")
local native = shape("native", "offset d8 key x8 local x8 compare x8 ref_index d4 " ..
	"ref_generation d4")
local record_kinds = { "MESSAGE", "READ", "WRITE", "ADD", "CSWAP" }

-- Messages: by their id.
local messages = {
	[1] = shape("wireup", "type d1 major d1 minor d1 lane d1 conn_sn d4 src_worker x8 " ..
		"dst_worker x8 src_ep ref dst_ep ref status d2 lane_epoch d2 total d2 offset d2 " ..
		"src_secret x8 dst_secret x8", "wireup"),
	[2] = shape("eager", "seq x4 tag x8", "bytes"),
	[3] = shape("eager_sync", "seq x4 tag x8 req ref", "bytes"),
	[4] = shape("frag", "seq x4 tag x8 total d8 offset d8", "bytes"),
	[5] = shape("frag_sync", "seq x4 tag x8 total d8 offset d8 req ref", "bytes"),
	[6] = shape("rts", "seq x4 tag x8 total d8 req ref flags x4", "records"),
	[7] = shape("rtr", "sreq ref rreq ref offset d8 length d8 flags x4", "records"),
	[8] = shape("pulled", "rreq ref offset d8", "bytes"),
	[9] = shape("ats", "sreq ref status d4", "records"),
	[10] = shape("sync_ack", "sreq ref status d4", "records"),
	[11] = shape("credit", "bytes d8 seq x4 small d4 am_seq x4", "records"),
	[12] = shape("abort", "seq x4 tag x8 rreq ref total d8 status d4 flags x4", "records"),
	[13] = shape("pull", "sreq ref rreq ref offset d8 length d8 lane d2 flags x2", "records"),
	[14] = shape("withdraw", "seq x4 tag x8 sreq ref flags x4", "records"),
	[15] = shape("put_done", "rreq ref offset d8 length d8", "records"),
	[16] = shape("am", "seq x4 id d2 header_length d2", "bytes"),
	[17] = shape("am_rts", "seq x4 id d2 header_length d2 total d8 req ref flags x4",
		"am_records"),
	[18] = shape("am_frag", "seq x4 id d2 header_length d2 total d8 offset d8", "bytes"),
	[19] = shape("ext", "id d1 flags x1 channel d2 source_channel d2 zero -2 imm x8", "message"),
	[20] = shape("put", "key x8 offset d8 ref ref flags x4", "bytes"),
	[21] = shape("get", "key x8 offset d8 length d8 local d8 ref ref flags x4"),
	[22] = shape("get_data", "ref ref offset d8", "bytes"),
	[23] = shape("amo", "key x8 offset d8 operand x8 compare x8 ref ref op d1 width d1 " ..
		"flags x2 number d4"),
	[24] = shape("amo_rep", "ref ref value x8"),
	[25] = shape("rma_nak", "ref ref length d8 status d2 flags x2"),
	[26] = shape("rma_flush", "count d8 flags x4"),
	[27] = shape("rma_flushed", "count d8 naks d8 errors d8 status d4 first d4 last d4"),
	[28] = shape("key_req", "key x8"),
	[29] = shape("key_answer", "key x8 size d8 rights x4 low d1 num_domains d1 zero -2",
		"items", shape("domain", "key x8 domain d1 zero -7")),
	[30] = shape("amov", "key x8 offset d8 ref ref local d8 op d1 type d1 flags x2 number d4 " ..
		"count d4", "bytes"),
	[31] = shape("amov_rep", "ref ref offset d8", "bytes"),
}

local values = {
	["weft.type"] = types,
	["weft.wireup.type"] = wireup_types,
	["weft.reset.reason"] = resets,
	["weft.record.kind"] = record_kinds,
	["weft.hello.csum"] = { [0] = "none", [1] = "udp", [2] = "crc32c" },
	["weft.amo.op"] = { [0] = "add", "and", "or", "xor", "swap", "cswap" },
}

-- ---- fields of filters --------------------------------------------------------------------------

local makers = {
	d1 = ProtoField.uint8, d2 = ProtoField.uint16, d4 = ProtoField.uint32,
	d8 = ProtoField.uint64,
}
makers.x1, makers.x2, makers.x4, makers.x8 = makers.d1, makers.d2, makers.d4, makers.d8

local function declare(abbrev, name, kind)
	if fields[abbrev] then
		return fields[abbrev]
	end
	local field
	if kind == "f" then
		field = ProtoField.float(abbrev, name)
	elseif kind == "ip" then
		field = ProtoField.ipv4(abbrev, name)
	elseif kind == "mac" then
		field = ProtoField.ether(abbrev, name)
	else
		field = makers[kind](abbrev, name, kind:sub(1, 1) == "x" and base.HEX or base.DEC,
			values[abbrev])
	end
	fields[abbrev] = field
	return field
end

local function declare_all(s)
	local prefix = "weft." .. (s.name ~= "" and s.name .. "." or "")
	for _, f in ipairs(s.list) do
		if f.kind:sub(1, 1) ~= "-" then
			f.field = declare(prefix .. f.name, f.name, f.kind)
		end
	end
	if s.rest and not fields[prefix .. "bytes"] then
		fields[prefix .. "bytes"] = ProtoField.uint32(prefix .. "bytes", "bytes")
	end
	if s.item then
		declare_all(s.item)
	end
end

-- A put behind EXT, which notifies.
local put_note = shape("put", "key x8 offset d8 ref ref flags x4 total d8 number d4", "bytes")
local put = 20

local alone = { header, ecn_entry, iface, raw_iface, unknown, record, native, put_note }
for _, t in ipairs({ alone, bodies, msg_records, wireup_records, messages }) do
	for _, s in pairs(t) do declare_all(s) end
end

local function text_field(abbrev, name)
	fields[abbrev] = ProtoField.string(abbrev, name)
	return fields[abbrev]
end
local f_text = text_field("weft.text.text", "text")
local f_name = text_field("weft.address.text", "worker's name")
local f_driver = text_field("weft.iface.driver", "driver")
local f_word = ProtoField.uint64("weft.sack.word", "word", base.HEX)
local f_crc = ProtoField.uint32("weft.crc", "CRC32C", base.HEX)
local flag_fields = {}
fields["weft.sack.word"], fields["weft.crc"] = f_word, f_crc
for _, f in ipairs({ { "ack_req", ACK_REQ }, { "sack", SACK }, { "crc32c", CRC32C },
	{ "retx", RETX }, { "ecn", ECN } }) do
	local abbrev = "weft.flags." .. f[1]
	fields[abbrev] = ProtoField.bool(abbrev, f[1]:upper(), 16, nil, f[2])
	table.insert(flag_fields, { fields[abbrev], f[2], f[1]:upper() })
end
local function link(abbrev, name)
	fields[abbrev] = ProtoField.framenum(abbrev, name)
	return fields[abbrev]
end
local f_again = link("weft.retransmission_of", "Retransmission of")
local f_twice = link("weft.duplicate_of", "Duplicate of")
local f_first = link("weft.message_first", "First frame of this message")
local f_before = link("weft.message_before", "Frame before of this message")
local f_nth = ProtoField.uint32("weft.message_frame", "Frame of this message")
fields["weft.message_frame"] = f_nth
local f_stream = ProtoField.uint32("weft.stream", "Connection (both ways)")
fields["weft.stream"] = f_stream

weft.fields = fields

local e_again = ProtoExpert.new("weft.expert.retransmission", "Retransmission",
	expert.group.SEQUENCE, expert.severity.NOTE)
local e_twice = ProtoExpert.new("weft.expert.duplicate", "Duplicate",
	expert.group.SEQUENCE, expert.severity.NOTE)
local e_reset = ProtoExpert.new("weft.expert.reset", "Connection is refused or unknown",
	expert.group.SEQUENCE, expert.severity.WARN)
local e_wrong = ProtoExpert.new("weft.expert.wrong", "Not as the wire format says",
	expert.group.MALFORMED, expert.severity.ERROR)
local e_search = ProtoExpert.new("weft.expert.parts", "Frame in parts: the path's MTU is smaller",
	expert.group.SEQUENCE, expert.severity.WARN)
local e_moved = ProtoExpert.new("weft.expert.challenge", "The peer may have another MAC",
	expert.group.SEQUENCE, expert.severity.WARN)
weft.experts = { e_again, e_twice, e_reset, e_wrong, e_search, e_moved }

-- ---- what was seen before: frames of each connection, pieces of each message --------------------

local seen, pieces, facts, streams, num_streams

function weft.init()
	seen, pieces, facts, streams, num_streams = {}, {}, {}, {}, 0
end

-- The number of the connection, the same both ways; nil: the frame does not name both ends.
local function stream_of(buf, pinfo, kind)
	if kind == HELLO or kind == RESET then
		return nil
	end
	local from = tostring(pinfo.src) .. " " .. buf(24, 2):le_uint()
	local to = tostring(pinfo.dst) .. " " .. buf(8, 2):le_uint()
	local name = from < to and from .. " " .. to or to .. " " .. from
	if not streams[name] then
		streams[name] = num_streams
		num_streams = num_streams + 1
	end
	return streams[name]
end

-- Where a frame was seen: captures of both ends in one file have each frame twice.
local interface_id = Field.new("frame.interface_id")
local direction = Field.new("frame.packet_flags_direction")

local function place()
	local i, d = interface_id(), direction()
	return (i and tostring(i.value) or "") .. "/" .. (d and tostring(d.value) or "")
end

-- On the first pass over a DATA frame: is it one that was there before?
local function learn(number, buf, conn)
	local seq, order = buf(16, 4):le_uint(), buf(28, 4):le_uint()
	local path = buf(26, 1):uint()
	local of = seen[conn] or {}
	seen[conn] = of
	local before, fact = of[seq], facts[number] or {}
	facts[number] = fact
	if not before then
		of[seq] = { number = number, order = order, path = path }
	elseif before.order == order and before.path == path then
		fact.twice = before.number
	else
		fact.again = before.number
		before.order, before.path = order, path
	end
	return fact
end

-- Pieces of one message over all lanes, by what each piece says of it.
local function learn_piece(number, fact, name)
	local p = pieces[name]
	fact.pieces = fact.pieces or {}
	if fact.pieces[name] then
		return
	end
	if not p then
		p = { first = number, last = number, count = 0 }
		pieces[name] = p
	end
	p.count = p.count + 1
	fact.pieces[name] = { first = p.first, before = p.last, nth = p.count }
	p.last = number
end

-- ---- dissection ---------------------------------------------------------------------------------

local function add_fields(tree, s, buf)
	for _, f in ipairs(s.list) do
		if f.field and f.at + f.size <= buf:len() then
			if f.kind == "mac" then
				tree:add(f.field, buf(f.at, f.size))
			else
				tree:add_le(f.field, buf(f.at, f.size))
			end
		end
	end
end

local rest_of

local function add_item(tree, s, buf, text)
	local item = tree:add(weft, buf, text or s.name)
	add_fields(item, s, buf)
	if buf:len() >= s.size then
		rest_of(item, s, buf)
	end
	return item
end

local function part(buf, from, len)
	len = math.min(len or buf:len(), buf:len() - from)
	return buf(from, len):tvb()
end

-- Records: false when they do not fill what there is.
local function add_records(tree, known, buf)
	local at = 0
	while buf:len() - at >= 4 do
		local kind, len = buf(at, 2):le_uint(), buf(at + 2, 2):le_uint()
		local s = known[kind] or unknown
		if len > buf:len() - at - 4 then
			return false
		end
		if len < s.size then
			s = unknown
		end
		if len > 0 then
			add_item(tree, s, part(buf, at + 4, len))
		else
			tree:add(weft, buf(at, 4), s.name)
		end
		at = at + 4 + len
	end
	return at == buf:len()
end

local function add_address(tree, buf)
	local len, ifaces = buf(32, 1):uint(), buf(33, 1):uint()
	local at = 52
	if len > 0 and at + len <= buf:len() then
		tree:add(f_name, buf(at, len))
	else
		tree:add(f_name, ""):set_generated()
	end
	at = at + len
	while ifaces > 0 and buf:len() - at >= iface.size do
		local name, addr = buf(at + 1, 1):uint(), buf(at + 2, 1):uint()
		local all = iface.size + name + addr
		if all > buf:len() - at then
			return
		end
		local one = part(buf, at, all)
		local item = tree:add(weft, one, "iface")
		add_fields(item, iface, one)
		item:add(f_driver, one(iface.size, name))
		if addr == 32 and one(iface.size, name):string() == "dpdk" then
			add_fields(item, raw_iface, part(one, iface.size + name))
		end
		at, ifaces = at + all, ifaces - 1
	end
end

local function add_bytes(tree, s, len)
	tree:add(fields["weft." .. s.name .. ".bytes"], len):set_generated()
end

function rest_of(tree, s, buf)
	local left, good = buf:len() - s.size, true
	if s.rest == "bytes" then
		add_bytes(tree, s, left)
	elseif s.rest == "text" then
		tree:add(f_text, buf())
	elseif s.rest == "address" then
		add_address(tree, buf)
	elseif s.rest == "wireup" and buf(44, 2):le_uint() ~= left then
		add_bytes(tree, s, left) -- a piece
	elseif left == 0 then
		return
	elseif s.rest == "message" then
		local id = buf(0, 1):uint()
		local inner = id == put and put_note or messages[id]
		if inner and inner.rest ~= "message" and left >= inner.size then
			add_item(tree, inner, part(buf, s.size))
		end
	elseif s.rest == "items" then
		for at = s.size, buf:len() - s.item.size, s.item.size do
			add_item(tree, s.item, part(buf, at, s.item.size))
		end
	elseif s.rest == "records" then
		good = add_records(tree, msg_records, part(buf, s.size))
	elseif s.rest == "wireup" then
		good = add_records(tree, wireup_records, part(buf, s.size))
	elseif s.rest == "am_records" then
		local user = buf(6, 2):le_uint()
		if user < left then
			good = add_records(tree, msg_records, part(buf, s.size + user))
		end
	end
	if not good then
		tree:add_proto_expert_info(e_wrong, "Records that do not fill their message")
	end
end

-- What tells the pieces of one message, or nil.
local function message_name(id, buf, conn)
	if (id == 4 or id == 5) and buf:len() >= 20 then
		return "tag " .. buf(0, 20):bytes():tohex()
	elseif id == 8 and buf:len() >= 8 then
		return "rreq " .. conn .. buf(0, 8):bytes():tohex()
	elseif id == 18 and buf:len() >= 16 then
		return "am " .. buf(0, 16):bytes():tohex()
	end
end

local function add_links(item, fact, name)
	local p = fact.pieces and fact.pieces[name]
	if not p then
		return
	end
	item:add(f_first, p.first):set_generated()
	item:add(f_nth, p.nth):set_generated()
	if p.nth > 1 then
		item:add(f_before, p.before):set_generated()
	end
end

-- One message: returns what it is called.
local function add_message(tree, id, len, data, pinfo, fact, conn)
	local s = messages[id] or unknown
	local item = add_item(tree, data:len() < s.size and len < s.size and unknown or s,
		data, (s == unknown and "message " .. id or s.name:upper()))
	if s == unknown then
		item:add_proto_expert_info(e_wrong, "Message id " .. id)
	end
	local name = message_name(id, data, conn)
	if name and not pinfo.visited then
		learn_piece(pinfo.number, fact, name)
	end
	if name then
		add_links(item, fact, name)
	end
	return id == 1 and wireup_types[data(0, 1):uint()] or s.name:upper()
end

local function add_messages(tree, buf, pinfo, fact, conn)
	local at, names = 0, {}
	while buf:len() - at >= 4 do
		local len, id = buf(at, 2):le_uint(), buf(at + 2, 1):uint()
		local s = messages[id] or unknown
		at = at + 4
		if len > buf:len() - at then -- cut by the capture, or wrong
			if buf:len() == at then break end
		end
		if len == 0 or buf:len() == at then
			tree:add(weft, buf(at - 4, 4), s.name)
		else
			table.insert(names, add_message(tree, id, len, part(buf, at, len), pinfo,
				fact, conn))
		end
		at = at + len
		if at > buf:len() then break end
	end
	return table.concat(names, " ", 1, math.min(#names, 4)) .. (#names > 4 and " ..." or "")
end

-- A block that counts entries of @size bytes. Returns what is behind it, or nil.
local function add_block(tree, buf, at, size, most, each)
	if buf:len() < at + 4 then
		return nil
	end
	local n = buf(at, 2):le_uint()
	if n == 0 or n > most or buf(at + 2, 2):le_uint() ~= 0 or at + 4 + n * size > buf:len() then
		return nil
	end
	for i = 0, n - 1 do
		each(buf(at + 4 + i * size, size))
	end
	return at + 4 + n * size
end

local function add_blocks(tree, buf, flags)
	local at = HEADER
	if bit32.band(flags, SACK) ~= 0 then
		at = add_block(tree, buf, at, 8, 64, function(r)
			tree:add_le(f_word, r)
		end)
	end
	if at and bit32.band(flags, ECN) ~= 0 then
		at = add_block(tree, buf, at, 4, 16, function(r)
			add_item(tree, ecn_entry, r:tvb())
		end)
	end
	return at
end

local function add_flags(tree, buf, flags)
	local names = {}
	for _, f in ipairs(flag_fields) do
		tree:add_le(f[1], buf(4, 2))
		if bit32.band(flags, f[2]) ~= 0 then
			table.insert(names, f[3])
		end
	end
	return table.concat(names, " ")
end

local function add_fact(tree, fact)
	if fact.again then
		tree:add(f_again, fact.again):set_generated()
		tree:add_proto_expert_info(e_again)
	elseif fact.twice then
		tree:add(f_twice, fact.twice):set_generated()
		tree:add_proto_expert_info(e_twice)
	end
end

local function warn(tree, kind)
	if kind == RESET then
		tree:add_proto_expert_info(e_reset)
	elseif kind == 13 then
		tree:add_proto_expert_info(e_moved)
	elseif kind == 15 then
		tree:add_proto_expert_info(e_search)
	end
end

local function add_frame(tree, buf, pinfo, kind, flags)
	local conn = buf(8, 8):bytes():tohex()
	local fact = facts[pinfo.number] or {}
	if kind == DATA and not pinfo.visited then
		fact = learn(pinfo.number, buf, conn .. place())
	end
	local names = add_flags(tree, buf, flags)
	local at = add_blocks(tree, buf, flags)
	local length = math.min(buf(6, 2):le_uint(), buf:len())
	local text = types[kind]
	if not at then
		tree:add_proto_expert_info(e_wrong, "SACK or ECN block")
		return text
	end
	local body = length > at and part(buf, at, length - at)
	if kind == DATA and body then
		text = text .. " " .. add_messages(tree, body, pinfo, fact, conn)
	elseif bodies[kind] and body then
		add_item(tree, bodies[kind], body)
	end
	if bit32.band(flags, CRC32C) ~= 0 and buf:len() >= length + 4 then
		tree:add_le(f_crc, buf(length, 4))
	end
	add_fact(tree, fact)
	warn(tree, kind)
	return text .. (names ~= "" and " [" .. names .. "]" or "") ..
		(fact.again and " (again)" or fact.twice and " (duplicate)" or "")
end

function weft.dissector(buf, pinfo, root)
	if buf:len() < HEADER or buf(0, 2):le_uint() ~= MAGIC then
		return 0
	end
	local kind, flags = buf(3, 1):uint(), buf(4, 2):le_uint()
	local tree = root:add(weft, buf())
	pinfo.cols.protocol = "Weft"
	add_fields(tree, header, buf)
	if (buf(2, 1):uint() ~= VERSION and kind ~= RESET) or not types[kind] then
		tree:add_proto_expert_info(e_wrong, "Version or type")
		return buf:len()
	end
	local stream = stream_of(buf, pinfo, kind)
	if stream then
		tree:add(f_stream, stream):set_generated()
	end
	local text = add_frame(tree, buf, pinfo, kind, flags)
	pinfo.cols.info = string.format("%s conn %d > %d seq %08x ack %08x path %d", text,
		buf(24, 2):le_uint(), buf(8, 2):le_uint(), buf(16, 4):le_uint(), buf(20, 4):le_uint(),
		buf(26, 1):uint())
	tree:append_text(", " .. text)
	return buf:len()
end

-- ---- message records: packets of LINKTYPE_USER15 -------------------------------------------------

local weft_record = Proto("weft_record", "Weft message record")

-- The number of the lane, the same both ways.
local function record_stream(buf)
	local from, to = tostring(buf(16, 8):le_uint64()), tostring(buf(24, 8):le_uint64())
	local name = (from < to and from .. to or to .. from) .. " " .. buf(12, 4):le_uint() .. " " ..
		buf(5, 1):uint()
	if not streams[name] then
		streams[name] = num_streams
		num_streams = num_streams + 1
	end
	return streams[name]
end

local function add_record(tree, buf, pinfo)
	local kind, id, length = buf(3, 1):uint(), buf(4, 1):uint(), buf(8, 4):le_uint()
	local fact = facts[pinfo.number] or {}
	facts[pinfo.number] = fact
	if buf:len() == record.size then
		return record_kinds[kind] or "?" -- cut by the capture
	end
	local body = part(buf, record.size)
	local good = buf:reported_len() == record.size + (kind == 1 and length or native.size)
	if not record_kinds[kind] or not good then
		tree:add_proto_expert_info(e_wrong, "Kind or length of a record")
		return "record"
	end
	if kind == 1 then
		-- Both ends' records of a lane in one file are told apart by their interfaces.
		return add_message(tree, id, length, body, pinfo, fact,
			tostring(record_stream(buf)) .. place())
	end
	add_item(tree, native, body)
	return record_kinds[kind] .. (buf(6, 2):le_uint() % 2 == 1 and " done" or "")
end

function weft_record.dissector(buf, pinfo, root)
	local tree = root:add(weft, buf(), "Weft message record")
	pinfo.cols.protocol = "Weft"
	if buf:len() < record.size or buf(0, 2):le_uint() ~= 0x7257 or buf(2, 1):uint() ~= 1 then
		tree:add_proto_expert_info(e_wrong, "No message record")
		return buf:len()
	end
	local item = tree:add(weft, buf(0, record.size), "record")
	add_fields(item, record, buf)
	pinfo.cols.src = string.format("%s", buf(16, 8):le_uint64():tohex())
	pinfo.cols.dst = string.format("%s", buf(24, 8):le_uint64():tohex())
	tree:add(f_stream, record_stream(buf)):set_generated()
	local text = add_record(tree, buf, pinfo)
	pinfo.cols.info = string.format("%s %d bytes, lane %d", text, buf(8, 4):le_uint(),
		buf(5, 1):uint())
	tree:append_text(", " .. text)
	return buf:len()
end

DissectorTable.get("wtap_encap"):add(wtap.USER15, weft_record)

-- ---- messages of RoCE lanes, in captures of the network device: Wireshark dissects the rest ------

local ib_opcode = Field.new("infiniband.bth.opcode")
local ib_immediate = Field.new("infiniband.immdt")
local SEND_ONLY_IMM = 5

local function of_roce(buf, pinfo, root)
	local opcode, immediate = ib_opcode(), ib_immediate()
	if not opcode or not immediate or opcode.value ~= SEND_ONLY_IMM or buf:len() == 0 then
		return false
	end
	local head = immediate.range:uint()
	local id = bit32.band(bit32.rshift(head, 25), 31)
	local s = messages[id]
	-- Another program's: a control message has no payload, ours begin with their fields.
	if bit32.btest(head, 0x80000000) or not s or buf:len() < s.size then
		return false
	end
	local tree = root:add(weft, buf(), "Weft, a RoCE lane")
	local fact = facts[pinfo.number] or {}
	facts[pinfo.number] = fact
	pinfo.cols.protocol = "Weft"
	local text = add_message(tree, id, buf:len(), buf, pinfo, fact, "roce")
	pinfo.cols.info = string.format("RoCE %s %d bytes", text, buf:len())
	tree:append_text(", " .. text)
	return true
end

weft:register_heuristic("infiniband.payload", of_roce)

local function heuristic(buf, pinfo, root)
	if buf:len() < HEADER or buf(0, 2):le_uint() ~= MAGIC then
		return false
	end
	weft.dissector(buf, pinfo, root)
	return true
end

weft:register_heuristic("udp", heuristic)
DissectorTable.get("udp.port"):add(9338, weft)
DissectorTable.get("ethertype"):add(0x88b5, weft)
