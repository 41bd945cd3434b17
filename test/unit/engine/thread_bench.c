/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of 64 KiB by one thread and by two: the prototype of mock/lane_thread.h over the raw
 * engine. Sends go to ports that count and acknowledge frames. Receives come from rings that are
 * filled. With two threads the worker's thread has one lane and a lane thread the other.
 *
 *	thread_bench [-a CPU] [-b CPU] [-r ROUNDS] [-n MESSAGES]
 *
 * Rounds of all cases alternate, each in a process of its own. For each case the median and the
 * quartiles in GB/s are printed, and those of the ratio of two threads to one in the same round.
 * The worker's thread runs on CPU a (0), the lane's thread on CPU b (1).
 *
 *	thread_bench --check
 *
 * checks each byte and counts each piece, without measuring. --one CASE is a round by itself.
 */

#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_eal.h>
#include <rte_launch.h>
#include <rte_lcore.h>

#include "base/bytes.h"
#include "common/pattern.h"
#include "eal.h"
#include "engine/engine.h"
#include "mock/count_port.h"
#include "mock/lane_thread.h"

#define SIZE 65536u
#define FRAG 8192u
#define FRAGS (SIZE / FRAG)
#define WINDOW 16u /* messages at a time */
#define ROUNDS_MAX 101

enum { TX_COPY, TX_CRC, RX_COPY, KINDS };

static const char *const kind_name[KINDS] = {"send", "send, CRC-32C", "receive"};

struct lane {
	struct count_end end[2];
	struct weft_lane_iface *iface[2];
	struct weft_lane_ep *ep, *far; /* of end 0, of end 1 */
	uint8_t *seen;                 /* by --check: a count for each piece */
};

struct comp {
	struct weft_lane_comp comp;
	uint32_t message;
};

static struct {
	unsigned int kind, threads;
	uint64_t messages;
	int cpu[2];
	bool check;
	struct lane lane[2];
	unsigned int lanes;
	struct lane_places places;
	uint8_t *memory;           /* WINDOW messages */
	unsigned int left[WINDOW]; /* pieces of a message that are still to come or to complete */
	struct comp comps[WINDOW][FRAGS];
	uint64_t done, wrong;
} b = {.kind = TX_COPY, .threads = 1, .messages = 20000, .cpu = {0, 1}};

static void die(const char *why)
{
	fprintf(stderr, "thread_bench: %s\n", why);
	exit(1);
}

static uint64_t now_ns(void *arg)
{
	struct timespec t;

	(void)arg;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int fill_random(void *arg, void *buf, size_t len)
{
	static uint64_t n;

	(void)arg;
	for (size_t i = 0; i < len; i++)
		((uint8_t *)buf)[i] = (uint8_t)(sim_mix64(++n) >> 7);
	return 0;
}

static const struct weft_platform platform = {.now = now_ns, .random = fill_random};

static uint8_t *memory_of(uint64_t id)
{
	return b.memory + id % WINDOW * SIZE;
}

/* ------------------------------------------------------------------ what comes */

static void piece_over(uint64_t id)
{
	if (--b.left[id % WINDOW] == 0)
		b.done++;
}

static int on_recv(void *arg, struct weft_lane_ep *lane_ep, uint8_t am_id, const void *data,
		   size_t length, void *desc)
{
	const struct lane *l = arg;
	struct count_frag frag;

	(void)desc;
	if (am_id != COUNT_AM || lane_ep->iface != l->iface[0] || !l->end[0].alone)
		return 0;
	memcpy(&frag, data, sizeof(frag));
	if (length != sizeof(frag) + FRAG)
		b.wrong++;
	memcpy(memory_of(frag.id) + frag.offset, (const uint8_t *)data + sizeof(frag), FRAG);
	piece_over(frag.id);
	return 0;
}

static size_t where(uint8_t am_id, const void *msg, size_t length, uint64_t *id, uint64_t *offset)
{
	struct count_frag frag;

	if (am_id != COUNT_AM || length < sizeof(frag))
		return 0;
	memcpy(&frag, msg, sizeof(frag));
	*id = frag.id;
	*offset = frag.offset;
	return sizeof(frag);
}

static void on_placed(void *arg, struct weft_lane_ep *lane_ep, const void *hdr, size_t hdr_len,
		      size_t length)
{
	struct count_frag frag;

	(void)arg;
	(void)lane_ep;
	memcpy(&frag, hdr, hdr_len);
	if (length != FRAG)
		b.wrong++;
	piece_over(frag.id);
}

static void on_event(void *arg, struct weft_lane_ep *lane_ep, enum weft_lane_event ev, int status,
		     const char *text)
{
	struct lane *l = arg;

	(void)status;
	if (ev == WEFT_LANE_EV_DOWN || ev == WEFT_LANE_EV_GONE)
		die(text);
	if (ev == WEFT_LANE_EV_UP && lane_ep->passive)
		l->far = lane_ep;
}

/* ------------------------------------------------------------------ set-up */

static int bare_open(const struct weft_lane_open *open, struct weft_lane_iface **iface, char *why,
		     size_t why_len)
{
	unsigned int k = (unsigned int)atoi(open->resource);
	const struct weft_raw_conf rc = {.ip = 0x0a000001 + k % 2 + (k / 2 << 8), .prefix = 24};

	return weft_raw_iface_open(&b.lane[k / 2].end[k % 2].port, &rc, open, iface, why, why_len);
}

static const struct weft_lane_driver bare = {.name = "dpdk", .open = bare_open};

/* A thread of DPDK's, so that the pools have a cache for it. */
static void thread_begin(void)
{
	rte_thread_register();
}

static void open_end(struct lane *l, unsigned int i, const struct weft_lane_conf *conf)
{
	const struct lane_thread_conf tc = {.cpu = b.cpu[1],
					    .home_id = -1,
					    .places = &b.places,
					    .where = where,
					    .placed = on_placed,
					    .begin = thread_begin};
	struct weft_lane_open open = {.resource = l->end[i].port.name,
				      .options = "",
				      .worker_id = i + 1,
				      .iface_id = 1000 + (uint64_t)(l - b.lane) * 2 + i,
				      .platform = &platform,
				      .conf = conf,
				      .recv = on_recv,
				      .event = on_event,
				      .arg = l};
	bool threaded = i == 0 && l == &b.lane[1] && b.threads == 2;
	char why[256] = "";
	int rc;

	if (threaded)
		rc = lane_thread_open(&bare, &open, &tc, &l->iface[i], why, sizeof(why));
	else
		rc = bare_open(&open, &l->iface[i], why, sizeof(why));
	if (rc < 0)
		die(why);
	if (threaded)
		lane_thread_hold(l->iface[i], true);
}

static void poll_all(bool far)
{
	uint64_t now = now_ns(NULL);

	for (unsigned int k = 0; k < b.lanes; k++)
		for (unsigned int i = 0; i <= far; i++) {
			struct weft_lane_iface *iface = b.lane[k].iface[i];

			iface->ops->progress(iface, now);
			if (iface->tx_open)
				iface->ops->tx_flush(iface);
		}
}

static void poll_for(uint64_t ns)
{
	for (uint64_t end = now_ns(NULL) + ns; now_ns(NULL) < end;)
		poll_all(true);
}

static ssize_t pack_piece(void *dst, size_t max, void *arg)
{
	const struct count_frag *frag = arg;

	(void)max;
	memcpy(dst, frag, sizeof(*frag));
	weft_copy((uint8_t *)dst + sizeof(*frag), memory_of(frag->id) + frag->offset, frag->len);
	return (ssize_t)(sizeof(*frag) + frag->len);
}

/* The pieces that a lane has of a message: all, or those that lane_of() gives it. */
static unsigned int lane_of(unsigned int piece)
{
	return b.lanes == 1 ? 0 : piece % 2;
}

/* Each message has the contents of message 0, since rings are filled once. */
static void send_templates(struct lane *l)
{
	for (uint32_t p = 0; p < FRAGS; p++) {
		struct count_frag frag = {.offset = p * FRAG, .len = FRAG};

		if (lane_of(p) != (unsigned int)(l - b.lane))
			continue;
		/* A frame that was sent again is no template. */
		for (uint32_t have = l->end[0].ring_len; l->end[0].ring_len == have;) {
			l->far->ops->am_bcopy(l->far, COUNT_AM, pack_piece, &frag);
			poll_for(100000);
		}
	}
}

static void connect_lane(struct lane *l)
{
	struct weft_lane_iface *far = l->iface[1];
	uint8_t addr[WEFT_LANE_ADDR_MAX];

	far->ops->get_address(far, addr);
	if (l->iface[0]->ops->ep_connect(l->iface[0], addr, far->attr.dev_addr_len, l, &l->ep))
		die("no connection");
	for (unsigned int i = 0; i < 10000 && !(l->ep->up && l->far); i++)
		poll_for(10000);
	if (!l->ep->up || !l->far)
		die("the lane does not come up");
}

static void part_lane(struct lane *l)
{
	struct count_frag frag = {.len = 8};

	/* The far end acknowledges a message: its ACK frame is the template. */
	for (unsigned int i = 0; i < 1000 && l->end[0].ack_len == 0; i++) {
		l->ep->ops->am_short(l->ep, COUNT_AM, &frag, sizeof(frag), b.memory, 8);
		poll_for(2000000);
	}
	if (b.kind == RX_COPY) {
		count_ring_begin(&l->end[0]);
		send_templates(l);
		count_ring_fill(&l->end[0]);
	}
	if (l->end[0].ack_len == 0)
		die("the far end has not acknowledged");
	count_pair_part(&l->end[0]);
}

static void check_sent(void *arg, const struct count_frag *frag, const uint8_t *data)
{
	struct lane *l = arg;

	if (frag->len != FRAG || frag->id > b.messages ||
	    pattern_check(frag->id % WINDOW, frag->offset, data, FRAG) != FRAG)
		b.lane[l - b.lane].seen[0] = 255;
	else
		l->seen[frag->id * FRAGS + frag->offset / FRAG]++;
}

static void set_up(void)
{
	const struct weft_lane_conf conf = {.peer_timeout_ns = 30000000000ull,
					    .connect_timeout_ns = 3000000000ull,
					    .keepalive_ns = 1000000000ull,
					    .csum = b.kind == TX_CRC ? WEFT_CSUM_CRC32C
								     : WEFT_CSUM_AUTO,
					    .cc = WEFT_CC_FIXED};

	b.lanes = b.threads;
	b.memory = aligned_alloc(4096, WINDOW * SIZE);
	if (!b.memory)
		die("no memory");
	for (uint64_t i = 0; i < WINDOW; i++)
		pattern_fill(i, 0, b.memory + i * SIZE, SIZE);
	for (unsigned int k = 0; k < b.lanes; k++) {
		if (count_pair_open(b.lane[k].end, k, 9014))
			die("no memory for buffers");
		for (unsigned int i = 0; i < 2; i++)
			open_end(&b.lane[k], i, &conf);
		b.lane[k].seen = calloc(FRAGS, b.messages + 1);
		if (!b.lane[k].seen)
			die("no memory");
	}
	for (unsigned int k = 0; k < b.lanes; k++)
		connect_lane(&b.lane[k]);
	for (unsigned int k = 0; k < b.lanes; k++)
		part_lane(&b.lane[k]);
	for (unsigned int k = 0; k < b.lanes && b.check && b.kind != RX_COPY; k++) {
		b.lane[k].end[0].check = check_sent;
		b.lane[k].end[0].arg = &b.lane[k];
	}
	if (b.threads == 2)
		lane_thread_hold(b.lane[1].iface[0], false);
	while (b.threads == 2 && !lane_thread_is_away(b.lane[1].iface[0]))
		poll_all(false);
}

/* ------------------------------------------------------------------ sending */

static void on_comp(struct weft_lane_comp *comp, int status)
{
	if (status)
		die("a send failed");
	piece_over(((struct comp *)comp)->message);
}

/* The lane's thread has work first; the worker's thread does the rest itself. @return it is sent */
static bool send_piece(uint64_t id, uint32_t piece)
{
	struct count_frag frag = {.id = id, .offset = piece * FRAG, .len = FRAG};
	struct comp *comp = &b.comps[id % WINDOW][piece];
	struct iovec iov = {memory_of(id) + frag.offset, FRAG};
	struct weft_lane_ep *ep = b.lane[1].ep;

	comp->comp.done = on_comp;
	comp->message = (uint32_t)(id % WINDOW);
	if (b.threads == 2 &&
	    ep->ops->am_zcopy(ep, COUNT_AM, &frag, sizeof(frag), &iov, 1, NULL, &comp->comp) == 0)
		return true;
	ep = b.lane[0].ep;
	if (ep->ops->am_bcopy(ep, COUNT_AM, pack_piece, &frag) < 0)
		return false;
	piece_over(id);
	return true;
}

static void send_all(void)
{
	uint64_t id = 1;
	uint32_t piece = 0;

	while (b.done < b.messages) {
		while (id <= b.messages && (piece > 0 || b.left[id % WINDOW] == 0)) {
			if (piece == 0)
				b.left[id % WINDOW] = FRAGS;
			if (!send_piece(id, piece))
				break;
			if (++piece < FRAGS)
				continue;
			piece = 0;
			id++;
			break;
		}
		poll_all(false);
	}
}

static void check_sends(void)
{
	for (uint64_t i = FRAGS; i < (b.messages + 1) * FRAGS; i++) {
		unsigned int n = 0;

		for (unsigned int k = 0; k < b.lanes; k++)
			n += b.lane[k].seen[i];
		b.wrong += n != 1;
	}
	for (unsigned int k = 0; k < b.lanes; k++)
		b.wrong += b.lane[k].seen[0];
}

/* ------------------------------------------------------------------ receiving */

static void permit(uint64_t id)
{
	for (unsigned int k = 0; k < b.lanes; k++)
		/* Release: the destination is open. */
		atomic_store_explicit(&b.lane[k].end[0].permitted, id, memory_order_release);
}

static void open_message(uint64_t id)
{
	if (b.check)
		memset(memory_of(id), 0xee, SIZE);
	b.left[id % WINDOW] = FRAGS;
	if (!lane_place_open(&b.places, id, memory_of(id), SIZE))
		die("a destination is in use");
	permit(id);
}

/* @return the message is complete, and its memory is free */
static bool message_over(uint64_t id)
{
	if (b.left[id % WINDOW] || !lane_place_close(&b.places, id))
		return false;
	if (b.check)
		b.wrong += pattern_check(0, 0, memory_of(id), SIZE) != SIZE;
	return true;
}

static void receive_all(void)
{
	uint64_t opened = 0, over = 0;

	while (over < b.messages) {
		for (; opened < b.messages && opened < over + WINDOW; opened++)
			open_message(opened + 1);
		poll_all(false);
		while (over < opened && message_over(over + 1))
			over++;
	}
}

/* ------------------------------------------------------------------ rounds */

static double one(void)
{
	cpu_set_t set;
	uint64_t from;

	test_eal_init("512");
	CPU_ZERO(&set);
	CPU_SET((unsigned int)b.cpu[0], &set);
	sched_setaffinity(0, sizeof(set), &set);
	set_up();
	from = now_ns(NULL);
	if (b.kind == RX_COPY)
		receive_all();
	else
		send_all();
	from = now_ns(NULL) - from;
	if (b.threads == 2) /* which ends the thread: what it has counted can be read */
		b.lane[1].iface[0]->ops->close(b.lane[1].iface[0]);
	if (b.check && b.kind != RX_COPY)
		check_sends();
	if (b.wrong)
		die("bytes are wrong, missing, or came twice");
	return (double)b.messages * SIZE / (double)from;
}

static int by_size(const void *x, const void *y)
{
	double a = *(const double *)x, c = *(const double *)y;

	return (a > c) - (a < c);
}

static void print(const char *what, double *v, unsigned int n, const char *unit)
{
	qsort(v, n, sizeof(*v), by_size);
	printf("  %-28s %6.2f  (%.2f to %.2f) %s\n", what, v[n / 2], v[n / 4], v[n * 3 / 4], unit);
}

static double round_of(const char *program, unsigned int kind, unsigned int threads)
{
	char command[400], line[64] = "";
	FILE *f;

	snprintf(command, sizeof(command), "%s --one %u -t %u -n %llu -a %d -b %d%s", program, kind,
		 threads, (unsigned long long)b.messages, b.cpu[0], b.cpu[1],
		 b.check ? " --bytes" : "");
	f = popen(command, "r");
	if (!f || !fgets(line, sizeof(line), f) || pclose(f) != 0)
		die("a round has failed");
	return atof(line);
}

static void rounds(const char *program, unsigned int n)
{
	static double v[KINDS][3][ROUNDS_MAX];

	for (unsigned int r = 0; r < n; r++)
		for (unsigned int k = 0; k < KINDS; k++) {
			for (unsigned int t = 0; t < 2; t++)
				v[k][t][r] = round_of(program, k, t + 1);
			v[k][2][r] = v[k][1][r] / v[k][0][r];
		}
	printf("64 KiB messages, %u rounds of %llu: median (quartiles)\n", n,
	       (unsigned long long)b.messages);
	for (unsigned int k = 0; k < KINDS; k++) {
		printf("%s\n", kind_name[k]);
		print("one thread", v[k][0], n, "GB/s");
		print("two threads", v[k][1], n, "GB/s");
		print("ratio of each round", v[k][2], n, "");
	}
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"check", no_argument, NULL, 'c'},
						{"bytes", no_argument, NULL, 'y'},
						{"one", required_argument, NULL, 'o'},
						{NULL, 0, NULL, 0}};
	unsigned int n = 15;
	bool single = false;
	int c;

	while ((c = getopt_long(argc, argv, "a:b:r:n:t:", options, NULL)) >= 0) {
		if (c == 'a' || c == 'b')
			b.cpu[c == 'b'] = atoi(optarg);
		else if (c == 'r')
			n = (unsigned int)atoi(optarg);
		else if (c == 'n')
			b.messages = (uint64_t)atoll(optarg);
		else if (c == 't')
			b.threads = (unsigned int)atoi(optarg);
		else if (c == 'o')
			b.kind = (unsigned int)atoi(optarg);
		else if (c == '?')
			return 2;
		single |= c == 'o';
		b.check |= c == 'y' || c == 'c';
		if (c == 'c') {
			n = 1;
			b.messages = 300;
		}
	}
	if (b.kind >= KINDS || b.threads < 1 || b.threads > 2 || n < 1 || n > ROUNDS_MAX ||
	    b.messages < 1)
		die("see the first comment of thread_bench.c");
	if (single)
		printf("%.4f\n", one());
	else
		rounds(argv[0], n);
	return 0;
}
