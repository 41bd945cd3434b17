/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measures three methods by which a process can find messages from many peers in shared memory;
 * doc/shm.md has the figures and the choice. A line of 64 bytes is a message in all of them.
 *
 *	turn   a ring per peer; each poll checks two recently active rings and two of the others
 *	news   the same rings, and a word for 64 of them in which a writer sets the bit of its ring
 *	queue  one queue for all, whose next line is taken by a locked addition
 *
 * Two threads run on two cores: one is all peers, in random order. More peers at a time would slow
 * down `queue`, and words shared in `news`; two cores can't show that.
 *
 *	shm_queues CORE CORE MESSAGES
 *
 * CSV: kind, peers, ns of a poll that finds nothing, half of a round trip with one peer, half of
 * one with peers in random order, ns a message of a stream from one peer.
 */

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PEERS_MAX 1024u
#define LINES 512u
#define HOT 2u
#define COLD 2u

enum kind { TURN, NEWS, QUEUE, KINDS };
static const char *const names[KINDS] = {"turn", "news", "queue"};

struct line {
	_Alignas(64) _Atomic uint64_t number;
	uint8_t data[56];
};

/* One peer's ring. */
struct ring {
	struct line lines[LINES];
	_Alignas(64) _Atomic uint32_t head;
	_Alignas(64) uint64_t tail; /* the sender's */
	uint64_t taken;             /* the sender's copy of head */
};

static struct line queue[LINES];
static _Alignas(64) _Atomic uint64_t queue_tail;
static _Alignas(64) _Atomic uint64_t queue_head;
static _Alignas(64) _Atomic uint64_t news[PEERS_MAX / 64];
static struct ring *rings;

/* The receiver's. */
static struct {
	_Alignas(64) uint32_t order[PEERS_MAX]; /* peers; the first HOT were active last */
	uint64_t heads[PEERS_MAX];
	uint32_t place[PEERS_MAX];
	uint32_t next_hot, next_cold;
	uint64_t queue_head;
} rx;

static enum kind kind;
static unsigned int peers;
static _Alignas(64) _Atomic uint64_t answer; /* messages that were taken */
static _Atomic bool stop;

/* ------------------------------------------------------------------ sending */

static void put(struct line *line, uint64_t n)
{
	uint8_t data[20] = {(uint8_t)n};

	memcpy(line->data, data, sizeof(data));
	/* Release: the data are visible before the number. */
	atomic_store_explicit(&line->number, n, memory_order_release);
}

static void send_ring(unsigned int peer)
{
	struct ring *r = &rings[peer];

	/* Acquire: the line was read before it is written again. */
	while (r->tail - r->taken == LINES)
		r->taken = atomic_load_explicit(&r->head, memory_order_acquire);
	put(&r->lines[r->tail % LINES], r->tail + 1);
	r->tail++;
	/* Locked, so that the record is seen before the bit, and the bit is not lost. */
	if (kind == NEWS)
		atomic_fetch_or(&news[peer / 64], 1ull << peer % 64);
}

static void send_queue(void)
{
	uint64_t n = atomic_fetch_add(&queue_tail, 1);

	while (n - atomic_load_explicit(&queue_head, memory_order_acquire) >= LINES)
		;
	put(&queue[n % LINES], n + 1);
}

static void send_from(unsigned int peer)
{
	if (kind == QUEUE)
		send_queue();
	else
		send_ring(peer);
}

/* ------------------------------------------------------------------ receiving */

static unsigned int take_ring(unsigned int peer)
{
	struct ring *r = &rings[peer];
	uint64_t head = rx.heads[peer];
	unsigned int n = 0;
	uint8_t data[20];

	while (n < 64 && atomic_load_explicit(&r->lines[head % LINES].number,
					      memory_order_acquire) == head + 1) {
		memcpy(data, r->lines[head % LINES].data, sizeof(data));
		__asm__ volatile("" : : "m"(data));
		head++;
		n++;
	}
	if (n == 0)
		return 0;
	rx.heads[peer] = head;
	atomic_store_explicit(&r->head, (uint32_t)head, memory_order_release);
	return n;
}

static void make_hot(unsigned int peer)
{
	unsigned int at = rx.next_hot++ % HOT, other = rx.order[at], from = rx.place[peer];

	if (from < HOT)
		return;
	rx.order[at] = peer;
	rx.place[peer] = at;
	rx.order[from] = other;
	rx.place[other] = from;
}

static unsigned int look_cold(void)
{
	unsigned int n = 0, m, peer;

	for (unsigned int i = 0; i < COLD && peers > HOT; i++) {
		if (rx.next_cold >= peers || rx.next_cold < HOT)
			rx.next_cold = HOT;
		peer = rx.order[rx.next_cold++];
		m = take_ring(peer);
		if (m > 0)
			make_hot(peer);
		n += m;
	}
	return n;
}

static unsigned int look_news(void)
{
	unsigned int n = 0, peer;
	uint64_t bits;

	for (unsigned int w = 0; w * 64 < peers; w++) {
		if (!atomic_load_explicit(&news[w], memory_order_relaxed))
			continue;
		for (bits = atomic_exchange(&news[w], 0); bits; bits &= bits - 1) {
			peer = w * 64 + (unsigned int)__builtin_ctzll(bits);
			n += take_ring(peer);
		}
	}
	return n;
}

static unsigned int look_queue(void)
{
	uint64_t head = rx.queue_head;
	unsigned int n = 0;
	uint8_t data[20];

	while (n < 64 && atomic_load_explicit(&queue[head % LINES].number, memory_order_acquire) ==
				 head + 1) {
		memcpy(data, queue[head % LINES].data, sizeof(data));
		__asm__ volatile("" : : "m"(data));
		head++;
		n++;
	}
	if (n > 0) {
		rx.queue_head = head;
		atomic_store_explicit(&queue_head, head, memory_order_release);
	}
	return n;
}

static unsigned int look(void)
{
	unsigned int n = 0;

	if (kind == QUEUE)
		return look_queue();
	if (kind == NEWS)
		return look_news();
	for (unsigned int i = 0; i < HOT && i < peers; i++)
		n += take_ring(rx.order[i]);
	return n + look_cold();
}

static void pin(int core)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET((size_t)core, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		perror("sched_setaffinity");
}

static void *receive(void *arg)
{
	uint64_t got = 0;
	unsigned int n;

	pin((int)(intptr_t)arg);
	while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
		n = look();
		got += n;
		if (n > 0)
			atomic_store_explicit(&answer, got, memory_order_release);
	}
	return NULL;
}

/* ------------------------------------------------------------------ measuring */

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void reset(void)
{
	memset(rings, 0, PEERS_MAX * sizeof(*rings));
	memset(queue, 0, sizeof(queue));
	memset(&rx, 0, sizeof(rx));
	atomic_store(&queue_tail, 0);
	atomic_store(&queue_head, 0);
	atomic_store(&answer, 0);
	atomic_store(&stop, false);
	for (unsigned int i = 0; i < PEERS_MAX; i++) {
		rx.order[i] = i;
		rx.place[i] = i;
	}
	for (unsigned int i = 0; i < PEERS_MAX / 64; i++)
		atomic_store(&news[i], 0);
}

static double idle(uint64_t num)
{
	double best = 1e9;

	for (int round = 0; round < 5; round++) {
		double begin = now_ns();

		for (uint64_t i = 0; i < num; i++)
			look();
		begin = (now_ns() - begin) / (double)num;
		best = begin < best ? begin : best;
	}
	return best;
}

static uint64_t sent;

static double round_trips(uint64_t num, bool random, double *ns)
{
	unsigned int seed = 1, peer = 0;

	for (uint64_t i = 0; i < num; i++) {
		double begin = now_ns();

		if (random)
			peer = (unsigned int)rand_r(&seed) % peers;
		send_from(peer);
		sent++;
		while (atomic_load_explicit(&answer, memory_order_acquire) != sent)
			;
		ns[i] = (now_ns() - begin) / 2;
	}
	qsort(ns, num, sizeof(*ns), compare);
	return ns[num / 2];
}

static double stream(uint64_t num)
{
	double best = 1e9;

	for (int round = 0; round < 5; round++) {
		double begin = now_ns();

		for (uint64_t i = 0; i < num; i++)
			send_from(0);
		sent += num;
		while (atomic_load_explicit(&answer, memory_order_acquire) != sent)
			;
		begin = (now_ns() - begin) / (double)num;
		best = begin < best ? begin : best;
	}
	return best;
}

static void measure(int core, uint64_t num, double *ns)
{
	double empty, one, any, rate;
	pthread_t thread;

	reset();
	sent = 0;
	empty = idle(num);
	pthread_create(&thread, NULL, receive, (void *)(intptr_t)core);
	one = round_trips(num / 10, false, ns);
	any = round_trips(num / 10, true, ns);
	rate = stream(num);
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	printf("%s,%u,%.1f,%.0f,%.0f,%.1f\n", names[kind], peers, empty, one, any, rate);
	fflush(stdout);
}

int main(int argc, char **argv)
{
	uint64_t num = argc == 4 ? strtoull(argv[3], NULL, 10) : 0;
	double *ns = num >= 10 ? calloc(num, sizeof(*ns)) : NULL;

	rings = ns ? aligned_alloc(64, PEERS_MAX * sizeof(*rings)) : NULL;
	if (!rings) {
		fprintf(stderr, "usage: shm_queues CORE CORE MESSAGES\n");
		return 2;
	}
	pin(atoi(argv[1]));
	printf("kind,peers,empty_look,one_peer,random_peer,stream\n");
	for (peers = 1; peers <= PEERS_MAX; peers *= 4)
		for (kind = 0; kind < KINDS; kind++)
			measure(atoi(argv[2]), num, ns);
	return 0;
}
