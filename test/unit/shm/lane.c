/* SPDX-License-Identifier: BSD-3-Clause */
/* Two ifaces in one process: connecting, all kinds of messages, completions, sleeping, closing. */

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "mock/fd_limit.h"
#include "shm/shm_conn.h"
#include "shm/shm_socket.h"
#include "unit/shm/shm_end.h"

static struct end a, b;

static uint64_t fresh_id(void)
{
	static unsigned int serial;

	return (uint64_t)getpid() << 32 | ++serial;
}

static int setup(void **state)
{
	(void)state;
	end_open(&a, fresh_id());
	end_open(&b, fresh_id());
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	end_close(&a);
	end_close(&b);
	return 0;
}

/* Messages [first, last) of lengths that @p length names. */
static void stream(struct end *from, struct end *to, uint64_t first, uint64_t last,
		   size_t (*length)(uint64_t n))
{
	unsigned int want = to->received + (unsigned int)(last - first);
	int rc;

	to->next = first;
	for (uint64_t n = first; n < last; n++)
		while ((rc = end_send(from->lane_ep, n, length(n))) != 0) {
			assert_int_equal(rc, -EAGAIN);
			end_run(from, to, &to->received, to->received + 1, 10);
		}
	end_run(from, to, &to->received, want, 10);
	assert_int_equal(to->wrong, 0);
}

static size_t all_lengths(uint64_t n)
{
	return 8 + n * 37 % (SHM_CHUNK_SIZE - 7);
}

static size_t eight(uint64_t n)
{
	(void)n;
	return 8;
}

static void messages_of_all_lengths_go_both_ways(void **state)
{
	(void)state;
	end_connect(&a, &b);
	assert_false(a.lane_ep->passive);
	assert_true(b.lane_ep->passive);
	assert_null(b.lane_ep->user);
	stream(&a, &b, 0, 3000, all_lengths);
	stream(&b, &a, 0, 3000, all_lengths);
	stream(&a, &b, 0, 20000, eight);
	assert_int_equal(end_counter(&a, "tx.messages"), 23000);
	assert_int_equal(end_counter(&b, "rx.messages"), 23000);
	assert_int_equal(end_send(a.lane_ep, 0, SHM_CHUNK_SIZE + 1), -EMSGSIZE);
}

static void kept_buffers_stop_no_sender(void **state)
{
	(void)state;
	end_connect(&a, &b);
	b.keep = true;
	for (uint64_t n = 0; n < 500; n++) {
		assert_int_equal(end_send(a.lane_ep, n, 5000), 0);
		end_run(&a, &b, &b.received, (unsigned int)n + 1, 10);
	}
	assert_int_equal(b.wrong, 0);
	assert_int_equal(b.num_kept, SHM_KEEP_MAX);
	assert_int_equal(end_counter(&b, "rx.kept"), SHM_KEEP_MAX);
	/* Also when the lane_ep is gone. */
	b.lane_ep->ops->ep_destroy(b.lane_ep);
	end_run(&a, &b, &a.gones, 1, 10);
	while (b.num_kept > 0)
		b.iface->ops->release(b.iface, b.kept[--b.num_kept]);
	assert_int_equal(end_counter(&b, "rx.kept"), 0);
}

/* ------------------------------------------------------------------ completions */

struct comp {
	struct weft_lane_comp base;
	unsigned int done;
	int status;
};

static void on_done(struct weft_lane_comp *base, int status)
{
	struct comp *c = (struct comp *)base;

	c->done++;
	c->status = status;
}

static void completions_mean_that_it_arrived(void **state)
{
	struct comp sent = {.base.done = on_done}, flushed = {.base.done = on_done};
	uint64_t n = 0;
	struct iovec iov = {.iov_base = &n, .iov_len = sizeof(n)};

	(void)state;
	end_connect(&a, &b);
	assert_int_equal(a.iface->ops->ep_flush(a.lane_ep, &flushed.base), WEFT_LANE_IDLE);
	assert_int_equal(
		a.iface->ops->am_zcopy(a.lane_ep, END_AM, NULL, 0, &iov, 1, NULL, &sent.base), 0);
	assert_int_equal(a.iface->ops->ep_flush(a.lane_ep, &flushed.base), 0);
	for (int i = 0; i < 100; i++)
		a.iface->ops->progress(a.iface, 1);
	assert_int_equal(sent.done + flushed.done, 0);
	end_run(&b, NULL, &b.received, 1, 10);
	end_run(&a, NULL, &flushed.done, 1, 10);
	assert_int_equal(sent.done, 1);
	assert_int_equal(sent.status, 0);
	assert_int_equal(flushed.status, 0);
}

static void completions_end_with_the_lane(void **state)
{
	struct comp sent[SHM_COMPS + 1];
	unsigned int i, done = 0;
	uint64_t n = 0;
	struct iovec iov = {.iov_base = &n, .iov_len = sizeof(n)};

	(void)state;
	end_connect(&a, &b);
	for (i = 0; i < SHM_CHUNKS + 1; i++) {
		sent[i] = (struct comp){.base.done = on_done};
		n = i;
		if (a.iface->ops->am_zcopy(a.lane_ep, END_AM, NULL, 0, &iov, 1, NULL,
					   &sent[i].base) == -EAGAIN)
			break;
	}
	assert_int_equal(i, SHM_CHUNKS);
	/* The peer takes them, and closes before it is looked at: what arrived is no error. */
	end_run(&b, NULL, &b.received, SHM_CHUNKS, 10);
	b.lane_ep->ops->ep_destroy(b.lane_ep);
	end_run(&a, NULL, &a.gones, 1, 10);
	for (i = 0; i < SHM_CHUNKS; i++)
		done += sent[i].done == 1 && sent[i].status == 0;
	assert_int_equal(done, SHM_CHUNKS);
}

/* As the layer above does when the peer's last message says that it has closed. */
static void what_the_peer_took_is_no_error_of_the_end(void **state)
{
	struct comp sent = {.base.done = on_done};
	uint64_t n = 0;
	struct iovec iov = {.iov_base = &n, .iov_len = sizeof(n)};

	(void)state;
	end_connect(&a, &b);
	assert_int_equal(
		a.iface->ops->am_zcopy(a.lane_ep, END_AM, NULL, 0, &iov, 1, NULL, &sent.base), 0);
	end_run(&b, NULL, &b.received, 1, 10);
	assert_int_equal(end_send(b.lane_ep, 0, 50), 0);
	a.destroy_in = true;
	end_run(&a, NULL, &a.received, 1, 10);
	assert_int_equal(sent.done, 1);
	assert_int_equal(sent.status, 0);
}

static void what_the_peer_took_before_it_died_is_delivered(void **state)
{
	struct comp sent = {.base.done = on_done};
	uint64_t n = 0;
	struct iovec iov = {.iov_base = &n, .iov_len = sizeof(n)};

	(void)state;
	end_connect(&a, &b);
	assert_int_equal(
		a.iface->ops->am_zcopy(a.lane_ep, END_AM, NULL, 0, &iov, 1, NULL, &sent.base), 0);
	end_run(&b, NULL, &b.received, 1, 10);
	assert_int_equal(sent.done, 0);
	/* Its death is detected before its last position is read. */
	shm_end(shm_ep(a.lane_ep), -ECONNRESET, "its process has ended");
	assert_int_equal(a.downs, 1);
	assert_int_equal(sent.done, 1);
	assert_int_equal(sent.status, 0);
}

static void unread_messages_end_with_an_error(void **state)
{
	struct comp sent = {.base.done = on_done}, mine = {.base.done = on_done};
	uint64_t n = 0;
	struct iovec iov = {.iov_base = &n, .iov_len = sizeof(n)};

	(void)state;
	end_connect(&a, &b);
	assert_int_equal(
		a.iface->ops->am_zcopy(a.lane_ep, END_AM, NULL, 0, &iov, 1, NULL, &sent.base), 0);
	assert_int_equal(
		b.iface->ops->am_zcopy(b.lane_ep, END_AM, NULL, 0, &iov, 1, NULL, &mine.base), 0);
	b.lane_ep->ops->ep_destroy(b.lane_ep);
	assert_int_equal(mine.done, 1);
	assert_int_equal(mine.status, -ECANCELED);
	/* What b had sent is delivered before its end is reported. */
	end_run(&a, NULL, &a.gones, 1, 10);
	assert_int_equal(a.received, 1);
	assert_int_equal(sent.done, 1);
	assert_int_equal(sent.status, -ECONNRESET);
}

/* ------------------------------------------------------------------ ends */

static void destroyed_inside_its_callback(void **state)
{
	(void)state;
	end_connect(&a, &b);
	for (uint64_t n = 0; n < 10; n++)
		assert_int_equal(end_send(a.lane_ep, n, n % 2 ? 5000 : 50), 0);
	b.destroy_in = true;
	end_run(&a, &b, &a.gones, 1, 10);
	assert_int_equal(b.received, 1);
	assert_int_equal(b.gones + b.downs, 0);
	assert_int_equal(end_counter(&b, "conn.open"), 0);
}

static void no_process_listens_any_more(void **state)
{
	uint8_t addr[SHM_ADDR_LEN];
	struct weft_lane_ep *lane_ep;

	(void)state;
	b.iface->ops->get_address(b.iface, addr);
	end_close(&b);
	assert_int_equal(a.iface->ops->ep_connect(a.iface, addr, sizeof(addr), NULL, &lane_ep), 0);
	end_run(&a, NULL, &a.downs, 1, 10);
	assert_int_equal(a.status, -ECONNREFUSED);
	assert_non_null(strstr(a.text, "no such process any more"));
}

static void other_places_are_not_reached(void **state)
{
	struct shm_addr addr, other;
	struct weft_lane_ep *lane_ep;
	char why[256];

	(void)state;
	b.iface->ops->get_address(b.iface, &addr);
	other = addr;
	other.host = weft_put64(weft_get64(addr.host) + 1);
	assert_int_equal(a.iface->ops->is_reachable(a.iface, &other, sizeof(other), why,
						    sizeof(why)),
			 -EHOSTUNREACH);
	assert_int_equal(a.iface->ops->ep_connect(a.iface, &other, sizeof(other), NULL, &lane_ep),
			 -EHOSTUNREACH);
	other = addr;
	other.place = weft_put64(weft_get64(addr.place) + 1);
	assert_int_equal(a.iface->ops->is_reachable(a.iface, &other, sizeof(other), why,
						    sizeof(why)),
			 -EACCES);
	assert_non_null(strstr(why, "another user"));
	other = addr;
	other.version = weft_put16(SHM_VERSION + 1);
	assert_int_equal(a.iface->ops->is_reachable(a.iface, &other, sizeof(other), why,
						    sizeof(why)),
			 -EPROTONOSUPPORT);
	assert_int_equal(a.iface->ops->is_reachable(a.iface, &addr, 8, why, sizeof(why)), -EINVAL);
}

/* ------------------------------------------------------------------ strangers at the socket */

static bool count_waits(enum weft_log_level level, const char *origin, const char *text, void *arg)
{
	(void)level;
	(void)origin;
	if (strstr(text, "processes that connect wait: ") && strstr(text, "ulimit -n"))
		++*(unsigned int *)arg;
	return true;
}

static int raw_client(struct end *to, const void *bytes, size_t length)
{
	struct shm_addr addr;
	int fd;

	to->iface->ops->get_address(to->iface, &addr);
	fd = shm_socket_connect(&addr);
	assert_true(fd >= 0);
	if (length > 0)
		assert_int_equal(send(fd, bytes, length, MSG_NOSIGNAL), length);
	return fd;
}

/* Without a free descriptor the connection stays in the queue, and the log has the reason. */
static void a_process_that_waits_for_a_descriptor_is_logged(void **state)
{
	static int taken[1024];
	struct rlimit before, few;
	unsigned int waits = 0;
	double until;
	int fd, n = 0;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	few.rlim_cur = 256;
	fd = raw_client(&b, NULL, 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	if (kernel_fd_limit() != few.rlim_cur) {
		setrlimit(RLIMIT_NOFILE, &before);
		close(fd);
		print_message("left out: the limit of descriptors is valgrind's own\n");
		skip();
	}
	while (n < 1024 && (taken[n] = dup(STDERR_FILENO)) >= 0)
		n++;
	weft_log_set_callback(count_waits, &waits);
	for (until = end_seconds() + 10; waits == 0 && end_seconds() < until;)
		b.iface->ops->progress(b.iface, (uint64_t)(end_seconds() * 1e9));
	weft_log_set_callback(NULL, NULL);
	while (n > 0)
		close(taken[--n]);
	setrlimit(RLIMIT_NOFILE, &before);
	close(fd);
	assert_in_range(waits, 1, 5);
}

static void strange_hellos_are_refused(void **state)
{
	struct shm_hello hello = {.magic = SHM_HELLO_MAGIC, .version = SHM_VERSION};
	struct shm_addr mine, theirs;
	struct pollfd p;
	unsigned int i, bad = 0;
	char junk[sizeof(hello)];

	(void)state;
	a.iface->ops->get_address(a.iface, &mine);
	b.iface->ops->get_address(b.iface, &theirs);
	memset(junk, 0xa5, sizeof(junk));
	for (i = 0; i < 5; i++) {
		memcpy(hello.addr, &mine, sizeof(mine));
		memcpy(hello.to, &theirs.iface_id, sizeof(hello.to));
		if (i == 1) /* no process listens there */
			hello.addr[20] ^= 0xff;
		if (i == 2)
			hello.to[0] ^= 1;
		if (i == 3)
			hello.addr[0] ^= 1;
		/* and 4 is right, but passes no segment */
		p = (struct pollfd){.fd = i == 0 ? raw_client(&b, junk, sizeof(junk))
						 : raw_client(&b, &hello, sizeof(hello)),
				    .events = POLLIN};
		for (double until = end_seconds() + 10; poll(&p, 1, 0) == 0;) {
			b.iface->ops->progress(b.iface, (uint64_t)(end_seconds() * 1e9));
			assert_true(end_seconds() < until);
		}
		close(p.fd);
		bad++;
		assert_int_equal(end_counter(&b, "conn.refused.other"), bad);
	}
	assert_int_equal(b.ups, 0);
	/* It serves others as before. */
	end_connect(&a, &b);
}

static void a_full_table_refuses_and_counts(void **state)
{
	struct shm_iface *s = shm_iface(b.iface);
	struct weft_lane_ep *lane_ep;
	uint8_t addr[SHM_ADDR_LEN];

	(void)state;
	b.iface->ops->get_address(b.iface, addr);
	s->num_eps = SHM_EPS_MAX;
	assert_int_equal(a.iface->ops->ep_connect(a.iface, addr, sizeof(addr), NULL, &lane_ep), 0);
	end_run(&a, &b, &a.downs, 1, 10);
	assert_int_equal(end_counter(&b, "conn.refused.other"), 1);
	assert_int_equal(b.ups, 0);
	s->num_eps = 0;
	end_connect(&a, &b);
}

static void half_connections_are_bounded(void **state)
{
	int fds[SHM_HALF_MAX + 8];
	double until;
	unsigned int i;

	(void)state;
	for (i = 0; i < SHM_HALF_MAX + 8; i++)
		fds[i] = raw_client(&b, NULL, 0);
	/* Those beyond the bound wait in the queue: an honest one may be among them. */
	for (until = end_seconds() + 0.3; end_seconds() < until;) {
		b.iface->ops->progress(b.iface, (uint64_t)(end_seconds() * 1e9));
		assert_in_range(end_counter(&b, "conn.open"), 0, SHM_HALF_ONE);
	}
	assert_int_equal(end_counter(&b, "conn.open"), SHM_HALF_ONE);
	assert_true(end_counter(&b, "conn.refused.share") > 0);
	assert_int_equal(end_counter(&b, "conn.refused.other"), 0);
	for (i = 0; i < SHM_HALF_MAX + 8; i++)
		close(fds[i]);
	for (until = end_seconds() + 10; end_counter(&b, "conn.open") > 0;) {
		b.iface->ops->progress(b.iface, (uint64_t)(end_seconds() * 1e9));
		assert_true(end_seconds() < until);
	}
	end_connect(&a, &b);
}

/* ------------------------------------------------------------------ sleeping */

static bool readable(struct end *e, int ms)
{
	struct pollfd p = {.fd = e->iface->ops->wait_fd(e->iface), .events = POLLIN};

	return poll(&p, 1, ms) == 1;
}

static void arm(struct end *e)
{
	uint64_t due = UINT64_MAX, now = (uint64_t)(end_seconds() * 1e9);
	int tries = 0;

	e->iface->ops->progress(e->iface, now);
	while (e->iface->ops->arm(e->iface, now, &due) == -EBUSY) {
		e->iface->ops->progress(e->iface, now);
		assert_true(++tries < 100);
	}
}

static void *nothing(void *arg)
{
	return arg;
}

/*
 * In a process of several threads the registration for peers' membarrier() takes ms, so a thread
 * makes it: before, both sides fence; afterwards no send fences.
 */
static void registered_by_a_thread(void **state)
{
	const struct timespec moment = {.tv_nsec = 1000000};
	unsigned int sent = 0;
	struct end c, d;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, nothing, NULL), 0);
	pthread_join(thread, NULL);
	end_open(&c, fresh_id());
	end_open(&d, fresh_id());
	if (shm_iface(c.iface)->fences)
		skip(); /* no membarrier() here */
	assert_int_not_equal(shm_iface(c.iface)->registers, 0);
	end_connect(&c, &d);
	for (int i = 0; i < 5000 && (shm_ep(c.lane_ep)->fences || shm_ep(d.lane_ep)->fences); i++) {
		assert_int_equal(end_send(c.lane_ep, sent++, 100), 0);
		end_run(&c, &d, &d.received, sent, 5);
		nanosleep(&moment, NULL);
	}
	assert_true(shm_iface(c.iface)->registered && shm_iface(d.iface)->registered);
	assert_false(shm_ep(c.lane_ep)->fences || shm_ep(d.lane_ep)->fences);
	/* One that closes while its thread registers waits for it. */
	end_close(&c);
	end_open(&c, fresh_id());
	end_close(&c);
	end_close(&d);
}

static void a_sleeper_is_woken(void **state)
{
	struct comp sent = {.base.done = on_done};
	uint64_t n, due = UINT64_MAX;
	struct iovec iov = {.iov_base = &n, .iov_len = sizeof(n)};

	(void)state;
	end_connect(&a, &b);
	for (n = 0; n < 100; n++) {
		arm(&b);
		assert_false(readable(&b, 0));
		assert_int_equal(end_send(a.lane_ep, n, 8), 0);
		assert_true(readable(&b, 5000));
		b.iface->ops->disarm(b.iface);
		end_run(&b, NULL, &b.received, (unsigned int)n + 1, 10);
	}
	assert_int_equal(end_counter(&a, "tx.wakes"), 100);
	/* What came before is not slept over. */
	assert_int_equal(end_send(a.lane_ep, n, 8), 0);
	assert_int_equal(b.iface->ops->arm(b.iface, 1, &due), -EBUSY);
	end_run(&b, NULL, &b.received, 101, 10);
	/* The peer that takes the message wakes the thread that waits for its completion. */
	n = 101;
	assert_int_equal(
		a.iface->ops->am_zcopy(a.lane_ep, END_AM, NULL, 0, &iov, 1, NULL, &sent.base), 0);
	arm(&a);
	end_run(&b, NULL, &b.received, 102, 10);
	assert_true(readable(&a, 5000));
	a.iface->ops->disarm(a.iface);
	end_run(&a, NULL, &sent.done, 1, 10);
	/* An end is news, too. */
	arm(&a);
	b.lane_ep->ops->ep_destroy(b.lane_ep);
	assert_true(readable(&a, 5000));
	a.iface->ops->disarm(a.iface);
	end_run(&a, NULL, &a.gones, 1, 10);
	arm(&a);
	assert_false(readable(&a, 0));
}

static void many_peers_are_all_served(void **state)
{
	enum { PEERS = 40 };
	static struct end peers[PEERS];
	unsigned int i, round;

	(void)state;
	for (i = 0; i < PEERS; i++) {
		end_open(&peers[i], fresh_id());
		end_connect(&peers[i], &a);
	}
	for (round = 0; round < 20; round++)
		for (i = 0; i < PEERS; i++) {
			a.next = round;
			assert_int_equal(end_send(peers[i].lane_ep, round, 100), 0);
			end_run(&a, NULL, &a.received, round * PEERS + i + 1, 10);
		}
	assert_int_equal(a.wrong, 0);
	for (i = 0; i < PEERS; i += 2)
		end_close(&peers[i]);
	end_run(&a, NULL, &a.gones, PEERS / 2, 10);
	for (i = 1; i < PEERS; i += 2) {
		a.next = 0;
		assert_int_equal(end_send(peers[i].lane_ep, 0, 100), 0);
	}
	end_run(&a, NULL, &a.received, 20 * PEERS + PEERS / 2, 10);
	for (i = 1; i < PEERS; i += 2)
		end_close(&peers[i]);
	end_run(&a, NULL, &a.gones, PEERS, 10);
	assert_int_equal(end_counter(&a, "conn.open"), 0);
}

enum { TOGETHER = 10 }; /* fewer than SHM_HALF_ONE */

static void connect_some(struct end *from, struct end *to, struct weft_lane_ep **lane_ep)
{
	unsigned int ups = from->ups + TOGETHER;
	uint8_t addr[SHM_ADDR_LEN];

	to->iface->ops->get_address(to->iface, addr);
	for (unsigned int i = 0; i < TOGETHER; i++)
		assert_int_equal(from->iface->ops->ep_connect(from->iface, addr, sizeof(addr), from,
							      &lane_ep[i]),
				 0);
	end_run(from, to, &from->ups, ups, 10);
}

/*
 * As of the processes of a large host. But few ifaces are enough, each of which takes memory of
 * /dev/shm, and connections that are made together wait for a thread together.
 */
static void thousands_of_connections_are_served(void **state)
{
	enum { PEERS = 13, EACH = 100, CONNS = PEERS * EACH };
	static struct weft_lane_ep *lane_ep[CONNS];
	static struct end peers[PEERS];
	unsigned int i;

	(void)state;
	for (i = 0; i < PEERS; i++)
		end_open(&peers[i], fresh_id());
	for (i = 0; i < CONNS; i += TOGETHER)
		connect_some(&peers[i / EACH], &a, &lane_ep[i]);
	assert_int_equal(end_counter(&a, "conn.open"), CONNS);
	for (i = 0; i < CONNS; i += 13) {
		a.next = 0;
		assert_int_equal(end_send(lane_ep[i], 0, 100), 0);
		end_run(&a, NULL, &a.received, i / 13 + 1, 10);
	}
	assert_int_equal(a.wrong, 0);
	for (i = 0; i < PEERS; i++)
		end_close(&peers[i]);
	end_run(&a, NULL, &a.gones, CONNS, 10);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(messages_of_all_lengths_go_both_ways),
		TEST(kept_buffers_stop_no_sender),
		TEST(completions_mean_that_it_arrived),
		TEST(completions_end_with_the_lane),
		TEST(what_the_peer_took_is_no_error_of_the_end),
		TEST(what_the_peer_took_before_it_died_is_delivered),
		TEST(unread_messages_end_with_an_error),
		TEST(destroyed_inside_its_callback),
		TEST(no_process_listens_any_more),
		TEST(other_places_are_not_reached),
		TEST(a_process_that_waits_for_a_descriptor_is_logged),
		TEST(strange_hellos_are_refused),
		TEST(a_full_table_refuses_and_counts),
		TEST(half_connections_are_bounded),
		TEST(a_sleeper_is_woken),
		TEST(registered_by_a_thread),
		TEST(many_peers_are_all_served),
		TEST(thousands_of_connections_are_served),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
