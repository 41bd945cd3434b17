/* SPDX-License-Identifier: BSD-3-Clause */
/* What a killed memif server leaves behind, and what only looks like it. */

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "port/memif/memif.h"
#include "port/pick.h"

struct place {
	char dir[64], path[96], vdev[192];
	char *words[2];
	int fd;
};

static int setup(void **state)
{
	static struct place p;

	memset(&p, 0, sizeof(p));
	p.fd = -1;
	snprintf(p.dir, sizeof(p.dir), "/tmp/weft-dead-XXXXXX");
	if (!mkdtemp(p.dir))
		return -1;
	snprintf(p.path, sizeof(p.path), "%s/m", p.dir);
	snprintf(p.vdev, sizeof(p.vdev),
		 "--vdev=net_memif0,role=server,id=0,socket-abstract=no,socket=%s,bsize=9216",
		 p.path);
	p.words[0] = p.vdev;
	*state = &p;
	return 0;
}

static int teardown(void **state)
{
	struct place *p = *state;

	if (p->fd >= 0)
		close(p->fd);
	unlink(p->path);
	return rmdir(p->dir);
}

static void bind_there(struct place *p, int type, int backlog)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};

	snprintf(un.sun_path, sizeof(un.sun_path), "%s", p->path);
	p->fd = socket(AF_UNIX, type, 0);
	assert_int_equal(bind(p->fd, (struct sockaddr *)&un, sizeof(un)), 0);
	if (backlog)
		assert_int_equal(listen(p->fd, backlog), 0);
}

static void the_socket_of_a_dead_server_is_removed(void **state)
{
	struct place *p = *state;
	char why[256] = "";

	bind_there(p, SOCK_SEQPACKET, 1);
	close(p->fd);
	p->fd = -1;
	assert_int_equal(weft_memif_dead_remove(1, p->words, why, sizeof(why)), 0);
	assert_int_not_equal(access(p->path, F_OK), 0);
	/* And where nothing is there is nothing to do. */
	assert_int_equal(weft_memif_dead_remove(1, p->words, why, sizeof(why)), 0);
}

static void a_word_of_its_own_after_vdev_counts_too(void **state)
{
	struct place *p = *state;
	char vdev[] = "--vdev", why[256] = "", *words[] = {vdev, p->vdev + 7};

	bind_there(p, SOCK_SEQPACKET, 1);
	close(p->fd);
	p->fd = -1;
	assert_int_equal(weft_memif_dead_remove(2, words, why, sizeof(why)), 0);
	assert_int_not_equal(access(p->path, F_OK), 0);
}

static void a_living_server_keeps_its_socket_and_receives_nothing(void **state)
{
	struct place *p = *state;
	char why[256] = "";

	bind_there(p, SOCK_SEQPACKET, 1);
	assert_int_equal(weft_memif_dead_remove(1, p->words, why, sizeof(why)), -EADDRINUSE);
	assert_non_null(strstr(why, p->path));
	assert_int_equal(access(p->path, F_OK), 0);
	fcntl(p->fd, F_SETFL, O_NONBLOCK);
	assert_int_equal(accept(p->fd, NULL, NULL), -1);
	assert_int_equal(errno, EAGAIN);
}

static void what_is_no_socket_is_left_alone(void **state)
{
	struct place *p = *state;
	char why[256] = "";

	p->fd = open(p->path, O_CREAT | O_WRONLY, 0600);
	assert_int_equal(weft_memif_dead_remove(1, p->words, why, sizeof(why)), -EADDRINUSE);
	assert_non_null(strstr(why, "no socket"));
	assert_int_equal(access(p->path, F_OK), 0);
}

/* @behaviour S23 */
static void a_socket_is_private_unless_the_words_differ(void **state)
{
	static char l[] = "-l", zero[] = "0", vdev[] = "--vdev", null[] = "--vdev=net_null0",
		    bare[] = "net_memif3", server[] = "--vdev=net_memif0,role=server,socket=/run/a",
		    client[] = "net_memif1,role=client",
		    abstract[] = "--vdev=net_memif2,socket-abstract=yes,id=1";
	char *words[] = {l, zero, server, vdev, client, abstract, null, bare};
	char **out;

	(void)state;
	out = weft_memif_private_words(8, words);
	assert_non_null(out);
	assert_string_equal(out[0], "-l");
	assert_string_equal(out[2],
			    "--vdev=net_memif0,role=server,socket=/run/a,socket-abstract=no");
	assert_string_equal(out[3], "--vdev");
	assert_string_equal(out[4], "net_memif1,role=client,socket-abstract=no");
	assert_string_equal(out[5], "--vdev=net_memif2,socket-abstract=yes,id=1");
	assert_string_equal(out[6], "--vdev=net_null0");
	assert_string_equal(out[7], "net_memif3");
	assert_null(out[8]);
	free(out);
}

static void clients_and_abstract_names_are_left_alone(void **state)
{
	static const char *const devices[] = {
		"--vdev=net_memif0,role=client,socket-abstract=no,socket=",
		"--vdev=net_memif0,role=server,socket=",
		"--vdev=net_memif0,role=server,socket-abstract=yes,socket=",
		"--vdev=net_ring0,role=server,socket-abstract=no,socket=",
		"--allow=net_memif0,role=server,socket-abstract=no,socket=",
	};
	struct place *p = *state;
	char why[256] = "";
	size_t i;

	bind_there(p, SOCK_SEQPACKET, 1);
	close(p->fd);
	p->fd = -1;
	for (i = 0; i < sizeof(devices) / sizeof(devices[0]); i++) {
		snprintf(p->vdev, sizeof(p->vdev), "%s%s", devices[i], p->path);
		assert_int_equal(weft_memif_dead_remove(1, p->words, why, sizeof(why)), 0);
		assert_int_equal(access(p->path, F_OK), 0);
	}
}

#define PLACE_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PLACE_TEST(the_socket_of_a_dead_server_is_removed),
		PLACE_TEST(a_word_of_its_own_after_vdev_counts_too),
		PLACE_TEST(a_living_server_keeps_its_socket_and_receives_nothing),
		PLACE_TEST(what_is_no_socket_is_left_alone),
		PLACE_TEST(clients_and_abstract_names_are_left_alone),
		cmocka_unit_test(a_socket_is_private_unless_the_words_differ),
	};

	return cmocka_run_group_tests_name("memif_dead", tests, NULL, NULL);
}
