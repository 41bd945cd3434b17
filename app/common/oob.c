/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cli.h"
#include "common/oob.h"
#include "common/tls.h"
#include "lib/base/secret.h"
#include "lib/base/tcp.h"
#include "lib/base/text.h"

#define OOB_HEADER 12u

struct oob {
	int fd;
	struct tls *tls; /* NULL: messages are not encrypted */
	int status;      /* 0, or the error that ended the connection */
	uint32_t barriers;
	bool bye; /* a BYE is among the buffered messages, or was taken */
	int32_t bye_code;
	char bye_text[OOB_BYE_TEXT + 1];
	char name[96];
	size_t in_length;
	uint8_t in[4 * (OOB_HEADER + OOB_MAX)];
};

static uint8_t *oob_key; /* of TLS; NULL = none */

int oob_set_key(const uint8_t *job_key)
{
	int rc;

	weft_secret_free(oob_key, TLS_KEY_LEN);
	oob_key = NULL;
	if (!job_key)
		return 0;
	oob_key = weft_secret_alloc(TLS_KEY_LEN);
	if (!oob_key)
		return -ENOMEM;
	rc = tls_key_derive(job_key, oob_key);
	if (rc < 0)
		oob_set_key(NULL);
	return rc;
}

static inline void oob_put32(uint8_t *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> (8 * i));
}

static inline uint32_t oob_get32(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* ---- messages ------------------------------------------------------------------------------- */

#define OOB_MAGIC 0x4f544657u /* "WFTO" */
#define SEND_SECONDS 5.0

static void put_header(uint8_t *out, enum oob_type type, size_t length)
{
	oob_put32(out, OOB_MAGIC);
	oob_put32(out + 4, type);
	oob_put32(out + 8, (uint32_t)length);
}

static ssize_t put_bytes(struct oob *oob, const void *data, size_t length)
{
	ssize_t n;

	if (oob->tls)
		return tls_send(oob->tls, data, length);
	n = send(oob->fd, data, length, MSG_NOSIGNAL);
	return n < 0 ? -errno : n;
}

static ssize_t get_bytes(struct oob *oob, void *data, size_t length)
{
	ssize_t n;

	if (oob->tls)
		return tls_recv(oob->tls, data, length);
	n = recv(oob->fd, data, length, 0);
	return n < 0 ? -errno : n;
}

int oob_send(struct oob *oob, enum oob_type type, const void *data, size_t length)
{
	uint8_t out[OOB_HEADER + OOB_MAX];
	double end = sys_seconds() + SEND_SECONDS;
	size_t sent = 0;

	if (length > OOB_MAX)
		return -EMSGSIZE;
	put_header(out, type, length);
	if (length)
		memcpy(out + OOB_HEADER, data, length);
	while (sent < OOB_HEADER + length) {
		ssize_t n = put_bytes(oob, out + sent, OOB_HEADER + length - sent);

		if (n >= 0) {
			sent += (size_t)n;
			continue;
		}
		if (n != -EAGAIN && n != -EINTR)
			return (int)n;
		if (sys_seconds() > end)
			return -ETIMEDOUT;
		poll(&(struct pollfd){.fd = oob->fd, .events = POLLOUT}, 1, 100);
	}
	return 0;
}

/* Length of the first buffered message with its header; 0 = incomplete; -EPROTO = wrong header. */
static ssize_t first_message(const struct oob *oob)
{
	uint32_t type, length;

	if (oob->in_length < OOB_HEADER)
		return 0;
	type = oob_get32(oob->in + 4);
	length = oob_get32(oob->in + 8);
	if (oob_get32(oob->in) != OOB_MAGIC || !type || type >= OOB_TYPES || length > OOB_MAX)
		return -EPROTO;
	return oob->in_length < OOB_HEADER + length ? 0 : (ssize_t)(OOB_HEADER + length);
}

/* A BYE takes effect when it arrives, before the messages in front of it are taken. */
static void look_for_bye(struct oob *oob)
{
	size_t at = 0;

	while (!oob->bye && oob->in_length - at >= OOB_HEADER) {
		const uint8_t *m = oob->in + at;
		size_t length = oob_get32(m + 8);

		if (length > OOB_MAX || oob->in_length - at < OOB_HEADER + length)
			return;
		if (oob_get32(m) == OOB_MAGIC && oob_get32(m + 4) == OOB_BYE && length >= 4) {
			oob->bye = true;
			oob->bye_code = (int32_t)oob_get32(m + OOB_HEADER);
			weft_text_copy(oob->bye_text, sizeof(oob->bye_text), m + OOB_HEADER + 4,
				       length - 4);
		}
		at += OOB_HEADER + length;
	}
}

int oob_poll(struct oob *oob)
{
	ssize_t n;

	if (oob->status)
		return oob->status;
	if (oob->in_length == sizeof(oob->in))
		return 0;
	n = get_bytes(oob, oob->in + oob->in_length, sizeof(oob->in) - oob->in_length);
	if (n > 0) {
		oob->in_length += (size_t)n;
		if (first_message(oob) < 0)
			oob->status = -EPROTO;
		else
			look_for_bye(oob);
	} else if (n == 0) {
		oob->status = -ECONNRESET;
	} else if (n != -EAGAIN && n != -EINTR) {
		oob->status = n == -ETIMEDOUT || n == -EPROTO ? (int)n : -ECONNRESET;
	}
	return oob->status;
}

uint32_t oob_next(const struct oob *oob)
{
	return first_message(oob) > 0 ? oob_get32(oob->in + 4) : 0;
}

int oob_take(struct oob *oob, enum oob_type type, void *data, size_t *length)
{
	ssize_t whole = first_message(oob);
	size_t payload;

	if (whole <= 0)
		return whole < 0 ? -EPROTO : oob->status ? oob->status : -EAGAIN;
	payload = (size_t)whole - OOB_HEADER;
	if (oob_get32(oob->in + 4) != (uint32_t)type)
		return oob_get32(oob->in + 4) == OOB_BYE ? -ESHUTDOWN : -EPROTO;
	if (payload > *length)
		return -EPROTO;
	if (payload)
		memcpy(data, oob->in + OOB_HEADER, payload);
	*length = payload;
	oob->in_length -= (size_t)whole;
	memmove(oob->in, oob->in + whole, oob->in_length);
	return 0;
}

int oob_recv(struct oob *oob, enum oob_type type, void *data, size_t *length, double timeout,
	     oob_idle_cb idle, void *arg)
{
	double end = sys_seconds() + timeout;
	int ret, stop;

	for (;;) {
		oob_poll(oob);
		ret = oob_take(oob, type, data, length);
		if (ret != -EAGAIN)
			return ret;
		stop = idle ? idle(arg) : 0;
		if (stop)
			return stop;
		if (!idle)
			poll(&(struct pollfd){.fd = oob->fd, .events = POLLIN}, 1, 10);
		if (timeout > 0 && sys_seconds() > end)
			return -ETIMEDOUT;
	}
}

int oob_barrier(struct oob *oob, double timeout, oob_idle_cb idle, void *arg)
{
	uint8_t mine[4], theirs[4];
	size_t length = sizeof(theirs);
	int ret;

	oob_put32(mine, ++oob->barriers);
	ret = oob_send(oob, OOB_BARRIER, mine, sizeof(mine));
	if (!ret)
		ret = oob_recv(oob, OOB_BARRIER, theirs, &length, timeout, idle, arg);
	if (!ret && (length != sizeof(theirs) || memcmp(mine, theirs, sizeof(mine)) != 0))
		ret = -EPROTO;
	return ret;
}

int oob_peer_bye(struct oob *oob, int *code, char *text, size_t len)
{
	if (!oob->bye)
		return 0;
	if (code)
		*code = oob->bye_code;
	if (text)
		snprintf(text, len, "%s", oob->bye_text);
	return 1;
}

static size_t put_bye(uint8_t *out, int code, const char *text)
{
	size_t length = strnlen(text, OOB_BYE_TEXT);

	oob_put32(out, (uint32_t)code);
	memcpy(out + 4, text, length);
	return 4 + length;
}

int oob_bye(struct oob *oob, int code, const char *text)
{
	uint8_t out[4 + OOB_BYE_TEXT];

	return oob_send(oob, OOB_BYE, out, put_bye(out, code, text));
}

const char *oob_peer_name(const struct oob *oob)
{
	return oob->name;
}

int oob_fd(const struct oob *oob)
{
	return oob->fd;
}

void oob_close(struct oob *oob)
{
	if (!oob)
		return;
	tls_close(oob->tls);
	close(oob->fd);
	free(oob);
}

/* ---- greeting ------------------------------------------------------------------------------- */

#define OOB_VERSION 1u

struct hello {
	uint8_t version[4];
	char program[27];
	uint8_t tls; /* 1: TLS follows the greetings */
};

#define HELLO_BYTES (OOB_HEADER + sizeof(struct hello))

static void make_hello(struct hello *mine)
{
	*mine = (struct hello){0};
	oob_put32(mine->version, OOB_VERSION);
	snprintf(mine->program, sizeof(mine->program), "%s", cli_program);
	mine->tls = oob_key != NULL;
}

static bool is_peer(const struct hello *theirs, char *why, size_t len)
{
	char program[sizeof(theirs->program) + 1];

	weft_text_copy(program, sizeof(program), theirs->program,
		       strnlen(theirs->program, sizeof(theirs->program)));
	if (oob_get32(theirs->version) != OOB_VERSION)
		snprintf(why, len,
			 "it has version %u of the out-of-band protocol, this program version %u",
			 oob_get32(theirs->version), OOB_VERSION);
	else if (strcmp(program, cli_program) != 0)
		snprintf(why, len, "the program there is %s", program);
	else if (theirs->tls != (oob_key != NULL))
		snprintf(why, len,
			 "%s has no job key, and %s has one: give both the same WEFT_JOB_KEY, or "
			 "none",
			 oob_key ? "it" : "this program", oob_key ? "this program" : "it");
	else
		return true;
	return false;
}

/*
 * The kernel closes the connections of a dead process at once. TCP finds a dead host or a cut wire:
 * by 3 keepalive probes after 5 s of silence, or by data that is unacknowledged for 10 s.
 */
static void set_options(int fd)
{
	int one = 1, idle = 5, interval = 2, probes = 3;
	unsigned int unacked_ms = 10000;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof(interval));
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unacked_ms, sizeof(unacked_ms));
}

/* @param fd  a connected socket that does not block. @return NULL: no memory, and fd stays open */
static struct oob *oob_new(int fd)
{
	char host[64] = "?", port[16] = "?";
	struct oob *oob = calloc(1, sizeof(*oob));
	struct sockaddr_storage ss = {0};
	socklen_t len = sizeof(ss);

	if (!oob)
		return NULL;
	oob->fd = fd;
	set_options(fd);
	if (getpeername(fd, (struct sockaddr *)&ss, &len) == 0) {
		weft_tcp_unmap(&ss);
		getnameinfo((struct sockaddr *)&ss, len, host, sizeof(host), port, sizeof(port),
			    NI_NUMERICHOST | NI_NUMERICSERV);
	}
	snprintf(oob->name, sizeof(oob->name), "%s port %s", host, port);
	return oob;
}

#define GREETING_SECONDS 5u

static void tls_why(int ret, char *why, size_t len)
{
	if (ret == -EACCES)
		snprintf(why, len,
			 "the handshake of TLS fails, since it does not have this job key: give "
			 "both the same WEFT_JOB_KEY, copies of one file");
	else if (ret == -EAGAIN || ret == -ETIMEDOUT)
		snprintf(why, len,
			 "the handshake of TLS has not ended within %u s: is the program there "
			 "stopped, or the network interrupted?",
			 GREETING_SECONDS);
	else
		snprintf(why, len, "the handshake of TLS fails: %s; the log there has the reason",
			 strerror(-ret));
}

/* ---- client --------------------------------------------------------------------------------- */

struct dial {
	struct weft_tcp_connect tcp;
	oob_idle_cb idle;
	void *arg;
	struct oob *oob;
};

static int dial_idle(void *arg)
{
	struct dial *d = arg;

	return d->idle ? d->idle(d->arg) : 0;
}

/* @return 0; -EAGAIN = the greeting is not complete; or -EPROTO with a reason in @p why */
static int check_hello(struct oob *oob, char *why, size_t len)
{
	struct hello theirs = {0};
	size_t length = sizeof(theirs);
	int ret;

	oob_poll(oob);
	ret = oob_take(oob, OOB_HELLO, &theirs, &length);
	if (ret == -EAGAIN || (!ret && length == sizeof(theirs) && is_peer(&theirs, why, len)))
		return ret;
	if (ret == -ECONNRESET)
		snprintf(why, len, "the connection was closed at the other end");
	else if (ret == -ESHUTDOWN && oob->bye_text[0])
		snprintf(why, len, "%s", oob->bye_text);
	else if (ret || length != sizeof(theirs))
		snprintf(why, len, "the program there is not %s", cli_program);
	return -EPROTO;
}

/* @return 0, also without a key; or an error with a reason in @p why */
static int secure(struct weft_tcp_connect *t, struct oob *oob, uint64_t end, char *why, size_t len)
{
	short events = 0;
	int ret;

	if (!oob_key)
		return 0;
	/* Bytes that came with the greeting, before the handshake, are not authentic. */
	ret = oob->in_length == 0 ? tls_open(oob_key, oob->fd, false, &oob->tls) : -EPROTO;
	while (!ret) {
		ret = tls_handshake(oob->tls, &events);
		if (ret != -EAGAIN)
			break;
		ret = weft_tcp_wait(t, oob->fd, events, end);
	}
	if (ret)
		tls_why(ret, why, len);
	return ret;
}

static int greet(struct weft_tcp_connect *t, int fd, uint64_t end)
{
	uint64_t latest = weft_tcp_now() + GREETING_SECONDS * (uint64_t)WEFT_TCP_SECOND;
	char why[300] = "it sends no greeting";
	struct dial *d = t->arg;
	struct hello mine;
	int ret;

	d->oob = oob_new(fd);
	if (!d->oob)
		return weft_tcp_fail(t, -ENOMEM, "no memory for the out-of-band connection");
	make_hello(&mine);
	ret = oob_send(d->oob, OOB_HELLO, &mine, sizeof(mine));
	if (ret)
		snprintf(why, sizeof(why), "%s", strerror(-ret));
	while (!ret) {
		ret = check_hello(d->oob, why, sizeof(why));
		if (ret != -EAGAIN)
			break;
		ret = weft_tcp_wait(t, fd, POLLIN, end < latest ? end : latest);
	}
	if (!ret)
		ret = secure(t, d->oob, end < latest ? end : latest, why, sizeof(why));
	if (!ret)
		return 0;
	tls_close(d->oob->tls);
	free(d->oob);
	d->oob = NULL;
	return weft_tcp_fail(t, -EPROTO, "%s port %u is no peer: %s", t->host, t->port, why);
}

int oob_connect(const char *host, uint16_t port, double wait, oob_idle_cb idle, void *arg,
		struct oob **oob)
{
	/* A host that does not answer gets 5 s, also if the wait for the server is shorter. */
	double silent = wait > GREETING_SECONDS ? wait : GREETING_SECONDS;
	struct dial d = {
		.tcp = {.host = host,
			.port = port,
			.timeout = (uint64_t)(silent * 1e9),
			.again_until = weft_tcp_now() + (uint64_t)(wait * 1e9),
			.end = UINT64_MAX,
			.idle = dial_idle,
			.greet = greet,
			.arg = &d},
		.idle = idle,
		.arg = arg,
	};
	char remedy[128];
	int fd;

	snprintf(remedy, sizeof(remedy), "start it there first: %s", cli_server);
	d.tcp.remedy = remedy;
	fd = weft_tcp_connect(&d.tcp);
	*oob = d.oob;
	if (fd >= 0)
		return 0;
	if (!d.tcp.stopped)
		cli_error("%s", d.tcp.why);
	return fd;
}

/* ---- server --------------------------------------------------------------------------------- */

#define BACKLOG 64

struct oob_server {
	struct weft_tcp_server *tcp;
	bool busy;
	unsigned int refused; /* messages printed about clients whose handshake of TLS has failed */
	uint8_t hello[HELLO_BYTES];
	size_t bye_length;
	uint8_t bye[OOB_HEADER + 4 + OOB_BYE_TEXT];
};

/*
 * A client with a well-formed greeting gets the server's greeting, also if it is then refused.
 * While the server is busy, the client gets a BYE instead.
 */
static int judge(void *arg, const void *bytes, size_t length, struct weft_tcp_answer *answer)
{
	const struct oob_server *s = arg;
	uint8_t got[HELLO_BYTES] = {0};
	struct hello theirs;
	bool wrong;

	memcpy(got, bytes, length);
	wrong = (length >= 4 && oob_get32(got) != OOB_MAGIC) ||
		(length >= 8 && oob_get32(got + 4) != OOB_HELLO) ||
		(length >= OOB_HEADER && oob_get32(got + 8) != sizeof(theirs));
	if (!wrong && length < sizeof(got))
		return -EAGAIN;
	*answer = (struct weft_tcp_answer){0};
	if (wrong) {
		snprintf(answer->why, sizeof(answer->why), "the program there is not %s",
			 cli_program);
		return 0;
	}
	memcpy(&theirs, got + OOB_HEADER, sizeof(theirs));
	answer->accepted = is_peer(&theirs, answer->why, sizeof(answer->why)) && !s->busy;
	answer->reply = s->busy ? s->bye : s->hello;
	answer->length = s->busy ? s->bye_length : sizeof(s->hello);
	return 0;
}

static void print_refused(void *arg, const char *client, const char *why, bool last)
{
	(void)arg;
	cli_error("refused %s: %s", client, why);
	if (last)
		cli_error("further clients that are refused are not printed");
}

static int print_failure(const char *host, uint16_t port, int ret)
{
	if (ret == -EADDRINUSE)
		cli_error("TCP port %u is in use; choose another with -p at both ends", port);
	else if (ret == -EINVAL && host)
		cli_error("'%s' has no address: give a name or an address of this host", host);
	else
		cli_error("can't listen on %s port %u: %s", host ? host : "any address", port,
			  strerror(-ret));
	return ret;
}

/* Set at each accept, since the key may be set after the server was opened. */
static void set_greeting(struct oob_server *s)
{
	struct hello mine;

	make_hello(&mine);
	put_header(s->hello, OOB_HELLO, sizeof(mine));
	memcpy(s->hello + OOB_HEADER, &mine, sizeof(mine));
}

int oob_server_open(const char *host, uint16_t port, struct oob_server **server)
{
	struct oob_server *s = calloc(1, sizeof(*s));
	struct weft_tcp_server_params params = {
		.host = host,
		.names = true,
		.port = port,
		.backlog = BACKLOG,
		.keeps = true,
		.hello = HELLO_BYTES,
		.judge = judge,
		.refused = print_refused,
		.arg = s,
	};
	int ret = s ? weft_tcp_server_open(&params, &s->tcp) : -ENOMEM;

	*server = ret ? NULL : s;
	if (ret) {
		free(s);
		return print_failure(host, port, ret);
	}
	set_greeting(s);
	return 0;
}

uint16_t oob_server_port(const struct oob_server *server)
{
	char host[NI_MAXHOST];
	uint16_t port;

	weft_tcp_server_query(server->tcp, host, sizeof(host), &port);
	return port;
}

static int take_client(struct oob_server *server, oob_idle_cb idle, void *arg, struct oob **oob)
{
	int fd, ret;

	while ((fd = weft_tcp_server_take(server->tcp)) < 0) {
		ret = idle ? idle(arg) : 0;
		if (ret)
			return ret;
		weft_tcp_server_run(server->tcp, -1, 100);
	}
	*oob = oob_new(fd);
	if (*oob)
		return 0;
	close(fd);
	return -ENOMEM;
}

#define REFUSED_LINES 16u

/* @return 0, the error of idle or tls_open(), or -EACCES: the handshake has failed */
static int accept_tls(struct oob_server *server, struct oob *oob, oob_idle_cb idle, void *arg)
{
	double end = sys_seconds() + GREETING_SECONDS;
	short events = 0;
	char why[200];
	int ret = tls_open(oob_key, oob->fd, true, &oob->tls), stop;

	if (ret)
		return ret;
	while ((ret = tls_handshake(oob->tls, &events)) == -EAGAIN && sys_seconds() < end) {
		stop = idle ? idle(arg) : 0;
		if (stop)
			return stop;
		poll(&(struct pollfd){.fd = oob->fd, .events = events}, 1, 100);
	}
	if (ret && server->refused < REFUSED_LINES) {
		tls_why(ret, why, sizeof(why));
		cli_error("refused %s: %s%s", oob->name, why,
			  ++server->refused < REFUSED_LINES ? ""
							    : "; further clients are not printed");
	}
	return ret ? -EACCES : 0;
}

int oob_server_accept(struct oob_server *server, oob_idle_cb idle, void *arg, struct oob **oob)
{
	int ret;

	server->busy = false;
	set_greeting(server);
	for (;;) {
		ret = take_client(server, idle, arg, oob);
		if (ret || !oob_key)
			return ret;
		ret = accept_tls(server, *oob, idle, arg);
		if (!ret)
			return 0;
		oob_close(*oob);
		*oob = NULL;
		if (ret != -EACCES)
			return ret;
	}
}

void oob_server_refuse(struct oob_server *server, const char *text)
{
	server->busy = true;
	server->bye_length = OOB_HEADER + put_bye(server->bye + OOB_HEADER, APP_FAIL, text);
	put_header(server->bye, OOB_BYE, server->bye_length - OOB_HEADER);
	weft_tcp_server_run(server->tcp, -1, 0);
}

void oob_server_close(struct oob_server *server)
{
	if (!server)
		return;
	weft_tcp_server_close(server->tcp);
	free(server);
}
