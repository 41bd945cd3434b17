/* SPDX-License-Identifier: BSD-3-Clause */
/* Which variable decides about lanes: the user's, the host's, the job's. One process. */

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

/* Lanes are opened when the first endpoint is enabled. */
static bool enable(struct fid_domain *domain, struct fi_info *info)
{
	struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_CONTEXT};
	struct fid_ep *ep;
	struct fid_av *av;
	struct fid_cq *cq;
	bool works;

	assert_int_equal(fi_av_open(domain, &av_attr, &av, NULL), 0);
	assert_int_equal(fi_cq_open(domain, &cq_attr, &cq, NULL), 0);
	assert_int_equal(fi_endpoint(domain, info, &ep, NULL), 0);
	assert_int_equal(fi_ep_bind(ep, &av->fid, 0), 0);
	assert_int_equal(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
	works = fi_enable(ep) == 0;
	fi_close(&ep->fid);
	fi_close(&cq->fid);
	fi_close(&av->fid);
	return works;
}

static bool opens(void)
{
	struct fi_info *hints = fi_allocinfo(), *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	bool works;

	hints->fabric_attr->prov_name = strdup("weft");
	assert_int_equal(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info), 0);
	assert_int_equal(fi_fabric(info->fabric_attr, &fabric, NULL), 0);
	works = fi_domain(fabric, info, &domain, NULL) == 0;
	if (works) {
		works = enable(domain, info);
		fi_close(&domain->fid);
	}
	fi_close(&fabric->fid);
	fi_freeinfo(info);
	fi_freeinfo(hints);
	return works;
}

static void set(const char *name, const char *value)
{
	if (value)
		setenv(name, value, 1);
	else
		unsetenv(name);
}

static void lanes(void **state)
{
	static const char *const good = "shm", *const bad = "nothere:0";
	const struct {
		const char *user, *host, *job;
		bool opens;
	} cases[] = {
		{NULL, NULL, good, true}, {NULL, NULL, bad, false}, {NULL, good, bad, true},
		{NULL, bad, good, false}, {good, bad, bad, true},   {bad, good, good, false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		set("FI_WEFT_LANES", cases[i].user);
		set("WEFT_LANES", cases[i].host);
		set("FI_WEFT_JOB_LANES", cases[i].job);
		if (opens() != cases[i].opens)
			fail_msg("case %zu", i);
	}
	set("FI_WEFT_LANES", NULL);
	set("WEFT_LANES", NULL);
	set("FI_WEFT_JOB_LANES", NULL);
}

/* A host's configuration file has priority over the job's lanes, as its environment has. */
static void lanes_of_a_file(void **state)
{
	static const char *const lines[] = {"WEFT_LANES=shm\n", "WEFT_LANES=nothere:0\n"};
	char path[] = "/tmp/weft-options-XXXXXX", *before = getenv("WEFT_CONFIG");
	int fd = mkstemp(path);

	before = before ? strdup(before) : NULL;
	set("WEFT_CONFIG", path);
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(ftruncate(fd, 0), 0);
		assert_int_equal(pwrite(fd, lines[i], strlen(lines[i]), 0), strlen(lines[i]));
		set("FI_WEFT_JOB_LANES", i == 0 ? "nothere:0" : "shm");
		if (opens() != (i == 0))
			fail_msg("case %u", i);
	}
	set("FI_WEFT_JOB_LANES", NULL);
	set("WEFT_CONFIG", before);
	free(before);
	close(fd);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lanes),
		cmocka_unit_test(lanes_of_a_file),
	};

	setenv("FI_PROVIDER", "weft", 1);
	return cmocka_run_group_tests_name("provider_options", tests, NULL, NULL);
}
