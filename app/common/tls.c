/* SPDX-License-Identifier: BSD-3-Clause */

#include "common/tls.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "weft_build.h"

#if WEFT_HAVE_SEAL

#include <limits.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "drivers/dpdk/seal/crypto.h"
#include "lib/base/secret.h"

#define SUITE "TLS_AES_128_GCM_SHA256"

static const uint8_t suite_id[] = {0x13, 0x01};
static const uint8_t identity[] = "weft job key 1";

struct tls {
	SSL_CTX *ctx;
	SSL *ssl;
	uint8_t key[TLS_KEY_LEN]; /* a secret: weft_secret_alloc() allocates the struct */
};

int tls_key_derive(const uint8_t job_key[TLS_KEY_LEN], uint8_t key[TLS_KEY_LEN])
{
	static const char label[] = "weft programs tls psk 1";
	uint8_t root[WEFT_HASH_LEN];
	int rc = weft_hkdf_extract(NULL, 0, job_key, TLS_KEY_LEN, root);

	if (rc == 0)
		rc = weft_hkdf_expand(root, label, sizeof(label) - 1, key, TLS_KEY_LEN);
	weft_secret_wipe(root, sizeof(root));
	return rc;
}

/* ---- the key, as libssl expects it ---------------------------------------------------------- */

static SSL_SESSION *session_of(SSL *ssl)
{
	const struct tls *t = SSL_get_app_data(ssl);
	const SSL_CIPHER *cipher = SSL_CIPHER_find(ssl, suite_id);
	SSL_SESSION *s = SSL_SESSION_new();

	if (s && cipher && SSL_SESSION_set1_master_key(s, t->key, sizeof(t->key)) &&
	    SSL_SESSION_set_cipher(s, cipher) &&
	    SSL_SESSION_set_protocol_version(s, TLS1_3_VERSION))
		return s;
	SSL_SESSION_free(s);
	return NULL;
}

static int offer_key(SSL *ssl, const EVP_MD *md, const unsigned char **id, size_t *id_len,
		     SSL_SESSION **session)
{
	(void)md;
	*id = identity;
	*id_len = sizeof(identity) - 1;
	*session = session_of(ssl);
	return *session != NULL;
}

/* Another identity has no session here, and the handshake then fails: there is no certificate. */
static int find_key(SSL *ssl, const unsigned char *id, size_t id_len, SSL_SESSION **session)
{
	bool ours = id_len == sizeof(identity) - 1 && memcmp(id, identity, id_len) == 0;

	*session = ours ? session_of(ssl) : NULL;
	return !ours || *session;
}

/* ---- connections ---------------------------------------------------------------------------- */

static int set_up(struct tls *t, int fd, bool server)
{
	t->ctx = SSL_CTX_new(TLS_method());
	if (!t->ctx || !SSL_CTX_set_min_proto_version(t->ctx, TLS1_3_VERSION) ||
	    !SSL_CTX_set_max_proto_version(t->ctx, TLS1_3_VERSION) ||
	    !SSL_CTX_set_ciphersuites(t->ctx, SUITE) || !SSL_CTX_set_num_tickets(t->ctx, 0))
		return -ENOMEM;
	SSL_CTX_set_session_cache_mode(t->ctx, SSL_SESS_CACHE_OFF);
	SSL_CTX_set_options(t->ctx, SSL_OP_NO_TICKET | SSL_OP_IGNORE_UNEXPECTED_EOF);
	SSL_CTX_set_mode(t->ctx,
			 SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	if (server) {
		SSL_CTX_set_psk_find_session_callback(t->ctx, find_key);
	} else {
		/* No authority is trusted, so no server is accepted by a certificate. */
		SSL_CTX_set_verify(t->ctx, SSL_VERIFY_PEER, NULL);
		SSL_CTX_set_psk_use_session_callback(t->ctx, offer_key);
	}
	t->ssl = SSL_new(t->ctx);
	if (!t->ssl || !SSL_set_app_data(t->ssl, t) || !SSL_set_fd(t->ssl, fd))
		return -ENOMEM;
	if (server)
		SSL_set_accept_state(t->ssl);
	else
		SSL_set_connect_state(t->ssl);
	return 0;
}

int tls_open(const uint8_t key[TLS_KEY_LEN], int fd, bool server, struct tls **tls)
{
	struct tls *t = weft_secret_alloc(sizeof(*t));
	int rc;

	if (!t)
		return -ENOMEM;
	memcpy(t->key, key, sizeof(t->key));
	rc = set_up(t, fd, server);
	if (rc < 0) {
		tls_close(t);
		return rc;
	}
	*tls = t;
	return 0;
}

void tls_close(struct tls *t)
{
	if (!t)
		return;
	/* Before the end of the handshake there is nothing to end. */
	if (t->ssl && SSL_is_init_finished(t->ssl)) {
		ERR_clear_error();
		SSL_shutdown(t->ssl);
	}
	SSL_free(t->ssl);
	SSL_CTX_free(t->ctx);
	weft_secret_free(t, sizeof(*t));
}

/* @param n  result of a call of libssl. @return negative error; 0: the end of the connection */
static int error_of(const struct tls *t, int n, short *events)
{
	switch (SSL_get_error(t->ssl, n)) {
	case SSL_ERROR_WANT_READ:
		*events = POLLIN;
		return -EAGAIN;
	case SSL_ERROR_WANT_WRITE:
		*events = POLLOUT;
		return -EAGAIN;
	case SSL_ERROR_ZERO_RETURN:
		return 0;
	case SSL_ERROR_SYSCALL:
		return errno ? -errno : -ECONNRESET;
	default:
		return -EPROTO;
	}
}

int tls_handshake(struct tls *t, short *events)
{
	int n, rc;

	ERR_clear_error();
	errno = 0;
	n = SSL_do_handshake(t->ssl);
	/* "Reused" is a session of the key, here, since no other one is ever made. */
	if (n == 1)
		return SSL_session_reused(t->ssl) ? 0 : -EACCES;
	rc = error_of(t, n, events);
	return rc == -EPROTO ? -EACCES : rc == 0 ? -ECONNRESET : rc;
}

static int most(size_t length)
{
	return length < INT_MAX ? (int)length : INT_MAX;
}

ssize_t tls_send(struct tls *t, const void *data, size_t length)
{
	short events;
	int n;

	ERR_clear_error();
	errno = 0;
	n = SSL_write(t->ssl, data, most(length));
	if (n > 0)
		return n;
	n = error_of(t, n, &events);
	return n ? n : -EPIPE;
}

ssize_t tls_recv(struct tls *t, void *data, size_t length)
{
	short events;
	int n;

	ERR_clear_error();
	errno = 0;
	n = SSL_read(t->ssl, data, most(length));
	return n > 0 ? n : error_of(t, n, &events);
}

#else

int tls_key_derive(const uint8_t job_key[TLS_KEY_LEN], uint8_t key[TLS_KEY_LEN])
{
	(void)job_key, (void)key;
	return -ENOTSUP;
}

int tls_open(const uint8_t key[TLS_KEY_LEN], int fd, bool server, struct tls **tls)
{
	(void)key, (void)fd, (void)server, (void)tls;
	return -ENOTSUP;
}

int tls_handshake(struct tls *t, short *events)
{
	(void)t, (void)events;
	return -ENOTSUP;
}

ssize_t tls_send(struct tls *t, const void *data, size_t length)
{
	(void)t, (void)data, (void)length;
	return -ENOTSUP;
}

ssize_t tls_recv(struct tls *t, void *data, size_t length)
{
	(void)t, (void)data, (void)length;
	return -ENOTSUP;
}

void tls_close(struct tls *t)
{
	(void)t;
}

#endif
