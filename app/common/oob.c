/* SPDX-License-Identifier: BSD-3-Clause */

#include "common/oob.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/text.h"
#include "common/oob_priv.h"
#include "common/sys.h"

#define OOB_MAGIC 0x4f544657u /* "WFTO" */
#define HEADER OOB_HEADER
#define SEND_SECONDS 5.0

int oob_send(struct oob *oob, enum oob_type type, const void *data, size_t length)
{
	uint8_t out[HEADER + OOB_MAX];
	double end = sys_seconds() + SEND_SECONDS;
	size_t sent = 0;

	if (length > OOB_MAX)
		return -EMSGSIZE;
	oob_put32(out, OOB_MAGIC);
	oob_put32(out + 4, type);
	oob_put32(out + 8, (uint32_t)length);
	if (length)
		memcpy(out + HEADER, data, length);
	while (sent < HEADER + length) {
		ssize_t n = send(oob->fd, out + sent, HEADER + length - sent, MSG_NOSIGNAL);

		if (n >= 0) {
			sent += (size_t)n;
			continue;
		}
		if (errno != EAGAIN && errno != EINTR)
			return -errno;
		if (sys_seconds() > end)
			return -ETIMEDOUT;
		poll(&(struct pollfd){.fd = oob->fd, .events = POLLOUT}, 1, 100);
	}
	return 0;
}

/*
 * Length of the first buffered message with its header; 0 = incomplete; -EPROTO = wrong header.
 */
static ssize_t first_message(const struct oob *oob)
{
	uint32_t type, length;

	if (oob->in_length < HEADER)
		return 0;
	type = oob_get32(oob->in + 4);
	length = oob_get32(oob->in + 8);
	if (oob_get32(oob->in) != OOB_MAGIC || !type || type >= OOB_TYPES || length > OOB_MAX)
		return -EPROTO;
	return oob->in_length < HEADER + length ? 0 : (ssize_t)(HEADER + length);
}

/* A BYE takes effect when it arrives, before the messages in front of it are taken. */
static void look_for_bye(struct oob *oob)
{
	size_t at = 0;

	while (!oob->bye && oob->in_length - at >= HEADER) {
		const uint8_t *m = oob->in + at;
		size_t length = oob_get32(m + 8);

		if (length > OOB_MAX || oob->in_length - at < HEADER + length)
			return;
		if (oob_get32(m) == OOB_MAGIC && oob_get32(m + 4) == OOB_BYE && length >= 4) {
			oob->bye = true;
			oob->bye_code = (int32_t)oob_get32(m + HEADER);
			weft_text_copy(oob->bye_text, sizeof(oob->bye_text), m + HEADER + 4,
				       length - 4);
		}
		at += HEADER + length;
	}
}

int oob_poll(struct oob *oob)
{
	ssize_t n;

	if (oob->status)
		return oob->status;
	if (oob->in_length == sizeof(oob->in))
		return 0;
	n = recv(oob->fd, oob->in + oob->in_length, sizeof(oob->in) - oob->in_length, 0);
	if (n > 0) {
		oob->in_length += (size_t)n;
		if (first_message(oob) < 0)
			oob->status = -EPROTO;
		else
			look_for_bye(oob);
	} else if (n == 0) {
		oob->status = -ECONNRESET;
	} else if (errno != EAGAIN && errno != EINTR) {
		oob->status = errno == ETIMEDOUT ? -ETIMEDOUT : -ECONNRESET;
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
	payload = (size_t)whole - HEADER;
	if (oob_get32(oob->in + 4) != (uint32_t)type)
		return oob_get32(oob->in + 4) == OOB_BYE ? -ESHUTDOWN : -EPROTO;
	if (payload > *length)
		return -EPROTO;
	if (payload)
		memcpy(data, oob->in + HEADER, payload);
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

int oob_bye(struct oob *oob, int code, const char *text)
{
	uint8_t out[4 + OOB_BYE_TEXT];
	size_t length = strnlen(text, sizeof(out) - 4);

	oob_put32(out, (uint32_t)code);
	memcpy(out + 4, text, length);
	return oob_send(oob, OOB_BYE, out, 4 + length);
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
	close(oob->fd);
	free(oob);
}
