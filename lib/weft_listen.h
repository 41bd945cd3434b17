/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file weft_listen.h
 * Connecting by host and port. A *listener* gives the address of its worker to peers over TCP;
 * weft_ep_connect_to() fetches such an address and creates the endpoint. The TCP connection ends
 * then: messages use the lanes of both workers only.
 *
 *	server  weft_listener_create()  ... accept_cb of its worker: a peer has connected
 *	client  weft_ep_connect_to()    ... callback: the endpoint, or the reason why there is none
 *
 * A worker address is a capability, and a listener sends it to each client that sends the right
 * greeting. So the network of a listener must be as trusted as that of the lanes. With a job key
 * only clients that have the key get the address, and it is encrypted.
 *
 * The conventions of weft.h are valid here: errors, units, threads, fork().
 */
#ifndef WEFT_LISTEN_H
#define WEFT_LISTEN_H

#include "weft.h"

#ifdef __cplusplus
extern "C" {
#endif

struct weft_listener;

struct weft_listener_params {
	size_t size;
	/**
	 * local address as a number: IPv4, IPv6, or IPv6 with a zone ("fe80::1%eth0"). NULL = all
	 * addresses, IPv4 and IPv6
	 */
	const char *host;
	uint16_t port;        /**< TCP; 0 = a free one, see weft_listener_query() */
	unsigned int backlog; /**< connections that the kernel holds before accept; 0 = 64 */
};

/**
 * Listen for clients of this worker. A thread of the library serves the clients, so neither their
 * number nor their silence delays the worker, and the worker's progress is not needed for it. A
 * client gets the address; its endpoint is reported by the accept_cb of the worker.
 *
 * Bounds: 16 clients at once. A further one takes the place of a client that has its reply, else of
 * one of the host (IPv6: the /64) with the most clients. Each client has 5 s. A connection without
 * bytes is no client in its first second.
 *
 * @param params         NULL = defaults
 * @param[out] listener  the worker owns it; weft_worker_destroy() ends it
 * @return 0; -EINVAL the host is no numeric address; -EADDRINUSE, -EADDRNOTAVAIL, -EACCES,
 *   -EAFNOSUPPORT of the socket; -EMFILE, -ENFILE; -EAGAIN no thread; -ENOMEM. The log names the
 *   host, the port, and the reason or the remedy
 */
WEFT_API int weft_listener_create(struct weft_worker *worker,
				  const struct weft_listener_params *params,
				  struct weft_listener **listener);

/** Stop listening. Endpoints of its clients stay. NULL is allowed. */
WEFT_API void weft_listener_destroy(struct weft_listener *listener);

struct weft_listener_attr {
	size_t size;
	/** local address as a number; "::" = all, "0.0.0.0" = all of IPv4. The listener owns it */
	const char *host;
	uint16_t port;   /**< TCP */
	uint64_t served; /**< clients that were sent the whole address */
	/**
	 * clients that sent a wrong greeting, have another job key, were too slow, or lost their
	 * place
	 */
	uint64_t refused;
};

/** Fill @p attr (its `size` must be set). @return 0 or -EINVAL */
WEFT_API int weft_listener_query(struct weft_listener *listener, struct weft_listener_attr *attr);

/**
 * A weft_ep_connect_to() has ended. Runs once for each call that returned 0, in
 * weft_worker_progress() or weft_worker_destroy().
 *
 * @param ep      the application owns it and must close it. Its lanes connect now; operations may
 *   be posted at once. NULL: there is none
 * @param status  0; -ENOENT the name has no address; -EAGAIN the name service fails at present;
 *   -ECONNREFUSED no server listens; -ETIMEDOUT the host or the name service is silent; -EPROTO no
 *   listener of Weft, or it closed the connection before its reply; -EPROTONOSUPPORT one of another
 *   version; -EACCES the ends do not have the same job key; -ECANCELED the worker is being
 *   destroyed; another error of the socket or of weft_ep_create()
 * @param why     a sentence with host, port and reason; "" with status 0. Valid during the call
 */
typedef void (*weft_connect_cb)(struct weft_worker *worker, struct weft_ep *ep, int status,
				const char *why, void *arg);

struct weft_connect_params {
	size_t size;
	const char *host; /**< name, IPv4, IPv6, or IPv6 with a zone; copied */
	uint16_t port;    /**< TCP, of the listener */
	/** s, at most a week: try again for this time while no server listens; 0 = once */
	double wait;
	weft_connect_cb connect_cb; /**< required */
	void *connect_arg;
	weft_ep_err_cb err_cb; /**< of the endpoint, as in struct weft_ep_params */
	void *err_arg;
	void *user_data;
};

/**
 * Fetch the address of the worker behind a host and port, and create an endpoint to it. Returns at
 * once: another thread resolves the name and uses the socket. All addresses of the name are tried
 * in order; the error is that of the attempt that came farthest. weft_worker_wait() and
 * weft_worker_get_fd() wake for the end. One attempt takes at most `WEFT_CONNECT_TIMEOUT`, the
 * whole at most `wait` longer; lanes then have the same timeout to connect. 32 connects of the
 * process run at once, further ones wait for them within their own time.
 *
 * @return 0: the callback follows; -EINVAL no host, port, or callback, a host of more than 255
 *   bytes, or a worker that is being destroyed; -EBUSY in a callback of a datatype; -EAGAIN no
 *   thread; -ENOMEM
 */
WEFT_API int weft_ep_connect_to(struct weft_worker *worker,
				const struct weft_connect_params *params);

#ifdef __cplusplus
}
#endif

#endif /* WEFT_LISTEN_H */
