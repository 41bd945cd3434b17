/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Native reads: the kernel copies between the two processes, once, where it gives one access to the
 * other's memory. Where a peer's memory is says the peer's own table (shm/reg.h), so all that a
 * peer can do by lying is to give us its own wrong bytes.
 *
 * There are no native writes: one that was under way when the owner released the memory could end
 * after that, and nothing would tell the owner when.
 *
 * An operation is done by progress(), in slices, so that messages come through in between.
 */

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "shm/shm.h"

#define SLICE (256u << 10) /* bytes in a progress call for a lane_ep */

struct shm_native {
	STAILQ_ENTRY(shm_native) next;
	struct weft_lane_comp *comp;
	uint64_t offset, key;
	size_t done, length;
	uint8_t num;
	struct iovec iov[SHM_NATIVE_IOV];
};

void shm_native_init(struct shm_iface *s)
{
	weft_mpool_init(&s->natives, sizeof(struct shm_native), 8, 0);
	LIST_INIT(&s->busy);
}

/* ------------------------------------------------------------------ may we? */

static ssize_t read_word(pid_t pid, uint64_t at, uint64_t *word)
{
	const struct iovec here = {word, sizeof(*word)};
	const struct iovec there = {(void *)(uintptr_t)at, sizeof(*word)};

	return process_vm_readv(pid, &here, 1, &there, 1, 0);
}

bool shm_native_works(const struct shm_iface *s)
{
	uint64_t word = 0;

	return read_word(getpid(), (uintptr_t)&s->word, &word) == sizeof(word) && word == s->word;
}

/* Is the process with the pidfd there, so that its number is its own? */
static bool is_alive(const struct shm_ep *lane_ep)
{
	return lane_ep->process.fd >= 0 &&
	       syscall(SYS_pidfd_send_signal, lane_ep->process.fd, 0, NULL, 0) == 0;
}

bool shm_native_reaches(const struct shm_ep *lane_ep, const struct shm_hello *hello)
{
	uint64_t word = 0;

	/*
	 * The number that the kernel gives for the peer could be another process's where children
	 * share its socket: the word shows that it is the one which wrote the hello.
	 */
	return lane_ep->regs && lane_ep->pid > 0 && hello->word_at != 0 &&
	       read_word(lane_ep->pid, hello->word_at, &word) == sizeof(word) &&
	       word == hello->word && is_alive(lane_ep);
}

/* ------------------------------------------------------------------ calls */

static int post(struct shm_ep *lane_ep, const struct iovec *iov, unsigned int iovcnt,
		uint64_t offset, uint64_t key, struct weft_lane_comp *comp)
{
	struct shm_iface *s = shm_iface(lane_ep->base.iface);
	struct shm_native *n = NULL;
	unsigned int i;

	if (lane_ep->state == SHM_DEAD)
		return lane_ep->status < 0 ? lane_ep->status : -ECONNRESET;
	if (iovcnt > SHM_NATIVE_IOV)
		return -EINVAL;
	if (lane_ep->state == SHM_UP && lane_ep->num_natives < SHM_NATIVES)
		n = weft_mpool_get(&s->natives);
	if (!n)
		return -EAGAIN;
	*n = (struct shm_native){
		.comp = comp,
		.offset = offset,
		.key = key,
		.num = (uint8_t)iovcnt,
	};
	for (i = 0; i < iovcnt; i++) {
		n->iov[i] = iov[i];
		n->length += iov[i].iov_len;
	}
	STAILQ_INSERT_TAIL(&lane_ep->natives, n, next);
	if (lane_ep->num_natives++ == 0)
		LIST_INSERT_HEAD(&s->busy, lane_ep, busy);
	return 0;
}

int shm_get_zcopy(struct weft_lane_ep *base, const struct iovec *iov, unsigned int iovcnt,
		  struct weft_mem_lane *mem, uint64_t remote_offset, uint64_t key,
		  struct weft_lane_comp *comp)
{
	(void)mem;
	return post(shm_ep(base), iov, iovcnt, remote_offset, key, comp);
}

/* ------------------------------------------------------------------ work */

/* The part of our memory behind what is done: at most @p most bytes. @return parts */
static unsigned int here(const struct shm_native *n, size_t most, struct iovec *iov, size_t *len)
{
	size_t skip = n->done, part;
	unsigned int i, num = 0;

	*len = 0;
	for (i = 0; i < n->num && *len < most; i++) {
		if (skip >= n->iov[i].iov_len) {
			skip -= n->iov[i].iov_len;
			continue;
		}
		part = n->iov[i].iov_len - skip;
		if (part > most - *len)
			part = most - *len;
		iov[num++] = (struct iovec){(char *)n->iov[i].iov_base + skip, part};
		*len += part;
		skip = 0;
	}
	return num;
}

/* @return bytes moved, or a negative error */
static ssize_t move(struct shm_ep *lane_ep, struct shm_native *n, size_t most)
{
	struct iovec local[SHM_NATIVE_IOV], remote;
	uint64_t address;
	unsigned int num;
	ssize_t moved;
	size_t len;
	int rc;

	num = here(n, most, local, &len);
	rc = shm_reg_find(lane_ep->regs, n->key, n->offset + n->done, len,
			  WEFT_LANE_ACCESS_REMOTE_READ, &address);
	if (rc < 0)
		return rc;
	if (!is_alive(lane_ep))
		return -ECONNRESET;
	remote = (struct iovec){(void *)(uintptr_t)address, len};
	moved = process_vm_readv(lane_ep->pid, local, num, &remote, 1, 0);
	if (moved < 0)
		return errno == ESRCH ? -ECONNRESET : -errno;
	if (moved == 0)
		return -EFAULT;
	/* What was given back meanwhile may have had other bytes. */
	rc = shm_reg_find(lane_ep->regs, n->key, n->offset + n->done, len,
			  WEFT_LANE_ACCESS_REMOTE_READ, &address);
	return rc < 0 ? rc : moved;
}

static void end(struct shm_ep *lane_ep, int status)
{
	struct shm_iface *s = shm_iface(lane_ep->base.iface);
	struct shm_native *n = STAILQ_FIRST(&lane_ep->natives);
	struct weft_lane_comp *comp = n->comp;

	STAILQ_REMOVE_HEAD(&lane_ep->natives, next);
	if (--lane_ep->num_natives == 0)
		LIST_REMOVE(lane_ep, busy);
	weft_mpool_put(&s->natives, n);
	comp->done(comp, status);
}

/* The system allows it no more: what is left is done by messages. */
static int taken_away(struct shm_ep *lane_ep, int error)
{
	if (error != -EPERM && error != -ENOSYS)
		return error;
	lane_ep->base.lacks |= SHM_NATIVE_FEATURES;
	return -ECANCELED;
}

static unsigned int work(struct shm_iface *s, struct shm_ep *lane_ep)
{
	size_t budget = SLICE;
	unsigned int done = 0;
	struct shm_native *n;
	ssize_t moved;

	while ((n = STAILQ_FIRST(&lane_ep->natives)) && budget > 0) {
		moved = n->done < n->length ? move(lane_ep, n, budget) : 0;
		done++;
		if (moved < 0) {
			s->count.native_failed++;
			end(lane_ep, taken_away(lane_ep, (int)moved));
			continue;
		}
		budget -= (size_t)moved;
		n->done += (size_t)moved;
		s->count.native_get_bytes += (uint64_t)moved;
		if (n->done == n->length)
			end(lane_ep, 0);
	}
	return done;
}

unsigned int shm_native_work(struct shm_iface *s)
{
	struct shm_ep *lane_ep, *next;
	unsigned int n = 0;

	/* A callback may end other lane_eps: they stay in memory until shm_reap(). */
	for (lane_ep = LIST_FIRST(&s->busy); lane_ep; lane_ep = next) {
		next = LIST_NEXT(lane_ep, busy);
		n += work(s, lane_ep);
	}
	return n;
}

void shm_native_cancel(struct shm_ep *lane_ep, int status)
{
	while (lane_ep->num_natives > 0)
		end(lane_ep, status);
}
