/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/host.h"
#include "shm/shm.h"
#include "shm/shm_transfer.h"

/* ------------------------------------------------------------------ waking the peer */

void shm_wake(struct shm_ep *lane_ep)
{
	_Atomic uint32_t *word = &lane_ep->tx.dir->ctl.sleeping;

	/* Wake once: the sender that wakes clears the word. */
	if (lane_ep->sock.fd < 0 || atomic_exchange_explicit(word, 0, memory_order_relaxed) == 0)
		return;
	/* When the socket is full, it has unread bytes, which wake the receiver, too. */
	if (send(lane_ep->sock.fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1)
		shm_iface(lane_ep->base.iface)->count.tx_wakes++;
}

/* ------------------------------------------------------------------ native reads */

/*
 * Native reads: the kernel copies between the two processes, once, where it permits one to access
 * the memory of the other. The peer's own table (shm/shm_mem.h) has the addresses of its memory, so
 * a peer with a false table can only supply wrong bytes of its own.
 *
 * There are no native writes. A write in progress when the owner releases the memory could end
 * after the release, and the owner would not be notified of its end.
 *
 * progress() executes operations in slices, so that messages are handled in between. A system call
 * costs as much as the copy of 20 pages, so one call has several operations of a slice.
 */

/*
 * Bytes that a progress call copies at most for one lane_ep. Messages wait in the meantime, so the
 * more connections an iface has, the smaller is the slice of each.
 */
#define SLICE_MIN (256u << 10)
#define SLICE_MAX (1024u << 10)

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

/* ------------------------------------------------------------------ permission */

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

/*
 * For each page the kernel looks up the process' memory, so its rate is 2 to 3 times lower than
 * that of a plain copy (AMD EPYC). Preemptions only make a round slower: the fastest counts.
 */
#define RATE_ROUNDS 24
#define RATE_SIZE (64u << 10)

static double native_rate;

static void measure_rate(void)
{
	unsigned char *mem = malloc(2 * RATE_SIZE);
	const struct iovec to = {mem, RATE_SIZE}, from = {mem + RATE_SIZE, RATE_SIZE};
	uint64_t best = UINT64_MAX;

	if (!mem)
		return;
	memset(mem, 1, 2 * RATE_SIZE); /* the pages exist before the measurement starts */
	for (unsigned int i = 0; i < RATE_ROUNDS; i++) {
		uint64_t begun = weft_platform_host.now(weft_platform_host.arg), took;

		if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) != RATE_SIZE)
			break;
		took = weft_platform_host.now(weft_platform_host.arg) - begun;
		if (took > 0 && took < best)
			best = took;
	}
	if (best < UINT64_MAX)
		native_rate = RATE_SIZE / ((double)best * 1e-9);
	free(mem);
}

double shm_native_rate(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, measure_rate);
	return native_rate;
}

/* Does the process of the pidfd live? Until it ends, its PID is not used again. */
static bool is_alive(const struct shm_ep *lane_ep)
{
	return lane_ep->process.fd >= 0 &&
	       syscall(SYS_pidfd_send_signal, lane_ep->process.fd, 0, NULL, 0) == 0;
}

bool shm_native_reaches(const struct shm_ep *lane_ep, const struct shm_hello *hello)
{
	uint64_t word = 0;

	/*
	 * Where children share the socket, the kernel's PID of the peer could be that of another
	 * process. The word proves that the process with that PID has written the hello.
	 */
	return lane_ep->regs && lane_ep->pid > 0 && hello->word_at != 0 &&
	       read_word(lane_ep->pid, hello->word_at, &word) == sizeof(word) &&
	       word == hello->word && is_alive(lane_ep);
}

/* ------------------------------------------------------------------ posting */

static int post_native(struct shm_ep *lane_ep, const struct iovec *iov, unsigned int iovcnt,
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
	return post_native(shm_ep(base), iov, iovcnt, remote_offset, key, comp);
}

/* ------------------------------------------------------------------ execution */

struct batch {
	struct iovec here[SHM_NATIVES + SHM_NATIVE_IOV], there[SHM_NATIVES];
	size_t part[SHM_NATIVES]; /* bytes of each operation in this call */
	size_t len;
	unsigned int num_here, num;
};

static void add_here(struct batch *b, const struct shm_native *n, size_t most)
{
	size_t skip = n->done, len = 0, part;
	unsigned int i;

	for (i = 0; i < n->num && len < most; i++) {
		if (skip >= n->iov[i].iov_len) {
			skip -= n->iov[i].iov_len;
			continue;
		}
		part = n->iov[i].iov_len - skip;
		if (part > most - len)
			part = most - len;
		b->here[b->num_here++] = (struct iovec){(char *)n->iov[i].iov_base + skip, part};
		len += part;
		skip = 0;
	}
	b->part[b->num] = len;
	b->len += len;
}

static int find_memory(const struct shm_ep *lane_ep, const struct shm_native *n, size_t len,
		       uint64_t *address)
{
	return shm_reg_find(lane_ep->regs, n->key, n->offset + n->done, len,
			    WEFT_LANE_ACCESS_REMOTE_READ, address);
}

static int batch_gather(struct batch *b, const struct shm_ep *lane_ep, size_t most)
{
	const struct shm_native *n;
	uint64_t address;
	size_t len;
	int rc;

	b->len = b->num_here = b->num = 0;
	STAILQ_FOREACH(n, &lane_ep->natives, next) {
		len = n->length - n->done;
		if (len > most - b->len)
			len = most - b->len;
		if (len == 0 || b->num_here + n->num > sizeof(b->here) / sizeof(b->here[0]))
			return 0;
		rc = find_memory(lane_ep, n, len, &address);
		if (rc < 0)
			return b->num > 0 ? 0 : rc;
		add_here(b, n, len);
		b->there[b->num++] = (struct iovec){(void *)(uintptr_t)address, len};
	}
	return 0;
}

/* @return bytes moved, or the error of the first operation */
static ssize_t batch_move(struct batch *b, struct shm_ep *lane_ep, size_t most)
{
	ssize_t moved;
	int rc;

	rc = batch_gather(b, lane_ep, most);
	if (rc < 0)
		return rc;
	if (b->len == 0) /* the first operation has 0 bytes */
		return 0;
	if (!is_alive(lane_ep))
		return -ECONNRESET;
	moved = process_vm_readv(lane_ep->pid, b->here, b->num_here, b->there, b->num, 0);
	if (moved < 0)
		return errno == ESRCH ? -ECONNRESET : -errno;
	return moved == 0 ? -EFAULT : moved;
}

static void native_end(struct shm_ep *lane_ep, int status)
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

/*
 * -EPERM, -ENOSYS: the system has withdrawn the permission. The lane_ep offers no more native
 * reads, and -ECANCELED lets upper layers repeat this one by messages.
 */
static int taken_away(struct shm_ep *lane_ep, int error)
{
	if (error != -EPERM && error != -ENOSYS)
		return error;
	lane_ep->base.lacks |= SHM_NATIVE_FEATURES;
	return -ECANCELED;
}

static void native_fail(struct shm_iface *s, struct shm_ep *lane_ep, int error)
{
	s->count.native_failed++;
	native_end(lane_ep, taken_away(lane_ep, error));
}

static void native_advance(struct shm_iface *s, struct shm_ep *lane_ep, size_t part)
{
	struct shm_native *n = STAILQ_FIRST(&lane_ep->natives);
	uint64_t address;
	/* If the registration was released in the meantime, the bytes may be wrong: check again. */
	int rc = part > 0 ? find_memory(lane_ep, n, part, &address) : 0;

	if (rc < 0) {
		native_fail(s, lane_ep, rc);
		return;
	}
	s->count.native_get_bytes += part;
	n->done += part;
	if (n->done == n->length)
		native_end(lane_ep, 0);
}

static unsigned int work_slice(struct shm_iface *s, struct shm_ep *lane_ep)
{
	size_t budget = SLICE_MAX / (s->num_table > 0 ? s->num_table : 1);
	unsigned int done = 0;
	struct batch b;
	ssize_t moved;
	size_t part;

	if (budget < SLICE_MIN)
		budget = SLICE_MIN;
	while (!STAILQ_EMPTY(&lane_ep->natives) && budget > 0) {
		moved = batch_move(&b, lane_ep, budget);
		done++;
		if (moved < 0) {
			native_fail(s, lane_ep, (int)moved);
			continue;
		}
		budget -= (size_t)moved;
		if (b.num == 0)
			native_advance(s, lane_ep, 0);
		/* A callback may end all operations, and append others. */
		for (unsigned int i = 0; i < b.num && !STAILQ_EMPTY(&lane_ep->natives); i++) {
			part = b.part[i] < (size_t)moved ? b.part[i] : (size_t)moved;
			if (part == 0)
				break;
			moved -= (ssize_t)part;
			native_advance(s, lane_ep, part);
		}
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
		n += work_slice(s, lane_ep);
	}
	return n;
}

static void native_cancel(struct shm_ep *lane_ep, int status)
{
	while (lane_ep->num_natives > 0)
		native_end(lane_ep, status);
}

/* ------------------------------------------------------------------ messages */

static int send_refused(struct shm_ep *lane_ep)
{
	struct shm_iface *s = shm_iface(lane_ep->base.iface);

	if (lane_ep->state == SHM_DEAD)
		return lane_ep->status < 0 ? lane_ep->status : -ECONNRESET;
	lane_ep->starved = true;
	s->count.tx_no_room++;
	return -EAGAIN;
}

static inline void record_sent(struct shm_ep *lane_ep)
{
	shm_iface(lane_ep->base.iface)->count.tx_messages++;
	shm_wake_peer(lane_ep, lane_ep->tx.dir, SHM_WAKE_RECORD);
}

int shm_am_short(struct weft_lane_ep *base, uint8_t am_id, const void *hdr, size_t hdr_len,
		 const void *payload, size_t length)
{
	struct shm_ep *lane_ep = shm_ep(base);
	unsigned int num;
	uint64_t *line;

	if (hdr_len > SHM_SHORT_MAX || length > SHM_SHORT_MAX - hdr_len)
		return -EMSGSIZE;
	num = shm_record_lines(hdr_len + length);
	line = lane_ep->state == SHM_UP ? shm_tx_reserve(&lane_ep->tx, num) : NULL;
	if (!line)
		return send_refused(lane_ep);
	weft_copy(line + 1, hdr, hdr_len);
	if (length > 0)
		weft_copy((char *)(line + 1) + hdr_len, payload, length);
	shm_tx_publish(&lane_ep->tx, line, num, hdr_len + length, am_id, 0);
	record_sent(lane_ep);
	return 0;
}

static uint64_t *reserve_chunk(struct shm_ep *lane_ep, int *chunk)
{
	if (lane_ep->state != SHM_UP)
		return NULL;
	*chunk = shm_tx_chunk(&lane_ep->tx);
	return *chunk < 0 ? NULL : shm_tx_reserve(&lane_ep->tx, 1);
}

static void send_chunk(struct shm_ep *lane_ep, uint64_t *line, int chunk, size_t length,
		       uint8_t am_id)
{
	shm_tx_publish_chunk(&lane_ep->tx, line, (unsigned int)chunk, length, am_id);
	shm_iface(lane_ep->base.iface)->count.tx_chunks++;
	record_sent(lane_ep);
}

ssize_t shm_am_bcopy(struct weft_lane_ep *base, uint8_t am_id, weft_lane_pack_cb pack, void *arg)
{
	struct shm_ep *lane_ep = shm_ep(base);
	uint64_t *line;
	int chunk;
	ssize_t n;

	line = reserve_chunk(lane_ep, &chunk);
	if (!line)
		return send_refused(lane_ep);
	n = pack(lane_ep->tx.dir->chunks[chunk], SHM_CHUNK_SIZE, arg);
	if (n <= 0)
		return n < 0 ? n : -EINVAL;
	send_chunk(lane_ep, line, chunk, (size_t)n, am_id);
	return n;
}

/* ------------------------------------------------------------------ completions */

static struct shm_comp *comp_new(struct shm_ep *lane_ep)
{
	if (lane_ep->num_comps == SHM_COMPS)
		return NULL;
	return weft_mpool_get(&shm_iface(lane_ep->base.iface)->comps);
}

static void wait_for_head(struct shm_ep *lane_ep, struct shm_comp *place,
			  struct weft_lane_comp *comp)
{
	struct shm_iface *s = shm_iface(lane_ep->base.iface);

	*place = (struct shm_comp){.position = lane_ep->tx.tail, .comp = comp};
	STAILQ_INSERT_TAIL(&lane_ep->comps, place, next);
	if (lane_ep->num_comps++ == 0)
		LIST_INSERT_HEAD(&s->waiting, lane_ep, waiting);
}

static struct weft_lane_comp *next_comp(struct shm_ep *lane_ep)
{
	struct shm_comp *place = STAILQ_FIRST(&lane_ep->comps);
	struct weft_lane_comp *comp = place->comp;

	STAILQ_REMOVE_HEAD(&lane_ep->comps, next);
	weft_mpool_put(&shm_iface(lane_ep->base.iface)->comps, place);
	if (--lane_ep->num_comps == 0)
		LIST_REMOVE(lane_ep, waiting);
	return comp;
}

unsigned int shm_complete(struct shm_ep *lane_ep)
{
	struct weft_lane_comp *comp;
	unsigned int n = 0;

	if (lane_ep->num_comps > 0)
		shm_tx_look(&lane_ep->tx);
	while (lane_ep->num_comps > 0 &&
	       (int32_t)(lane_ep->tx.head - STAILQ_FIRST(&lane_ep->comps)->position) >= 0) {
		comp = next_comp(lane_ep);
		comp->done(comp, 0);
		n++;
	}
	return n;
}

void shm_cancel(struct shm_ep *lane_ep, int status)
{
	struct weft_lane_comp *comp;

	while (lane_ep->num_comps > 0) {
		comp = next_comp(lane_ep);
		comp->done(comp, status);
	}
	native_cancel(lane_ep, status);
}

/*
 * Shared memory has no real zero copy: the bytes are copied into a chunk and out of it. In spite of
 * that, the caller's buffer is released only when the message was delivered, as lane.h requires.
 */
int shm_am_zcopy(struct weft_lane_ep *base, uint8_t am_id, const void *hdr, size_t hdr_len,
		 const struct iovec *iov, unsigned int iovcnt, struct weft_mem_lane *mem,
		 struct weft_lane_comp *comp)
{
	struct shm_ep *lane_ep = shm_ep(base);
	struct shm_comp *place;
	size_t n = hdr_len;
	uint64_t *line;
	unsigned int i;
	char *to;
	int chunk;

	(void)mem;
	for (i = 0; i < iovcnt && n <= SHM_CHUNK_SIZE; i++)
		n = iov[i].iov_len > SHM_CHUNK_SIZE ? SIZE_MAX : n + iov[i].iov_len;
	if (n > SHM_CHUNK_SIZE)
		return -EMSGSIZE;
	if (n == 0)
		return -EINVAL;
	line = reserve_chunk(lane_ep, &chunk);
	place = line ? comp_new(lane_ep) : NULL;
	if (!place)
		return send_refused(lane_ep);
	to = (char *)lane_ep->tx.dir->chunks[chunk];
	if (hdr_len > 0)
		memcpy(to, hdr, hdr_len);
	for (i = 0, to += hdr_len; i < iovcnt; to += iov[i++].iov_len)
		if (iov[i].iov_len > 0)
			memcpy(to, iov[i].iov_base, iov[i].iov_len);
	send_chunk(lane_ep, line, chunk, n, am_id);
	wait_for_head(lane_ep, place, comp);
	return 0;
}

int shm_ep_flush(struct weft_lane_ep *base, struct weft_lane_comp *comp)
{
	struct shm_ep *lane_ep = shm_ep(base);
	struct shm_comp *place;

	if (lane_ep->state == SHM_DEAD)
		return send_refused(lane_ep);
	if (lane_ep->state != SHM_UP)
		return WEFT_LANE_IDLE;
	shm_tx_look(&lane_ep->tx);
	if (lane_ep->tx.head == lane_ep->tx.tail)
		return WEFT_LANE_IDLE;
	place = comp_new(lane_ep);
	if (!place)
		return send_refused(lane_ep);
	wait_for_head(lane_ep, place, comp);
	return 0;
}
