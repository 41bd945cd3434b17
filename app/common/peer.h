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
	unsigned int parallel; /**< client: number of endpoints; 0 = 1 */
};

#define PEER_PARALLEL 64u /**< maximum of peer_options.parallel */

struct peer {
	const struct peer_options *opts;
	bool server;
	struct oob_server *door; /* of a persistent server: refuses others while busy; else NULL */
	struct oob *oob;
	struct weft_context *ctx;
	struct weft_worker *worker;
	struct weft_ep *ep;
	struct weft_ep *more[PEER_PARALLEL - 1]; /* a client's further endpoints (-P) */
	unsigned int num_more;
	int exit_code; /* != 0: the run has failed, and a message was printed */
	bool closing;  /* the end of the connection is expected now */
	bool sleeps;   /* peer_poll() sleeps until there is an event, unless `posting` is set */
	bool posting;  /* the caller has just posted operations, so peer_poll() does not sleep */
	uint32_t polls;
	uint64_t events; /* events handled so far by peer_poll(), peer_look() and peer_sleep() */
	uint64_t next_check; /* TSC of the next check of signals and of the TCP connection */
};

/** The EAL must be up. */
int peer_init(struct peer *p, const struct peer_options *opts);

/** For a persistent server. @return APP_OK or an exit code after an error message */
int peer_listen(const struct peer_options *opts, struct oob_server **door);

/** Makes the out-of-band connection. */
int peer_meet(struct peer *p);

int peer_open(struct peer *p);
int peer_connect(struct peer *p);

/** Slow part of peer_poll(). @return 0, or -ECANCELED with p->exit_code set */
int peer_check(struct peer *p);

/** As peer_poll(), but sleeps until the lanes have an event, for 20 ms at most. */
int peer_sleep(struct peer *p);

/** As peer_poll(), but never sleeps. */
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

/* Out-of-band messages. @return APP_OK or an exit code after an error message */

/** The lanes make progress. */
int peer_barrier(struct peer *p);
/** The lanes make no progress, for 5 s at most. */
int peer_send(struct peer *p, enum oob_type type, const void *data, size_t length);
/** Wait for a message of exactly @p length bytes; the lanes make progress. */
int peer_recv(struct peer *p, enum oob_type type, void *data, size_t length);
/** @param[in,out] length  in: size of the buffer, out: length of the message */
int peer_recv_some(struct peer *p, enum oob_type type, void *data, size_t *length);

/** Take a message of exactly @p length bytes, if oob_poll() has read it; else @return -EAGAIN */
int peer_take(struct peer *p, enum oob_type type, void *data, size_t length);

/** @return the first exit code with which the run has failed, which is kept */
int peer_fail(struct peer *p, int exit_code);

/** Print "what: reason" for a failed operation, if it is the first failure. @return p->exit_code */
int peer_fail_op(struct peer *p, const char *what, int status);

/**
 * If @p exit_code and p->exit_code are 0, flush and close the endpoints together with the peer. In
 * all cases send BYE, and take everything down.
 * @return the first that is not 0 of @p exit_code, p->exit_code and that of the close
 */
int peer_end(struct peer *p, int exit_code);

#endif /* APP_PEER_H */
