/* SPDX-License-Identifier: BSD-3-Clause */

#include "mock/mock_priv.h"

/* ------------------------------------------------------------------ remote memory */

static bool allowed(const struct weft_mem_lane *m, unsigned int access)
{
	bool yes = (m->access & access) == access;

	mock_net.denied += !yes;
	return yes;
}

/* Done at once at the target; the initiator learns of it at its next progress. */
static int native(struct weft_lane_ep *base, size_t len, uint64_t offset, uint64_t key,
		  struct weft_lane_comp *comp, uint8_t **at)
{
	struct mock_lane_ep *lane_ep = to_lane_ep(base);
	int rc = mock_check_send(lane_ep, len, SIZE_MAX);
	struct weft_mem_lane *m;

	if (rc == 0)
		rc = mock_net.rma_refuse;
	if (rc < 0)
		return rc;
	mock_net.native++;
	mock_net.last_atomic = base->iface;
	*at = NULL;
	if (mock_net.lose) {
		mock_net.lose--;
		mock_comp_due(lane_ep, comp, mock_net.lose_status);
		return 0;
	}
	LIST_FOREACH(m, &mock_net.mems, entry) {
		if (m->key == key && offset <= m->len && len <= m->len - offset &&
		    allowed(m, WEFT_LANE_ACCESS_REMOTE_ATOMIC))
			break;
	}
	mock_comp_due(lane_ep, comp, m ? 0 : -EKEYREJECTED);
	*at = m != NULL ? m->addr + offset : NULL;
	return 0;
}

static int rma(struct weft_lane_ep *base, const struct iovec *iov, unsigned int iovcnt,
	       struct weft_mem_lane *mem, uint64_t offset, uint64_t key, bool write,
	       struct weft_lane_comp *comp)
{
	struct mock_lane_ep *lane_ep = to_lane_ep(base);
	struct mock_iface *f = iface_of(lane_ep);
	unsigned int n = 0, i;
	struct mock_rma *r;
	size_t len = 0;
	int rc;

	assert_in_range(iovcnt, 1, base->iface->attr.max_rma_iov);
	assert_true(mem || (!write && base->iface->attr.features & WEFT_LANE_F_GET_ANY));
	for (i = 0; i < iovcnt; i++) {
		assert_true(!mem ||
			    ((uint8_t *)iov[i].iov_base >= mem->addr &&
			     (uint8_t *)iov[i].iov_base + iov[i].iov_len <= mem->addr + mem->len));
		assert_true(iov[i].iov_len > 0);
		len += iov[i].iov_len;
	}
	assert_true(write || !mem || (mem->access & WEFT_LANE_ACCESS_LOCAL_WRITE));
	rc = mock_check_send(lane_ep, len,
			     write ? base->iface->attr.max_put : base->iface->attr.max_get);
	if (rc == 0 && mock_net.rma_refuse)
		rc = mock_net.rma_refuse;
	TAILQ_FOREACH(r, &f->rmas, entry)
		n += r->lane_ep == lane_ep;
	if (rc == 0 && n >= (mock_net.rma_window ? mock_net.rma_window : 16))
		rc = -EAGAIN;
	if (rc)
		return rc;
	r = malloc(sizeof(*r));
	assert_non_null(r);
	*r = (struct mock_rma){.lane_ep = lane_ep, .iovcnt = iovcnt, .offset = offset, .key = key};
	memcpy(r->iov, iov, iovcnt * sizeof(*iov));
	r->len = len;
	r->write = write;
	r->comp = comp;
	r->due = mock_due(f, write ? MOCK_WRITE : MOCK_READ, len);
	f->tx++;
	mock_net.native++;
	TAILQ_INSERT_TAIL(&f->rmas, r, entry);
	return 0;
}

int mock_get_zcopy(struct weft_lane_ep *lane_ep, const struct iovec *iov, unsigned int iovcnt,
		   struct weft_mem_lane *mem, uint64_t remote_offset, uint64_t key,
		   struct weft_lane_comp *comp)
{
	if (lane_ep->lacks & WEFT_LANE_F_GET)
		return -EAGAIN; /* for ever, as a queue pair without read resources */
	return rma(lane_ep, iov, iovcnt, mem, remote_offset, key, false, comp);
}

int mock_put_zcopy(struct weft_lane_ep *lane_ep, const struct iovec *iov, unsigned int iovcnt,
		   struct weft_mem_lane *mem, uint64_t remote_offset, uint64_t key,
		   struct weft_lane_comp *comp)
{
	return rma(lane_ep, iov, iovcnt, mem, remote_offset, key, true, comp);
}

/* A key that is gone, or bytes outside: as the hardware would say. */
static int rma_do(const struct mock_rma *r)
{
	struct weft_mem_lane *m;
	unsigned int i;
	uint8_t *at;

	if (!r->lane_ep->base.up || r->lane_ep->down_due || !r->lane_ep->peer)
		return -ECONNRESET;
	if (mock_net.rma_fail)
		return mock_net.rma_fail;
	if (mock_net.lose) {
		mock_net.lose--;
		return mock_net.lose_status;
	}
	LIST_FOREACH(m, &mock_net.mems, entry)
		if (m->key == r->key)
			break;
	if (!m || r->offset > m->len || r->len > m->len - r->offset)
		return -EKEYREJECTED;
	if (!allowed(m, r->write ? WEFT_LANE_ACCESS_REMOTE_WRITE : WEFT_LANE_ACCESS_REMOTE_READ))
		return -EACCES;
	at = m->addr + r->offset;
	for (i = 0; i < r->iovcnt; at += r->iov[i++].iov_len) {
		if (r->write)
			memcpy(at, r->iov[i].iov_base, r->iov[i].iov_len);
		else
			memcpy(r->iov[i].iov_base, at, r->iov[i].iov_len);
	}
	return 0;
}

void mock_run_rmas(struct mock_iface *f)
{
	struct mock_rma *r;

	while (!f->held && !mock_net.held && !f->muted && (r = TAILQ_FIRST(&f->rmas)) != NULL &&
	       r->due <= mock_now) {
		TAILQ_REMOVE(&f->rmas, r, entry);
		mock_comp_due(r->lane_ep, r->comp, rma_do(r));
		free(r);
	}
}

void mock_cancel_rmas(struct mock_iface *f, struct mock_lane_ep *lane_ep)
{
	struct mock_rma *r, *next;

	for (r = TAILQ_FIRST(&f->rmas); r; r = next) {
		next = TAILQ_NEXT(r, entry);
		if (r->lane_ep != lane_ep)
			continue;
		TAILQ_REMOVE(&f->rmas, r, entry);
		mock_comp_due(lane_ep, r->comp, -ECANCELED);
		free(r);
	}
}

int mock_amo64(struct weft_lane_ep *lane_ep, enum weft_lane_amo op, uint64_t operand,
	       uint64_t compare, uint64_t *result, uint64_t offset, uint64_t key,
	       struct weft_lane_comp *comp)
{
	uint8_t *at = NULL;
	int rc = native(lane_ep, 8, offset, key, comp, &at);
	uint64_t word;

	assert_int_equal(offset % 8, 0);
	if (rc < 0 || !at)
		return rc;
	memcpy(&word, at, 8);
	*result = word;
	if (op == WEFT_LANE_AMO_ADD)
		word += operand;
	else if (word == compare)
		word = operand;
	memcpy(at, &word, 8);
	return 0;
}

/* ------------------------------------------------------------------ registrations */

/* Not the pages that a test has said are for reading. */
static bool writable(const uint8_t *addr)
{
	return addr < mock_net.read_only || addr >= mock_net.read_only + mock_net.read_only_len;
}

int mock_mem_register(struct weft_lane_iface *iface, void *addr, size_t len, unsigned int access,
		      struct weft_mem_lane **mem, char *why, size_t why_len)
{
	(void)iface;
	mock_net.num_registers++;
	if (mock_net.register_fail) {
		snprintf(why, why_len, "the mock was told to refuse: tell it not to");
		return mock_net.register_fail;
	}
	if ((access & (WEFT_LANE_ACCESS_LOCAL_WRITE | WEFT_LANE_ACCESS_REMOTE_WRITE |
		       WEFT_LANE_ACCESS_REMOTE_ATOMIC)) &&
	    !writable(addr))
		return -EFAULT;
	*mem = malloc(sizeof(**mem));
	assert_non_null(*mem);
	**mem = (struct weft_mem_lane){
		.addr = addr, .len = len, .key = ++mock_net.next_key, .access = access};
	LIST_INSERT_HEAD(&mock_net.mems, *mem, entry);
	mock_net.num_mems++;
	return 0;
}

uint64_t mock_mem_key(struct weft_lane_iface *iface, struct weft_mem_lane *mem)
{
	(void)iface;
	return mem->key;
}

void mock_mem_deregister(struct weft_lane_iface *iface, struct weft_mem_lane *mem)
{
	(void)iface;
	LIST_REMOVE(mem, entry);
	free(mem);
	mock_net.num_mems--;
}

/* ------------------------------------------------------------------ control */

void mock_set_rma_window(unsigned int n)
{
	mock_net.rma_window = n;
}

void mock_fail_rma(int refuse, int status)
{
	mock_net.rma_refuse = refuse;
	mock_net.rma_fail = status;
}

void mock_fail_register(int status)
{
	mock_net.register_fail = status;
}

void mock_lose_native(unsigned int n, int status)
{
	mock_net.lose = n;
	mock_net.lose_status = status;
}

unsigned int mock_num_native(void)
{
	return mock_net.native;
}

const struct weft_lane_iface *mock_last_atomic(void)
{
	return mock_net.last_atomic;
}

void mock_set_read_only(const void *addr, size_t len)
{
	mock_net.read_only = addr;
	mock_net.read_only_len = len;
}

unsigned int mock_num_registers(void)
{
	return mock_net.num_registers;
}

unsigned int mock_num_denied(void)
{
	return mock_net.denied;
}

unsigned int mock_mem_remote_rights(void)
{
	struct weft_mem_lane *m;
	unsigned int access = 0;

	LIST_FOREACH(m, &mock_net.mems, entry)
		access |= m->access & WEFT_LANE_ACCESS_REMOTE;
	return access;
}

unsigned int mock_num_mems(void)
{
	return mock_net.num_mems;
}
