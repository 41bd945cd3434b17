/* SPDX-License-Identifier: BSD-3-Clause */

#include "world.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/pattern.h"

#define VERSION FI_VERSION(1, 17)

int world_side;
static int channel;
pid_t world_child;

/* ------------------------------------------------------------------ two processes */

void world_begin(void)
{
	int fds[2];

	setenv("FI_PROVIDER", "weft", 1);
	setenv("FI_WEFT_LANES", "shm", 1);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) < 0)
		exit(2);
	fflush(NULL);
	world_child = fork();
	if (world_child < 0)
		exit(2);
	world_side = world_child == 0;
	channel = fds[world_side];
	close(fds[!world_side]);
	if (world_side == 1) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(STDERR_FILENO, STDOUT_FILENO);
	}
	signal(SIGPIPE, SIG_IGN);
}

int world_end(int failed)
{
	int status = 0;

	close(channel);
	if (world_side == 1)
		exit(failed != 0);
	kill(world_child, SIGCONT); /* a test that has failed may have stopped it */
	waitpid(world_child, &status, 0);
	if (WIFSIGNALED(status))
		fprintf(stderr, "side 1 was killed by signal %d\n", WTERMSIG(status));
	else if (status != 0)
		fprintf(stderr, "side 1 failed\n");
	return failed == 0 && status != 0 ? 1 : failed;
}

/*
 * The sides run different tests, or one of them has ended: a failure above is the cause. Tests that
 * follow would fail without one of their own.
 */
static void __attribute__((noreturn)) out_of_step(void)
{
	fprintf(stderr, "side %d: the other side has failed: the tests end here\n", world_side);
	exit(world_end(1));
}

void world_give(const void *data, size_t length)
{
	if (write(channel, data, length) != (ssize_t)length)
		out_of_step();
}

void world_take(void *data, size_t length)
{
	size_t have = 0;
	ssize_t n;

	while (have < length) {
		n = read(channel, (char *)data + have, length - have);
		if (n <= 0)
			out_of_step();
		have += (size_t)n;
	}
}

void world_barrier(void)
{
	char c = 'b';

	world_give(&c, 1);
	world_take(&c, 1);
	if (c != 'b')
		out_of_step();
}

void world_barrier_progress(struct world *w)
{
	struct pollfd fd = {.fd = channel, .events = POLLIN};
	char c = 'b';

	world_give(&c, 1);
	while (poll(&fd, 1, 0) == 0) {
		if (w->cq)
			fi_cq_read(w->cq, NULL, 0);
		else
			fi_cntr_read(w->received);
	}
	world_take(&c, 1);
	if (c != 'b')
		out_of_step();
}

/* ------------------------------------------------------------------ opening */

void check_rc(ssize_t rc, const char *call, const char *file, int line)
{
	if (rc < 0)
		fprintf(stderr, "side %d: %s: %s\n", world_side, call, fi_strerror((int)-rc));
	_assert_true(rc >= 0, call, file, line);
}

struct fi_info *world_hints(const struct world_params *world_params)
{
	struct fi_info *hints = fi_allocinfo();

	assert_non_null(hints);
	hints->caps = world_params->caps;
	hints->addr_format = world_params->text ? FI_ADDR_STR : FI_FORMAT_UNSPEC;
	hints->fabric_attr->prov_name = strdup("weft");
	hints->ep_attr->type = FI_EP_RDM;
	hints->tx_attr->op_flags = world_params->tx_flags;
	hints->tx_attr->msg_order = world_params->order ? FI_ORDER_SAS | world_params->order : 0;
	hints->tx_attr->inject_size = world_params->inject_size;
	hints->domain_attr->data_progress = world_params->progress;
	hints->domain_attr->mr_mode =
		(world_params->app_keys ? 0 : FI_MR_PROV_KEY) | FI_MR_ALLOCATED | FI_MR_LOCAL;
	if (world_params->auth_key) {
		hints->domain_attr->auth_key = malloc(32);
		memcpy(hints->domain_attr->auth_key, world_params->auth_key, 32);
		hints->domain_attr->auth_key_size = 32;
	}
	return hints;
}

static void open_queues(struct world *w, const struct world_params *world_params)
{
	struct fi_cq_attr cq_attr = {
		.format = world_params->format ? world_params->format : FI_CQ_FORMAT_TAGGED,
		.wait_obj = world_params->wait_obj,
	};
	struct fi_cntr_attr cntr_attr = {.wait_obj = world_params->wait_obj};

	if (world_params->caps & FI_RMA_EVENT) {
		CHECK(fi_cntr_open(w->domain, &cntr_attr, &w->written, NULL));
		CHECK(fi_cntr_open(w->domain, &cntr_attr, &w->read, NULL));
		CHECK(fi_ep_bind(w->ep, &w->written->fid, FI_REMOTE_WRITE));
		CHECK(fi_ep_bind(w->ep, &w->read->fid, FI_REMOTE_READ));
	}
	if (world_params->counters) {
		CHECK(fi_cntr_open(w->domain, &cntr_attr, &w->sent, NULL));
		CHECK(fi_cntr_open(w->domain, &cntr_attr, &w->received, NULL));
		CHECK(fi_ep_bind(w->ep, &w->sent->fid, FI_SEND | FI_WRITE | FI_READ));
		CHECK(fi_ep_bind(w->ep, &w->received->fid, FI_RECV));
		return;
	}
	CHECK(fi_cq_open(w->domain, &cq_attr, &w->cq, NULL));
	CHECK(fi_ep_bind(w->ep, &w->cq->fid, FI_TRANSMIT | FI_RECV | world_params->cq_flags));
}

void world_open_at(struct world *w, const struct world_params *world_params, const char *node,
		   const char *service, uint64_t flags)
{
	struct fi_info *hints = world_hints(world_params);
	struct fi_av_attr av_attr = {0};

	*w = (struct world){.me = world_side, .other = !world_side};
	CHECK(fi_getinfo(VERSION, node, service, flags, hints, &w->info));
	fi_freeinfo(hints);
	CHECK(fi_fabric(w->info->fabric_attr, &w->fabric, NULL));
	CHECK(fi_domain(w->fabric, w->info, &w->domain, NULL));
	CHECK(fi_av_open(w->domain, &av_attr, &w->av, NULL));
	CHECK(fi_endpoint(w->domain, w->info, &w->ep, NULL));
	CHECK(fi_ep_bind(w->ep, &w->av->fid, 0));
	open_queues(w, world_params);
	CHECK(fi_enable(w->ep));
}

void world_open(struct world *w, const struct world_params *world_params)
{
	uint8_t mine[64], other[64];
	size_t length = sizeof(mine);

	world_open_at(w, world_params, NULL, NULL, 0);
	CHECK(fi_getname(&w->ep->fid, mine, &length));
	assert_int_equal(length, sizeof(mine));
	world_give(mine, sizeof(mine));
	world_take(other, sizeof(other));
	assert_int_equal(fi_av_insert(w->av, other, 1, &w->peer, 0, NULL), 1);
	assert_int_equal(fi_av_insert(w->av, mine, 1, &w->self, 0, NULL), 1);
	world_barrier();
}

void world_close_ep(struct world *w)
{
	CHECK(fi_close(&w->ep->fid));
	w->ep = NULL;
}

void world_shut(struct world *w)
{
	if (w->ep)
		world_close_ep(w);
	if (w->cq)
		CHECK(fi_close(&w->cq->fid));
	if (w->sent) {
		CHECK(fi_close(&w->sent->fid));
		CHECK(fi_close(&w->received->fid));
	}
	if (w->written) {
		CHECK(fi_close(&w->written->fid));
		CHECK(fi_close(&w->read->fid));
	}
	CHECK(fi_close(&w->av->fid));
	CHECK(fi_close(&w->domain->fid));
	CHECK(fi_close(&w->fabric->fid));
	fi_freeinfo(w->info);
}

void world_close(struct world *w)
{
	world_barrier_progress(w);
	world_shut(w);
	world_barrier();
}

void world_free_port(char port[8])
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(a);
	int fd;

	if (world_side == 1) {
		world_take(port, 8);
		return;
	}
	memset(port, 0, 8);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &size), 0);
	close(fd);
	snprintf(port, 8, "%u", ntohs(a.sin_port));
	world_give(port, 8);
}

/* ------------------------------------------------------------------ completions */

static ssize_t next(struct world *w, struct fi_cq_tagged_entry *entry, fi_addr_t *source)
{
	ssize_t n;

	do {
		n = fi_cq_readfrom(w->cq, entry, 1, source);
	} while (n == -FI_EAGAIN);
	return n;
}

static void fail_on_error(struct world *w)
{
	struct fi_cq_err_entry error = {0};

	fi_cq_readerr(w->cq, &error, 0);
	fail_msg("side %d: an operation with flags %#llx failed: %s, of Weft: %d", world_side,
		 (unsigned long long)error.flags, fi_strerror(error.err), error.prov_errno);
}

struct fi_cq_tagged_entry world_next(struct world *w, fi_addr_t *source)
{
	struct fi_cq_tagged_entry entry = {0};
	fi_addr_t from = FI_ADDR_NOTAVAIL;
	ssize_t n = next(w, &entry, &from);

	if (n == -FI_EAVAIL)
		fail_on_error(w);
	assert_int_equal(n, 1);
	if (source)
		*source = from;
	return entry;
}

struct fi_cq_err_entry world_next_error(struct world *w)
{
	struct fi_cq_tagged_entry entry = {0};
	struct fi_cq_err_entry error = {0};
	fi_addr_t from;

	assert_int_equal(next(w, &entry, &from), -FI_EAVAIL);
	assert_int_equal(fi_cq_readerr(w->cq, &error, 0), 1);
	return error;
}

void world_send(struct world *w, const void *buf, size_t length, uint64_t tag)
{
	struct fi_cq_tagged_entry entry;

	CHECK(fi_tsend(w->ep, buf, length, NULL, w->peer, tag, &entry));
	entry = world_next(w, NULL);
	assert_ptr_equal(entry.op_context, &entry);
	assert_int_equal(entry.flags & (FI_SEND | FI_RECV | FI_TAGGED), FI_SEND | FI_TAGGED);
}

struct fi_cq_tagged_entry world_recv(struct world *w, void *buf, size_t length, uint64_t tag)
{
	struct fi_cq_tagged_entry entry;
	int context;

	CHECK(fi_trecv(w->ep, buf, length, NULL, w->peer, tag, 0, &context));
	entry = world_next(w, NULL);
	assert_ptr_equal(entry.op_context, &context);
	assert_int_equal(entry.flags & (FI_SEND | FI_RECV | FI_TAGGED), FI_RECV | FI_TAGGED);
	return entry;
}

/* ------------------------------------------------------------------ remote memory */

void world_region_open(struct world *w, struct world_region *r, size_t length, uint64_t access)
{
	uint64_t mine;

	r->memory = calloc(1, length);
	r->local = calloc(1, length);
	CHECK(fi_mr_reg(w->domain, r->memory, length, access, 0, 0, 0, &r->mr, NULL));
	mine = fi_mr_key(r->mr);
	world_give(&mine, sizeof(mine));
	world_take(&r->key, sizeof(r->key));
}

void world_region_close(struct world *w, struct world_region *r)
{
	world_barrier_progress(w);
	CHECK(fi_close(&r->mr->fid));
	free(r->memory);
	free(r->local);
}

/* ------------------------------------------------------------------ contents */

void world_fill(void *buf, size_t length, unsigned int seed)
{
	pattern_fill(seed, 0, buf, length);
}

void world_compare(const void *buf, size_t length, unsigned int seed)
{
	size_t right = pattern_check(seed, 0, buf, length);

	if (right != length)
		fail_msg("side %d: byte %zu of %zu is %#x, not of pattern %u", world_side, right,
			 length, ((const uint8_t *)buf)[right], seed);
}
