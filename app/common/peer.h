/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file common/peer.h
 * One peer of a program: the out-of-band connection, and a worker with one endpoint over the lanes.
 *
 * The stages are separate calls, because a program may need only some of them (a bare-port test
 * needs the EAL and the TCP connection, but no worker). Each returns APP_OK, or an exit code after
 * an error message. peer_end() may follow any of them, and takes down what exists.
 *
 * A loop on the datapath calls peer_poll(): progress, and every millisecond a check of the TCP
 * connection and of signals.
 */
#ifndef APP_PEER_H
#define APP_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_branch_prediction.h>

#include "common/cli.h"
#include "common/oob.h"
#include "weft.h"

/** Options that every two-ended program has. */
struct peer_options {
	char name[256];    /**< storage for host or local */
	const char *host;  /**< peer to connect to; NULL = be the server */
	const char *local; /**< server: local address to listen on; NULL = all */
	uint16_t port;
	double wait; /**< client: seconds to wait for a server */
	int core;    /**< -1 = not pinned */
	struct weft_config *config;
	uint64_t features;     /**< WEFT_FEATURE_*; 0 = tagged messages */
	bool counters;         /**< print the counters of the lanes at the end */
	unsigned int parallel; /**< client: connections; 0 = 1 */
};

/** The maximum number of connections of a client to its server. */
#define PEER_PARALLEL 64u

struct peer {
	const struct peer_options *opts;
	bool server;
	struct oob_server *door; /* persistent server, which refuses others while busy; else NULL */
	struct oob *oob;
	struct weft_context *ctx;
	struct weft_worker *worker;
	struct weft_ep *ep;
	struct weft_ep *more[PEER_PARALLEL - 1]; /* a client's further connections (-P) */
	unsigned int num_more;
	int exit_code; /* != 0: the run has failed, and a message was printed */
	bool closing;  /* the end of the connection is expected now */
	bool sleeps;   /* peer_poll() sleeps until there is an event, unless `posting` is set */
	bool posting;  /* the caller has more to post, so peer_poll() does not sleep */
	uint32_t polls;
	uint64_t events;     /* events that weft_worker_progress() has handled so far */
	uint64_t next_check; /* TSC of the next check of signals and of the TCP connection */
};

/** Create the context, which finds the lanes' resources. The EAL must be up. */
int peer_init(struct peer *p, const struct peer_options *opts);

/** Listen, for a persistent server. @return APP_OK or an exit code after an error message */
int peer_listen(const struct peer_options *opts, struct oob_server **door);

/** Out-of-band connection: a server waits for its client, a client connects. */
int peer_meet(struct peer *p);

/** Create the worker with its lanes. */
int peer_open(struct peer *p);

/** Exchange addresses and connect over the lanes. */
int peer_connect(struct peer *p);

/** Slow part of peer_poll(). @return 0, or -ECANCELED with p->exit_code set */
int peer_check(struct peer *p);

/**
 * Sleep until the lanes have an event, at most 20 ms; then check signals and the TCP connection.
 * @return as peer_poll()
 */
int peer_sleep(struct peer *p);

/** As peer_poll(), and never sleeps. */
static inline int peer_look(struct peer *p)
{
	p->events += weft_worker_progress(p->worker);
	if (likely(++p->polls & 63))
		return 0;
	return peer_check(p);
}

/** Make progress. @return 0, or -ECANCELED once the run has failed, with p->exit_code set */
static inline int peer_poll(struct peer *p)
{
	return unlikely(p->sleeps) && !p->posting ? peer_sleep(p) : peer_look(p);
}

/** Wait until the peer calls this, too. @return APP_OK or an exit code */
int peer_barrier(struct peer *p);

/**
 * Send an out-of-band message, by oob_send(): the lanes make no progress in the meantime.
 * @return APP_OK or an exit code after an error message
 */
int peer_send(struct peer *p, enum oob_type type, const void *data, size_t length);
/**
 * Wait for an out-of-band message of exactly @p length bytes, while the lanes make progress.
 * @return APP_OK or an exit code after an error message
 */
int peer_recv(struct peer *p, enum oob_type type, void *data, size_t length);

/** peer_recv() of a message of any length up to *length, which becomes its length. */
int peer_recv_some(struct peer *p, enum oob_type type, void *data, size_t *length);

/**
 * Take an out-of-band message of exactly @p length bytes if it has been read by oob_poll().
 * @return APP_OK; -EAGAIN: it has not; or an exit code after an error message
 */
int peer_take(struct peer *p, enum oob_type type, void *data, size_t length);

/** The run has failed: keep the first exit code. @return that exit code */
int peer_fail(struct peer *p, int exit_code);

/** Print "what: reason" for a failed operation. @return exit code */
int peer_fail_op(struct peer *p, const char *what, int status);

/**
 * End: if both @p exit_code and p->exit_code are 0, flush and close the endpoints together with the
 * peer. In all cases send BYE with the exit code, and take everything down.
 * @return the exit code for eal_exit(): the first of @p exit_code, p->exit_code and that of the
 * close that is not 0
 */
int peer_end(struct peer *p, int exit_code);

#endif /* APP_PEER_H */
