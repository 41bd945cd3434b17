/* SPDX-License-Identifier: BSD-3-Clause */

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_hash_crc.h>

#include "cat/flow.h"
#include "common/cli.h"
#include "common/program.h"

/* ---- standard input and output -------------------------------------------------------------- */

/*
 * Calls on standard input and output do not block, because the lanes must make progress while a
 * reader or writer is slow. O_NONBLOCK is a flag of the open file description, which other
 * processes share (a shell and its terminal). So pipes and terminals are opened again through
 * /proc/self/fd. If that fails, poll() precedes each call, and writes are short.
 */

enum cat_kind {
	CAT_PLAIN, /**< a file or /dev/null, whose calls block only for a short time */
	CAT_NONBLOCK,
	CAT_SOCKET,
	CAT_POLLED,
};

struct cat_io {
	int fd; /**< -1 = closed */
	enum cat_kind kind;
	bool output;
};

/* A larger pipe takes fewer system calls; the kernel may refuse this size. */
#define PIPE_BYTES (1 << 20)

static enum cat_kind open_anew(int fd, bool output)
{
	char path[32];
	int again;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, (output ? O_WRONLY : O_RDONLY) | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (again < 0)
		return CAT_POLLED;
	/* While the old descriptor is open, the pipe's other end sees no end of file. */
	if (dup2(again, fd) < 0) {
		close(again);
		return CAT_POLLED;
	}
	close(again);
	return CAT_NONBLOCK;
}

/* The stream owns @p fd until cat_io_close() closes it. */
static void cat_io_open(struct cat_io *io, int fd, bool output)
{
	struct stat st;

	io->fd = fd;
	io->output = output;
	io->kind = CAT_PLAIN;
	if (fstat(fd, &st))
		return;
	if (S_ISSOCK(st.st_mode))
		io->kind = CAT_SOCKET;
	else if (S_ISFIFO(st.st_mode) || isatty(fd))
		io->kind = open_anew(fd, output);
	if (S_ISFIFO(st.st_mode))
		fcntl(fd, F_SETPIPE_SZ, PIPE_BYTES);
}

static bool ready(const struct cat_io *io)
{
	struct pollfd pfd = {.fd = io->fd, .events = io->output ? POLLOUT : POLLIN};

	return poll(&pfd, 1, 0) > 0;
}

static ssize_t result(ssize_t n)
{
	if (n >= 0)
		return n;
	return errno == EINTR || errno == EWOULDBLOCK ? -EAGAIN : -errno;
}

/* @return bytes, 0 = end, -EAGAIN = no bytes now, or a negative error */
static ssize_t cat_io_read(struct cat_io *io, void *buf, size_t len)
{
	if (io->kind == CAT_SOCKET)
		return result(recv(io->fd, buf, len, MSG_DONTWAIT));
	if (io->kind == CAT_POLLED && !ready(io))
		return -EAGAIN;
	return result(read(io->fd, buf, len));
}

/* @return bytes, -EAGAIN = no space now, or a negative error (-EPIPE: the reader has closed) */
static ssize_t cat_io_write(struct cat_io *io, const void *buf, size_t len)
{
	if (io->kind == CAT_SOCKET)
		return result(send(io->fd, buf, len, MSG_DONTWAIT | MSG_NOSIGNAL));
	if (io->kind == CAT_POLLED) {
		if (!ready(io))
			return -EAGAIN;
		/* poll() promises space for PIPE_BUF bytes of a pipe. */
		len = len < PIPE_BUF ? len : PIPE_BUF;
	}
	return result(write(io->fd, buf, len));
}

static bool cat_io_can_poll(const struct cat_io *io)
{
	return io->fd >= 0 && io->kind != CAT_PLAIN;
}

/* The kernel reports some errors of writes only when the file is closed: ENOSPC, EIO. */
static int cat_io_close(struct cat_io *io)
{
	int ret = io->fd >= 0 && close(io->fd) ? -errno : 0;

	io->fd = -1;
	return ret;
}

/* ---- streams -------------------------------------------------------------------------------- */

#define TAG_TO_SERVER 0x7743415400000001ull
#define TAG_TO_CLIENT 0x7743415400000002ull
/* After this time a descriptor that had no data, or no space, is tried again. */
#define RETRY_SECONDS 20e-6
/* The loop polls for this time after the last event, then it sleeps. */
#define IDLE_SECONDS 50e-6
/* Longest sleep: signals, the TCP connection and the progress line are checked in between. */
#define SLEEP_NS_MAX 100000000
#define SLEEP_NS_BLIND 1000000 /* longest sleep if the worker has no descriptor to poll */
#define LINE_SECONDS 0.5
#define CLEAR_LINE "\r\033[K"

enum chunk_state { CHUNK_FREE, CHUNK_POSTED, CHUNK_FULL };

struct chunk {
	struct stream *stream;
	enum chunk_state state;
	char *buffer;
	size_t length;
	bool summed; /* receiver: the chunk's bytes are in the stream's CRC */
	struct weft_op_params params;
};

struct stream {
	struct cat_io io;
	uint64_t tag;
	uint64_t chunk, window;
	struct chunk *chunks;
	uint64_t head, tail; /* numbers of the next chunk to post, of the oldest one in use */
	size_t at;           /* bytes read into chunk `head`, written of chunk `tail` */
	uint64_t bytes;
	uint32_t crc;
	uint64_t retry; /* TSC at which the descriptor is tried again */
	bool ended;     /* in: the empty message was sent; out: the output is closed */
	bool confirmed;
	int error;
	uint64_t too_long; /* out: length of a message longer than announced; 0 = none */
};

/* The members go over TCP as little-endian numbers. */
struct totals {
	uint64_t bytes, crc;
	uint64_t written; /* 1: bytes that the sender wrote to its output; 0: that it read */
};

struct cat {
	const struct cat_options *opts;
	struct peer *peer;
	struct stream in, out;
	struct totals theirs;
	bool theirs_known;
	bool moved;
	uint64_t retry_ticks;
	double line_time;
	uint64_t line_in, line_out;
};

/* ---- chunks */

static void on_received(struct weft_request *req, const struct weft_completion *comp, void *arg);

static int make_stream(struct stream *s, uint64_t tag, uint64_t chunk, uint64_t window,
		       weft_complete_cb cb)
{
	s->tag = tag;
	s->chunk = chunk;
	s->window = window;
	s->chunks = calloc(window, sizeof(*s->chunks));
	if (!s->chunks)
		return -ENOMEM;
	for (uint64_t i = 0; i < window; i++) {
		struct chunk *c = &s->chunks[i];

		if (posix_memalign((void **)&c->buffer, 4096, chunk))
			return -ENOMEM;
		c->stream = s;
		c->params = WEFT_INIT(struct weft_op_params, .cb = cb, .cb_arg = c,
				      .flags = cb == on_received ? WEFT_OP_F_FORCE_REQUEST : 0);
	}
	return 0;
}

static struct chunk *chunk_at(const struct stream *s, uint64_t number)
{
	return &s->chunks[number % s->window];
}

static void free_stream(struct stream *s)
{
	for (uint64_t i = 0; s->chunks && i < s->window; i++)
		free(s->chunks[i].buffer);
	free(s->chunks);
}

static bool too_early(const struct stream *s)
{
	return s->retry && rte_rdtsc() < s->retry;
}

/* ---- standard input to the peer */

static void on_sent(struct weft_request *req, const struct weft_completion *comp, void *arg)
{
	struct chunk *c = arg;

	(void)req;
	c->state = CHUNK_FREE;
	if (comp->status)
		c->stream->error = comp->status;
}

static void send_chunk(struct cat *c, size_t length)
{
	struct stream *s = &c->in;
	struct chunk *chunk = chunk_at(s, s->head);
	int ret;

	chunk->state = CHUNK_POSTED;
	s->crc = rte_hash_crc(chunk->buffer, (uint32_t)length, s->crc);
	s->bytes += length;
	s->head++;
	s->at = 0;
	ret = weft_tag_send(c->peer->ep, chunk->buffer, length, s->tag, &chunk->params, NULL);
	if (ret < 0)
		s->error = ret;
	else if (ret == 0)
		chunk->state = CHUNK_FREE;
	c->moved = true;
}

static int send_totals(struct cat *c, const struct stream *s, bool written)
{
	struct totals t = {htole64(s->bytes), htole64(s->crc), htole64(written)};

	return peer_send(c->peer, OOB_RESULT, &t, sizeof(t));
}

static uint64_t in_flight(struct stream *s)
{
	while (s->tail < s->head && chunk_at(s, s->tail)->state == CHUNK_FREE)
		s->tail++;
	return s->head - s->tail;
}

static int end_input(struct cat *c)
{
	if (c->in.at)
		send_chunk(c, c->in.at);
	if (in_flight(&c->in) >= c->in.window)
		return 0; /* read_some() calls again when a chunk is free */
	send_chunk(c, 0);
	c->in.ended = true;
	cat_io_close(&c->in.io);
	return send_totals(c, &c->in, false);
}

static int read_some(struct cat *c)
{
	struct stream *s = &c->in;
	uint64_t flying = in_flight(s);
	ssize_t n;

	if (s->ended || flying >= s->window || too_early(s))
		return 0;
	n = cat_io_read(&s->io, chunk_at(s, s->head)->buffer + s->at, s->chunk - s->at);
	s->retry = 0;
	if (n > 0) {
		s->at += (size_t)n;
		c->moved = true;
		if (s->at == s->chunk)
			send_chunk(c, s->at);
		return 0;
	}
	if (n == 0)
		return end_input(c);
	if (n != -EAGAIN) {
		cli_error("can't read standard input: %s", strerror((int)-n));
		return peer_fail(c->peer, APP_FAIL);
	}
	s->retry = rte_rdtsc() + c->retry_ticks;
	/* With 2 messages in flight the lanes are busy, so the chunk may wait for more bytes. */
	if (s->at && flying < 2)
		send_chunk(c, s->at);
	return 0;
}

/* ---- from the peer to standard output */

static void on_received(struct weft_request *req, const struct weft_completion *comp, void *arg)
{
	struct chunk *c = arg;

	(void)req;
	/* comp->length is the whole length, also of a message that is longer than its buffer. */
	if (comp->status == -EMSGSIZE || comp->length > c->stream->chunk)
		c->stream->too_long = comp->length;
	else if (comp->status && comp->status != -ECANCELED)
		c->stream->error = comp->status;
	c->state = comp->status || c->stream->too_long ? CHUNK_FREE : CHUNK_FULL;
	c->summed = false;
	c->length = comp->length;
}

static void post_receives(struct cat *c)
{
	struct stream *s = &c->out;

	while (!s->ended && s->head - s->tail < s->window) {
		struct chunk *chunk = chunk_at(s, s->head);
		int ret;

		chunk->state = CHUNK_POSTED;
		s->head++;
		ret = weft_tag_recv(c->peer->worker, NULL, chunk->buffer, s->chunk, s->tag,
				    WEFT_TAG_MASK_FULL, &chunk->params, NULL);
		if (ret < 0) {
			s->error = ret;
			return;
		}
	}
}

/* The output is closed at the empty message, so that its reader sees the end at once. */
static int end_output(struct cat *c)
{
	struct stream *s = &c->out;
	int ret = cat_io_close(&s->io);

	s->ended = true;
	c->moved = true;
	if (!ret)
		return send_totals(c, s, true);
	cli_error("can't finish standard output: %s", strerror(-ret));
	return peer_fail(c->peer, APP_FAIL);
}

static int write_failed(struct cat *c, int err)
{
	if (err == -EPIPE || err == -ECONNRESET)
		cli_error("standard output was closed by its reader before the end");
	else
		cli_error("can't write standard output: %s", strerror(-err));
	return peer_fail(c->peer, APP_FAIL);
}

static int write_some(struct cat *c)
{
	struct stream *s = &c->out;
	struct chunk *chunk = chunk_at(s, s->tail);
	ssize_t n;

	if (s->ended || s->tail == s->head || chunk->state != CHUNK_FULL || too_early(s))
		return 0;
	s->retry = 0;
	if (chunk->length == 0)
		return end_output(c);
	if (!chunk->summed)
		s->crc = rte_hash_crc(chunk->buffer, (uint32_t)chunk->length, s->crc);
	chunk->summed = true;
	n = cat_io_write(&s->io, chunk->buffer + s->at, chunk->length - s->at);
	if (n == -EAGAIN) {
		s->retry = rte_rdtsc() + c->retry_ticks;
		return 0;
	}
	if (n < 0)
		return write_failed(c, (int)n);
	c->moved = true;
	s->at += (size_t)n;
	s->bytes += (uint64_t)n;
	if (s->at < chunk->length)
		return 0;
	s->at = 0;
	s->tail++;
	post_receives(c);
	return 0;
}

/* ---- the bytes written must be the bytes read */

static int compare(struct cat *c, const struct stream *s, const struct totals *t, const char *what)
{
	if (s->bytes == t->bytes && s->crc == t->crc)
		return APP_OK;
	cli_error("%s: %" PRIu64 " bytes (CRC %08x) here, %" PRIu64
		  " bytes (CRC %08x) at the other end",
		  what, s->bytes, s->crc, t->bytes, (uint32_t)t->crc);
	return peer_fail(c->peer, APP_DATA);
}

static int recv_totals(struct cat *c)
{
	struct totals t;
	int ret = peer_take(c->peer, OOB_RESULT, &t, sizeof(t));

	if (ret)
		return ret == -EAGAIN ? APP_OK : ret;
	c->moved = true;
	t = (struct totals){le64toh(t.bytes), le64toh(t.crc), le64toh(t.written)};
	if (t.written) {
		c->in.confirmed = true;
		return compare(c, &c->in, &t, "the peer wrote other bytes than were sent");
	}
	c->theirs = t;
	c->theirs_known = true;
	return 0;
}

/* turn() calls this function before each write: bytes of a failed receive are no data. */
static int check_streams(struct cat *c)
{
	int error = c->in.error ? c->in.error : c->out.error;

	if (c->out.too_long) {
		cli_error("the peer sent a message of %" PRIu64 " bytes; it had announced at "
			  "most %" PRIu64,
			  c->out.too_long, c->out.chunk);
		return peer_fail(c->peer, APP_PEER);
	}
	return error ? peer_fail_op(c->peer, "the stream broke", error) : APP_OK;
}

static int check_ends(struct cat *c)
{
	int ret = 0;

	if (!c->in.confirmed || !c->theirs_known)
		ret = recv_totals(c);
	if (!ret && c->out.ended && c->theirs_known && !c->out.confirmed) {
		c->out.confirmed = true;
		ret = compare(c, &c->out, &c->theirs, "other bytes were received than were sent");
	}
	return ret ? ret : check_streams(c);
}

/* ---- the line on the terminal */

static void human(uint64_t bytes, char *buf, size_t len)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
	double value = (double)bytes;
	unsigned int unit = 0;

	while (value >= 1024 && unit + 1 < sizeof(units) / sizeof(units[0])) {
		value /= 1024;
		unit++;
	}
	snprintf(buf, len, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
}

static void progress_line(struct cat *c, double seconds, const char *begin, const char *end)
{
	uint64_t in = c->in.bytes - c->line_in, out = c->out.bytes - c->line_out;
	char text[4][32];

	if (seconds <= 0)
		return;
	human(c->in.bytes, text[0], sizeof(text[0]));
	human((uint64_t)((double)in / seconds), text[1], sizeof(text[1]));
	human(c->out.bytes, text[2], sizeof(text[2]));
	human((uint64_t)((double)out / seconds), text[3], sizeof(text[3]));
	fprintf(stderr, "%ssent %s (%s/s), received %s (%s/s)%s", begin, text[0], text[1], text[2],
		text[3], end);
}

static void maybe_line(struct cat *c)
{
	double now = sys_seconds();

	if (now - c->line_time < LINE_SECONDS)
		return;
	progress_line(c, now - c->line_time, CLEAR_LINE, "");
	c->line_time = now;
	c->line_in = c->in.bytes;
	c->line_out = c->out.bytes;
}

/* ---- the loop */

static void rest(struct cat *c)
{
	struct pollfd fds[4];
	struct timespec ts = {.tv_nsec = SLEEP_NS_MAX};
	int lanes = weft_worker_get_fd(c->peer->worker);
	nfds_t count = 0;

	if (lanes < 0)
		ts.tv_nsec = SLEEP_NS_BLIND;
	else if (weft_worker_arm(c->peer->worker))
		return;
	else
		fds[count++] = (struct pollfd){.fd = lanes, .events = POLLIN};

	if (!c->in.ended && in_flight(&c->in) < c->in.window && cat_io_can_poll(&c->in.io))
		fds[count++] = (struct pollfd){.fd = c->in.io.fd, .events = POLLIN};
	if (!c->out.ended && chunk_at(&c->out, c->out.tail)->state == CHUNK_FULL &&
	    cat_io_can_poll(&c->out.io))
		fds[count++] = (struct pollfd){.fd = c->out.io.fd, .events = POLLOUT};
	fds[count++] = (struct pollfd){.fd = oob_fd(c->peer->oob), .events = POLLIN};
	ppoll(fds, count, &ts, NULL);
	c->in.retry = 0;
	c->out.retry = 0;
}

static int turn(struct cat *c)
{
	uint64_t events = c->peer->events;
	int ret;

	if (peer_poll(c->peer))
		return c->peer->exit_code;
	c->moved = c->peer->events != events;
	ret = check_streams(c);
	if (!ret)
		ret = write_some(c);
	if (!ret)
		ret = read_some(c);
	return ret ? ret : check_ends(c);
}

static int loop(struct cat *c, bool line)
{
	double idle_since = 0;
	uint32_t turns = 0;
	int ret;

	while (!c->in.confirmed || !c->out.confirmed) {
		ret = turn(c);
		if (ret)
			return ret;
		if (line && (++turns & 255) == 0)
			maybe_line(c);
		if (c->moved) {
			idle_since = 0;
			continue;
		}
		if (!idle_since)
			idle_since = sys_seconds();
		if (sys_seconds() - idle_since < IDLE_SECONDS) {
			/* The process at the other end of a pipe may need this core. */
			sched_yield();
			continue;
		}
		rest(c);
		if (line)
			maybe_line(c);
		if (peer_check(c->peer))
			return c->peer->exit_code;
	}
	return APP_OK;
}

/* ---- set-up */

/* Receives must have room for the peer's largest message, which its option -b sets. */
static int agree(struct cat *c, uint64_t *chunk)
{
	uint64_t mine = htole64(c->opts->chunk);
	int ret = peer_send(c->peer, OOB_PARAMS, &mine, sizeof(mine));

	if (!ret)
		ret = peer_recv(c->peer, OOB_PARAMS, chunk, sizeof(*chunk));
	*chunk = le64toh(*chunk);
	if (!ret && (!*chunk || *chunk > CAT_CHUNK_MAX)) {
		cli_error("the peer sent an invalid message size, %" PRIu64
			  " bytes; are both ends the same version?",
			  *chunk);
		ret = peer_fail(c->peer, APP_PEER);
	}
	return ret;
}

static int set_up(struct cat *c)
{
	bool server = c->peer->server;
	uint64_t chunk = 0;
	int ret = agree(c, &chunk);

	if (ret)
		return ret;
	cat_io_open(&c->in.io, STDIN_FILENO, false);
	cat_io_open(&c->out.io, STDOUT_FILENO, true);
	c->retry_ticks = (uint64_t)(RETRY_SECONDS * (double)rte_get_tsc_hz());
	ret = make_stream(&c->in, server ? TAG_TO_CLIENT : TAG_TO_SERVER, c->opts->chunk,
			  c->opts->window, on_sent);
	if (!ret)
		ret = make_stream(&c->out, server ? TAG_TO_SERVER : TAG_TO_CLIENT, chunk,
				  c->opts->window, on_received);
	if (ret) {
		cli_error("no memory for %" PRIu64 " messages of %" PRIu64 " bytes; see -b and -O",
			  c->opts->window, c->opts->chunk);
		return peer_fail(c->peer, APP_FAIL);
	}
	post_receives(c);
	ret = peer_barrier(c->peer);
	/* Before the barrier the peer expects no other out-of-band message. */
	return ret || !c->opts->no_stdin ? ret : end_input(c);
}

struct cat *cat_new(const struct cat_options *opts, struct peer *p)
{
	struct cat *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->opts = opts;
	c->peer = p;
	return c;
}

int cat_run(struct cat *c)
{
	bool line = !c->opts->quiet && isatty(STDERR_FILENO) && !isatty(STDOUT_FILENO);
	double begin = sys_seconds();
	char losses[2048];
	int ret = set_up(c);

	c->line_time = begin;
	if (!ret)
		ret = loop(c, line);
	c->line_in = 0;
	c->line_out = 0;
	if (line)
		fputs(CLEAR_LINE, stderr);
	if (line || c->opts->summary) {
		progress_line(c, sys_seconds() - begin, "", "\n");
		lane_losses(c->peer, losses, sizeof(losses));
		fprintf(stderr, "%s\n", losses);
	}
	return ret;
}

void cat_free(struct cat *c)
{
	if (!c)
		return;
	free_stream(&c->in);
	free_stream(&c->out);
	free(c);
}
