/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <stddef.h>

#include "msg.h"

/* A piece: at least one byte, inside the message, whose length a size_t can hold. */
static int check_frag(const struct weft_wire_frag *f, size_t payload)
{
	uint64_t total = weft_get64(f->total), offset = weft_get64(f->offset);

	if (payload == 0 || total > PTRDIFF_MAX)
		return -EBADMSG;
	if (offset > total || payload > total - offset)
		return -EBADMSG;
	return 0;
}

static int check_rtr(const struct weft_wire_rtr *rtr)
{
	uint64_t offset = weft_get64(rtr->offset), length = weft_get64(rtr->length);

	return length == 0 || length > PTRDIFF_MAX || offset > PTRDIFF_MAX - length ? -EBADMSG : 0;
}

static int check_data(const struct weft_wire_data *hdr, size_t payload)
{
	uint64_t offset = weft_get64(hdr->offset);

	return payload == 0 || offset > PTRDIFF_MAX || payload > PTRDIFF_MAX - offset ? -EBADMSG
										      : 0;
}

/* What later minors may append: records, skipped unless marked as indispensable. */
static int check_records(const uint8_t *p, size_t left)
{
	while (left) {
		const struct record {
			weft_le16 type, length;
		} __attribute__((packed)) *r = (const void *)p;
		size_t size;

		if (left < sizeof(*r) || (weft_get16(r->type) & 0x8000))
			return -EBADMSG;
		size = sizeof(*r) + weft_get16(r->length);
		if (size > left)
			return -EBADMSG;
		p += size;
		left -= size;
	}
	return 0;
}

static int check_control(uint8_t id, const void *data, size_t size, size_t length)
{
	uint32_t status = 0;

	if (length < size)
		return -EBADMSG;
	if (id == WEFT_WIRE_RTS &&
	    weft_get64(((const struct weft_wire_rts *)data)->total) > PTRDIFF_MAX)
		return -EBADMSG;
	if (id == WEFT_WIRE_RTR && check_rtr(data))
		return -EBADMSG;
	if (id == WEFT_WIRE_ATS || id == WEFT_WIRE_SYNC_ACK)
		status = weft_get32(((const struct weft_wire_ats *)data)->status);
	if (id == WEFT_WIRE_ABORT) {
		const struct weft_wire_abort *a = data;

		status = weft_get32(a->status);
		if (status == 0 || weft_get64(a->total) > PTRDIFF_MAX)
			return -EBADMSG;
	}
	if (status >= 4096)
		return -EBADMSG;
	return length == size ? 0 : check_records((const uint8_t *)data + size, length - size);
}

int weft_wire_check(uint8_t id, const void *data, size_t length)
{
	switch (id) {
	case WEFT_WIRE_EAGER:
		return length < sizeof(struct weft_wire_eager) ? -EBADMSG : 0;
	case WEFT_WIRE_EAGER_SYNC:
		return length < sizeof(struct weft_wire_eager_sync) ? -EBADMSG : 0;
	case WEFT_WIRE_FRAG:
		if (length < sizeof(struct weft_wire_frag))
			return -EBADMSG;
		return check_frag(data, length - sizeof(struct weft_wire_frag));
	case WEFT_WIRE_FRAG_SYNC:
		if (length < sizeof(struct weft_wire_frag_sync))
			return -EBADMSG;
		return check_frag(data, length - sizeof(struct weft_wire_frag_sync));
	case WEFT_WIRE_RTS:
		return check_control(id, data, sizeof(struct weft_wire_rts), length);
	case WEFT_WIRE_RTR:
		return check_control(id, data, sizeof(struct weft_wire_rtr), length);
	case WEFT_WIRE_DATA:
		if (length < sizeof(struct weft_wire_data))
			return -EBADMSG;
		return check_data(data, length - sizeof(struct weft_wire_data));
	case WEFT_WIRE_ATS:
	case WEFT_WIRE_SYNC_ACK:
		return check_control(id, data, sizeof(struct weft_wire_ats), length);
	case WEFT_WIRE_CREDIT:
		return check_control(id, data, sizeof(struct weft_wire_credit), length);
	case WEFT_WIRE_ABORT:
		return check_control(id, data, sizeof(struct weft_wire_abort), length);
	default:
		return -EBADMSG;
	}
}
