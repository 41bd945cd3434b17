/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomics. Operands, compares and results may each be in pieces of different lengths. A range that
 * is contiguous in all of them is one weft_atomic(), a part. The operation ends with the last part.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "provider/info.h"
#include "provider/message.h"
#include "provider/op.h"
#include "provider/process.h"
#include "provider/rma.h"

/* The maximum bytes of one call's operands; weft_atomic() has no maximum. */
#define SIZE_LIMIT (1u << 20)

#define FLAGS (WFI_TX_OP_FLAGS | FI_FENCE | FI_MORE)

/* ------------------------------------------------------------------ supported operations */

enum form { BASE = 1, FETCH = 2, COMPARE = 4 };

static const struct {
	unsigned int forms; /* bits of the calls that support it */
	bool bits;          /* the operation is for integers only */
	enum weft_atomic_op op;
} ops[] = {
	[FI_MIN] = {BASE | FETCH, false, WEFT_ATOMIC_MIN},
	[FI_MAX] = {BASE | FETCH, false, WEFT_ATOMIC_MAX},
	[FI_SUM] = {BASE | FETCH, false, WEFT_ATOMIC_ADD},
	[FI_PROD] = {BASE | FETCH, false, WEFT_ATOMIC_PROD},
	[FI_LOR] = {BASE | FETCH, false, WEFT_ATOMIC_LOR},
	[FI_LAND] = {BASE | FETCH, false, WEFT_ATOMIC_LAND},
	[FI_BOR] = {BASE | FETCH, true, WEFT_ATOMIC_OR},
	[FI_BAND] = {BASE | FETCH, true, WEFT_ATOMIC_AND},
	[FI_LXOR] = {BASE | FETCH, false, WEFT_ATOMIC_LXOR},
	[FI_BXOR] = {BASE | FETCH, true, WEFT_ATOMIC_XOR},
	[FI_ATOMIC_READ] = {FETCH, false, WEFT_ATOMIC_READ},
	[FI_ATOMIC_WRITE] = {BASE | FETCH, false, WEFT_ATOMIC_SWAP},
	[FI_CSWAP] = {COMPARE, false, WEFT_ATOMIC_CSWAP},
	[FI_CSWAP_NE] = {COMPARE, false, WEFT_ATOMIC_CSWAP_NE},
	[FI_CSWAP_LE] = {COMPARE, false, WEFT_ATOMIC_CSWAP_LE},
	[FI_CSWAP_LT] = {COMPARE, false, WEFT_ATOMIC_CSWAP_LT},
	[FI_CSWAP_GE] = {COMPARE, false, WEFT_ATOMIC_CSWAP_GE},
	[FI_CSWAP_GT] = {COMPARE, false, WEFT_ATOMIC_CSWAP_GT},
	[FI_MSWAP] = {COMPARE, true, WEFT_ATOMIC_MSWAP},
};

/* Complex numbers, long double and 128 bits are not supported. */
static const struct {
	enum weft_atomic_type type;
	size_t width;
	bool floating;
} types[] = {
	[FI_INT8] = {WEFT_ATOMIC_INT8, 1, false},   [FI_UINT8] = {WEFT_ATOMIC_UINT8, 1, false},
	[FI_INT16] = {WEFT_ATOMIC_INT16, 2, false}, [FI_UINT16] = {WEFT_ATOMIC_UINT16, 2, false},
	[FI_INT32] = {WEFT_ATOMIC_INT32, 4, false}, [FI_UINT32] = {WEFT_ATOMIC_UINT32, 4, false},
	[FI_INT64] = {WEFT_ATOMIC_INT64, 8, false}, [FI_UINT64] = {WEFT_ATOMIC_UINT64, 8, false},
	[FI_FLOAT] = {WEFT_ATOMIC_FLOAT, 4, true},  [FI_DOUBLE] = {WEFT_ATOMIC_DOUBLE, 8, true},
};

#define OPS (sizeof(ops) / sizeof(ops[0]))
#define TYPES (sizeof(types) / sizeof(types[0]))

static bool is_there(enum form form, enum fi_datatype datatype, enum fi_op op)
{
	return (unsigned int)op < OPS && (unsigned int)datatype < TYPES && ops[op].forms & form &&
	       !(ops[op].bits && types[datatype].floating);
}

static int valid(enum form form, struct fid_ep *fid, enum fi_datatype datatype, enum fi_op op,
		 size_t *count)
{
	if (!(wfi_ep_of(fid)->caps & FI_ATOMIC) || !is_there(form, datatype, op))
		return -FI_EOPNOTSUPP;
	if (count)
		*count = SIZE_LIMIT / types[datatype].width;
	return 0;
}

static int base_valid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op, size_t *count)
{
	return valid(BASE, ep, datatype, op, count);
}

static int fetch_valid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op, size_t *count)
{
	return valid(FETCH, ep, datatype, op, count);
}

static int compare_valid(struct fid_ep *ep, enum fi_datatype datatype, enum fi_op op, size_t *count)
{
	return valid(COMPARE, ep, datatype, op, count);
}

int wfi_query_atomic(struct fid_domain *domain, enum fi_datatype datatype, enum fi_op op,
		     struct fi_atomic_attr *attr, uint64_t flags)
{
	enum form form = flags & FI_COMPARE_ATOMIC ? COMPARE
			 : flags & FI_FETCH_ATOMIC ? FETCH
						   : BASE;

	if (flags & ~(FI_COMPARE_ATOMIC | FI_FETCH_ATOMIC) ||
	    flags == (FI_COMPARE_ATOMIC | FI_FETCH_ATOMIC))
		return -FI_EBADFLAGS;
	if (!is_there(form, datatype, op))
		return -FI_EOPNOTSUPP;
	attr->count = SIZE_LIMIT / types[datatype].width;
	attr->size = types[datatype].width;
	return 0;
}

/* ------------------------------------------------------------------ posting */

struct post {
	struct wfi_post call; /* kind, iov and count are not used */
	enum form form;
	const struct fi_ioc *iov, *comparev;
	const struct fi_ioc *resultv;
	size_t count, compare_count, result_count; /* pieces */
	enum fi_datatype datatype;
	enum fi_op op;
};

/* A position in an array of several pieces. */
struct cursor {
	const struct fi_ioc *ioc;
	size_t done; /* elements of the piece that are processed */
};

static size_t elements(const struct fi_ioc *ioc, size_t pieces)
{
	size_t n = 0;

	for (size_t i = 0; i < pieces && n <= SIZE_LIMIT; i++)
		n += ioc[i].count <= SIZE_LIMIT ? ioc[i].count : SIZE_LIMIT + 1;
	return n;
}

/* The number of contiguous elements at the cursor, at most @p n; empty pieces are skipped. */
static size_t contiguous(struct cursor *c, size_t n)
{
	while (c->done == c->ioc->count) {
		c->ioc++;
		c->done = 0;
	}
	return c->ioc->count - c->done < n ? c->ioc->count - c->done : n;
}

static void *take(struct cursor *c, size_t n, size_t width)
{
	void *at = (char *)c->ioc->addr + c->done * width;

	c->done += n;
	return at;
}

static void gather(char *at, const struct fi_ioc *ioc, size_t pieces, size_t width)
{
	for (size_t i = 0; i < pieces; i++) {
		memcpy(at, ioc[i].addr, ioc[i].count * width);
		at += ioc[i].count * width;
	}
}

/*
 * FI_INJECT: copy the operands and compares, since the application may change them when the call
 * has returned. @p p then refers to @p copies. @return 0, or -FI_EAGAIN: there is no memory
 */
static int inject(struct wfi_op *op, struct post *p, size_t n, struct fi_ioc copies[2])
{
	size_t width = types[p->datatype].width;
	char *room = (char *)op->iov;

	if (p->op == FI_ATOMIC_READ)
		return 0;
	if (n * width * 2 > sizeof(op->iov)) {
		room = op->copy = malloc(n * width * 2);
		if (!room)
			return -FI_EAGAIN;
	}
	gather(room, p->iov, p->count, width);
	copies[0] = (struct fi_ioc){.addr = room, .count = n};
	p->iov = &copies[0];
	if (p->form != COMPARE)
		return 0;
	gather(room + n * width, p->comparev, p->compare_count, width);
	copies[1] = (struct fi_ioc){.addr = room + n * width, .count = n};
	p->comparev = &copies[1];
	return 0;
}

static void part_ended(struct wfi_op *op, int status)
{
	if (status < 0 && op->status == 0)
		op->status = status;
	if (--op->parts > 0)
		return;
	free(op->copy);
	op->copy = NULL;
	if (op->counts != 0 && op->status >= 0)
		wfi_rma_executed(op);
	wfi_op_sent(op, op->status);
}

static void ended_cb(struct weft_request *req, const struct weft_completion *c, void *arg)
{
	part_ended(arg, c->status);
}

static uint32_t op_flags(const struct wfi_op *op, const struct post *p)
{
	uint32_t flags = 0;

	if (p->call.flags & FI_MORE)
		flags |= WEFT_OP_F_MORE;
	/* FETCH and COMPARE need no flag: their result comes when the target has executed them. */
	if (p->form == BASE &&
	    (p->call.flags & (FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE) || op->counts != 0))
		flags |= WEFT_OP_F_DELIVERED;
	return flags;
}

/*
 * Start the parts. If a part cannot be started, those after it are not started either.
 * @return 0; or the negative error of the first part. The completion reports errors of later parts
 */
static int start(struct wfi_op *op, const struct post *p, size_t total, struct weft_ep *ep,
		 struct weft_rkey *rkey)
{
	struct cursor operands = {p->iov, 0}, compares = {p->comparev, 0},
		      results = {p->resultv, 0};
	struct weft_op_params params = {.size = sizeof(params),
					.flags = op_flags(op, p) | wfi_op_polled(op),
					.cb = ended_cb,
					.cb_arg = op};
	struct weft_atomic_params a = WEFT_INIT(struct weft_atomic_params, .op = ops[p->op].op,
						.type = types[p->datatype].type);
	size_t width = types[p->datatype].width, n;
	int rc;

	op->parts = 1;
	for (size_t done = 0; done < total; done += n) {
		n = total - done;
		n = p->op != FI_ATOMIC_READ ? contiguous(&operands, n) : n;
		n = p->form == COMPARE ? contiguous(&compares, n) : n;
		n = p->form != BASE ? contiguous(&results, n) : n;
		a.count = n;
		a.operands = p->op != FI_ATOMIC_READ ? take(&operands, n, width) : NULL;
		a.compares = p->form == COMPARE ? take(&compares, n, width) : NULL;
		a.result = p->form != BASE ? take(&results, n, width) : NULL;
		op->parts++;
		rc = weft_atomic(ep, &a, rkey, p->call.offset + done * width, &params, NULL);
		if (rc < 0 && done == 0)
			return rc;
		if (rc != WEFT_INPROGRESS)
			part_ended(op, rc);
		if (rc < 0)
			break;
	}
	part_ended(op, 0);
	return 0;
}

/* With FI_RMA_EVENT: the counters that the target increments for this atomic, WFI_COUNT_*. */
static unsigned int counts(const struct post *p)
{
	if (p->op == FI_ATOMIC_READ)
		return WFI_COUNT_READ;
	return WFI_COUNT_REGION | (p->form == BASE ? WFI_COUNT_WRITE : WFI_COUNT_READ);
}

/* Locked. */
static int try(struct wfi_ep *ep, struct post *p, size_t total)
{
	const bool base = p->form == BASE;
	struct fi_ioc copies[2];
	struct weft_rkey *rkey;
	struct weft_ep *to;
	struct wfi_op *op;
	int rc;

	rc = wfi_rma_target(ep, p->call.addr, p->call.key, p->call.flags, &to, &rkey);
	if (rc < 0)
		return rc;
	op = wfi_post_op(ep, &ep->tx, &p->call, FI_ATOMIC | (base ? FI_WRITE : FI_READ),
			 base ? ep->writes : ep->reads);
	if (!op)
		return -FI_EAGAIN;
	op->copy = NULL;
	op->status = 0;
	op->counts = ep->events ? counts(p) : 0;
	op->target = p->call.addr;
	op->key = wfi_rma_key(ep, p->call.addr, p->call.key);
	rc = p->call.flags & FI_INJECT ? inject(op, p, total, copies) : 0;
	if (rc == 0)
		rc = start(op, p, total, to, rkey);
	if (rc < 0) {
		free(op->copy);
		op->copy = NULL;
		wfi_op_drop(op);
	}
	return wfi_post_result(rc);
}

/*
 * The number of elements; 0: there is none, the arrays differ in it, or one has more than
 * WFI_IOV_MAX pieces. From SIZE_LIMIT on the number is not exact.
 */
static size_t count_elements(const struct post *p)
{
	const bool results = p->form != BASE, operands = p->op != FI_ATOMIC_READ;
	size_t n;

	if (p->count > WFI_IOV_MAX || p->compare_count > WFI_IOV_MAX ||
	    p->result_count > WFI_IOV_MAX)
		return 0;
	n = operands ? elements(p->iov, p->count) : elements(p->resultv, p->result_count);
	if ((results && elements(p->resultv, p->result_count) != n) ||
	    (p->form == COMPARE && elements(p->comparev, p->compare_count) != n))
		return 0;
	return n;
}

static ssize_t post(struct fid_ep *fid, struct post *p)
{
	struct wfi_ep *ep = wfi_ep_of(fid);
	size_t total;
	int rc;

	if (!is_there(p->form, p->datatype, p->op))
		return -FI_EOPNOTSUPP;
	rc = wfi_post_check(ep, FI_ATOMIC);
	if (rc < 0)
		return rc;
	total = count_elements(p);
	if (total == 0 || total > SIZE_LIMIT / types[p->datatype].width ||
	    (p->call.flags & FI_INJECT && total * types[p->datatype].width > ep->inject_size))
		return -FI_EINVAL;
	wfi_lock();
	rc = try(ep, p, total);
	wfi_unlock();
	return rc;
}

/* ------------------------------------------------------------------ libfabric's calls */

static ssize_t message(struct fid_ep *fid, const struct fi_msg_atomic *msg, struct post *p,
		       uint64_t flags)
{
	if (flags & ~(uint64_t)FLAGS)
		return -FI_EBADFLAGS;
	if (msg->rma_iov_count != 1)
		return -FI_EINVAL;
	p->iov = msg->msg_iov;
	p->count = msg->iov_count;
	p->call.addr = msg->addr;
	p->call.offset = msg->rma_iov->addr;
	p->call.key = msg->rma_iov->key;
	p->datatype = msg->datatype;
	p->op = msg->op;
	p->call.context = msg->context;
	p->call.flags = flags;
	if (is_there(p->form, p->datatype, p->op) && msg->rma_iov->count != count_elements(p))
		return -FI_EINVAL;
	return post(fid, p);
}

static struct wfi_post call_of(struct fid_ep *fid, fi_addr_t to, uint64_t addr, uint64_t key,
			       void *context)
{
	struct wfi_post p = wfi_post_of(0, NULL, to, context, wfi_ep_of(fid)->tx.op_flags);

	p.offset = addr;
	p.key = key;
	return p;
}

static ssize_t base_v(struct fid_ep *fid, const struct fi_ioc *iov, void **desc, size_t count,
		      fi_addr_t to, uint64_t addr, uint64_t key, enum fi_datatype datatype,
		      enum fi_op op, void *context)
{
	struct post p = {
		.form = BASE,
		.iov = iov,
		.count = count,
		.call = call_of(fid, to, addr, key, context),
		.datatype = datatype,
		.op = op,
	};

	return post(fid, &p);
}

static ssize_t base(struct fid_ep *fid, const void *buf, size_t count, void *desc, fi_addr_t to,
		    uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op,
		    void *context)
{
	struct fi_ioc iov = {.addr = (void *)(uintptr_t)buf, .count = count};

	return base_v(fid, &iov, NULL, 1, to, addr, key, datatype, op, context);
}

static ssize_t base_msg(struct fid_ep *fid, const struct fi_msg_atomic *msg, uint64_t flags)
{
	struct post p = {.form = BASE};

	return message(fid, msg, &p, flags);
}

static ssize_t base_inject(struct fid_ep *fid, const void *buf, size_t count, fi_addr_t to,
			   uint64_t addr, uint64_t key, enum fi_datatype datatype, enum fi_op op)
{
	const struct wfi_ep *ep = wfi_ep_of(fid);
	struct fi_ioc iov = {.addr = (void *)(uintptr_t)buf, .count = count};
	struct post p = {
		.form = BASE,
		.iov = &iov,
		.count = 1,
		.call = {.addr = to,
			 .offset = addr,
			 .key = key,
			 .flags = wfi_inject_flags(ep, ep->writes),
			 .quiet = true},
		.datatype = datatype,
		.op = op,
	};

	return post(fid, &p);
}

static ssize_t fetch_v(struct fid_ep *fid, const struct fi_ioc *iov, void **desc, size_t count,
		       struct fi_ioc *resultv, void **result_desc, size_t result_count,
		       fi_addr_t to, uint64_t addr, uint64_t key, enum fi_datatype datatype,
		       enum fi_op op, void *context)
{
	struct post p = {
		.form = FETCH,
		.iov = iov,
		.count = count,
		.resultv = resultv,
		.result_count = result_count,
		.call = call_of(fid, to, addr, key, context),
		.datatype = datatype,
		.op = op,
	};

	return post(fid, &p);
}

static ssize_t fetch(struct fid_ep *fid, const void *buf, size_t count, void *desc, void *result,
		     void *result_desc, fi_addr_t to, uint64_t addr, uint64_t key,
		     enum fi_datatype datatype, enum fi_op op, void *context)
{
	struct fi_ioc iov = {.addr = (void *)(uintptr_t)buf, .count = count};
	struct fi_ioc results = {.addr = result, .count = count};

	return fetch_v(fid, &iov, NULL, 1, &results, NULL, 1, to, addr, key, datatype, op, context);
}

static ssize_t fetch_msg(struct fid_ep *fid, const struct fi_msg_atomic *msg,
			 struct fi_ioc *resultv, void **result_desc, size_t result_count,
			 uint64_t flags)
{
	struct post p = {.form = FETCH, .resultv = resultv, .result_count = result_count};

	return message(fid, msg, &p, flags);
}

static ssize_t compare_v(struct fid_ep *fid, const struct fi_ioc *iov, void **desc, size_t count,
			 const struct fi_ioc *comparev, void **compare_desc, size_t compare_count,
			 struct fi_ioc *resultv, void **result_desc, size_t result_count,
			 fi_addr_t to, uint64_t addr, uint64_t key, enum fi_datatype datatype,
			 enum fi_op op, void *context)
{
	struct post p = {
		.form = COMPARE,
		.iov = iov,
		.count = count,
		.comparev = comparev,
		.compare_count = compare_count,
		.resultv = resultv,
		.result_count = result_count,
		.call = call_of(fid, to, addr, key, context),
		.datatype = datatype,
		.op = op,
	};

	return post(fid, &p);
}

static ssize_t compare(struct fid_ep *fid, const void *buf, size_t count, void *desc,
		       const void *compares, void *compare_desc, void *result, void *result_desc,
		       fi_addr_t to, uint64_t addr, uint64_t key, enum fi_datatype datatype,
		       enum fi_op op, void *context)
{
	struct fi_ioc iov = {.addr = (void *)(uintptr_t)buf, .count = count};
	struct fi_ioc comparev = {.addr = (void *)(uintptr_t)compares, .count = count};
	struct fi_ioc results = {.addr = result, .count = count};

	return compare_v(fid, &iov, NULL, 1, &comparev, NULL, 1, &results, NULL, 1, to, addr, key,
			 datatype, op, context);
}

static ssize_t compare_msg(struct fid_ep *fid, const struct fi_msg_atomic *msg,
			   const struct fi_ioc *comparev, void **compare_desc, size_t compare_count,
			   struct fi_ioc *resultv, void **result_desc, size_t result_count,
			   uint64_t flags)
{
	struct post p = {
		.form = COMPARE,
		.comparev = comparev,
		.compare_count = compare_count,
		.resultv = resultv,
		.result_count = result_count,
	};

	return message(fid, msg, &p, flags);
}

struct fi_ops_atomic wfi_atomic_ops = {
	.size = sizeof(struct fi_ops_atomic),
	.write = base,
	.writev = base_v,
	.writemsg = base_msg,
	.inject = base_inject,
	.readwrite = fetch,
	.readwritev = fetch_v,
	.readwritemsg = fetch_msg,
	.compwrite = compare,
	.compwritev = compare_v,
	.compwritemsg = compare_msg,
	.writevalid = base_valid,
	.readwritevalid = fetch_valid,
	.compwritevalid = compare_valid,
};
