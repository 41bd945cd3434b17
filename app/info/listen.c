/* SPDX-License-Identifier: BSD-3-Clause */

#include "info/listen.h"

#include <errno.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cli.h"
#include "info/metrics.h"

#ifdef WEFT_HAVE_MICROHTTPD

#include <microhttpd.h>

#define CONNECTIONS 16u
#define SECONDS 10u /* timeout of a request, and of sending its answer */

static long only_pid;

/* @return the page for the scraper, to be freed by free(); NULL when memory is exhausted */
static char *take_metrics(size_t *len)
{
	static struct query_process list[QUERY_PROCESSES];
	unsigned int n = query_find(only_pid, true, list);
	char *text = NULL;
	FILE *out = open_memstream(&text, len);

	if (out) {
		info_metrics(out, list, n);
		fclose(out);
	}
	query_close(list, n);
	return text;
}

static enum MHD_Result reply(struct MHD_Connection *c, unsigned int status, char *text, size_t len,
			     enum MHD_ResponseMemoryMode mode)
{
	struct MHD_Response *r = MHD_create_response_from_buffer(len, text, mode);
	enum MHD_Result ret;

	if (!r)
		return MHD_NO;
	MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE,
				"text/plain; version=0.0.4; charset=utf-8");
	ret = MHD_queue_response(c, status, r);
	MHD_destroy_response(r);
	return ret;
}

/* One thread serves all requests in sequence: queries to processes need one thread at a time. */
static enum MHD_Result on_request(void *arg, struct MHD_Connection *c, const char *url,
				  const char *method, const char *version, const char *data,
				  size_t *data_len, void **state)
{
	static char none[] = "there is /metrics, for GET\n";
	char *text;
	size_t len;

	(void)arg;
	(void)version;
	(void)data;
	(void)state;
	if (*data_len) {
		*data_len = 0; /* ignore a body */
		return MHD_YES;
	}
	if (strcmp(method, MHD_HTTP_METHOD_GET) || strcmp(url, "/metrics"))
		return reply(c, MHD_HTTP_NOT_FOUND, none, sizeof(none) - 1, MHD_RESPMEM_PERSISTENT);
	text = take_metrics(&len);
	return text ? reply(c, MHD_HTTP_OK, text, len, MHD_RESPMEM_MUST_FREE) : MHD_NO;
}

static int listen_at(const struct addrinfo *at)
{
	int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, CONNECTIONS) == 0)
		return fd;
	close(fd);
	return -errno;
}

/* @return a socket that listens, or a negative error after a message: -EINVAL = wrong usage */
static int open_socket(const char *address)
{
	const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
	char host[256] = "127.0.0.1";
	const char *port = strrchr(address, ':'), *name = address;
	struct addrinfo *list;
	uint16_t number;
	int rc, len = port ? (int)(port - address) : 0;

	if (port && address[0] == '[' && len >= 2 && address[len - 1] == ']') {
		name++;
		len -= 2;
	}
	if (port)
		snprintf(host, sizeof(host), "%.*s", len, name);
	port = port ? port + 1 : address;
	if (cli_port(port, &number))
		return -EINVAL;
	rc = getaddrinfo(host, port, &hints, &list);
	if (rc) {
		cli_error("--listen %s: %s", address, gai_strerror(rc));
		return -EINVAL;
	}
	rc = listen_at(list);
	freeaddrinfo(list);
	if (rc < 0)
		cli_error("--listen %s: %s", address, strerror(-rc));
	return rc;
}

int info_listen(const char *address, long pid)
{
	struct MHD_Daemon *daemon;
	sigset_t ends;
	int fd, sig;

	only_pid = pid;
	fd = open_socket(address);
	if (fd < 0)
		return fd == -EINVAL ? APP_USAGE : APP_FAIL;
	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGHUP);
	/* New threads inherit the blocked signals, so this thread receives them. */
	sigprocmask(SIG_BLOCK, &ends, NULL);
	daemon = MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD, 0, NULL, NULL, on_request, NULL,
				  MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
				  CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT, SECONDS,
				  MHD_OPTION_END);
	if (!daemon) {
		close(fd);
		cli_error("--listen %s: the HTTP server does not start", address);
		return APP_FAIL;
	}
	fprintf(stderr, "%s: metrics at %s, path /metrics\n", cli_program, address);
	sigwait(&ends, &sig);
	MHD_stop_daemon(daemon);
	return 128 + sig;
}

#else

int info_listen(const char *address, long pid)
{
	(void)pid;
	cli_error("--listen %s: this build has no HTTP server: install libmicrohttpd-dev and "
		  "configure it again",
		  address);
	return APP_FAIL;
}

#endif
