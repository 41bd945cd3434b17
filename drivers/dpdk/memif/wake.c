/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <poll.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "memif/wake.h"

#define REPORTS 64 /* of ended operations, taken at a time */

void weft_mwake_open(struct weft_mwake *w)
{
	*w = (struct weft_mwake){.null = open("/dev/null", O_WRONLY | O_CLOEXEC)};
	if (w->null >= 0 && syscall(SYS_io_setup, 1, &w->aio))
		w->aio = 0;
}

void weft_mwake_close(struct weft_mwake *w)
{
	if (w->aio)
		syscall(SYS_io_destroy, w->aio);
	if (w->null >= 0)
		close(w->null);
	*w = (struct weft_mwake){.null = -1};
}

/* The peer may fill the counter between both calls. A full counter has woken the peer already. */
static bool write_if_free(int event)
{
	struct pollfd p = {.fd = event, .events = POLLOUT};
	uint64_t one = 1;

	if (poll(&p, 1, 0) != 1 || !(p.revents & POLLOUT))
		return true;
	return write(event, &one, sizeof(one)) == (ssize_t)sizeof(one) || errno == EAGAIN;
}

bool weft_mwake_signal(struct weft_mwake *w, int event)
{
	struct iocb op = {.aio_lio_opcode = IOCB_CMD_PWRITE,
			  .aio_fildes = (uint32_t)w->null,
			  .aio_flags = IOCB_FLAG_RESFD,
			  .aio_resfd = (uint32_t)event};
	struct iocb *ops[] = {&op};
	struct io_event reports[REPORTS];

	if (!w->aio)
		return write_if_free(event);
	if (syscall(SYS_io_submit, w->aio, 1, ops) == 1)
		return true;
	if (errno != EAGAIN)
		return false;
	/* Reports of ended operations use up the room for operations. */
	syscall(SYS_io_getevents, w->aio, 0, REPORTS, reports, NULL);
	return syscall(SYS_io_submit, w->aio, 1, ops) == 1;
}
