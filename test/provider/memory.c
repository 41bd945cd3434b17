/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of libfabric's provider that find no memory. One process. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>

enum { FIRST = 16, MOST = 64 }; /* entries of a new address vector, and of one that grew twice */

void *__libc_calloc(size_t num, size_t size);

static size_t missing; /* allocations of this number of 4-byte elements fail */

/* The provider's calls come here, since the program exports its symbols. */
void *calloc(size_t num, size_t size)
{
	return missing && num == missing && size == sizeof(uint32_t) ? NULL
								     : __libc_calloc(num, size);
}

static struct fi_info *get_info(void)
{
	struct fi_info *hints = fi_allocinfo(), *info;

	hints->fabric_attr->prov_name = strdup("weft");
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_TAGGED;
	assert_int_equal(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info), 0);
	fi_freeinfo(hints);
	return info;
}

/* An address is refused while there is no memory for the hash, and taken later. */
static void an_address_vector_survives_lack_of_memory(void **state)
{
	struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_TAGGED};
	struct fi_av_attr av_attr = {0};
	struct fi_info *info = get_info();
	uint8_t name[FI_NAME_MAX];
	size_t length = sizeof(name), failed = 0;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq;
	struct fid_ep *ep;

	assert_int_equal(fi_fabric(info->fabric_attr, &fabric, NULL), 0);
	assert_int_equal(fi_domain(fabric, info, &domain, NULL), 0);
	assert_int_equal(fi_av_open(domain, &av_attr, &av, NULL), 0);
	assert_int_equal(fi_cq_open(domain, &cq_attr, &cq, NULL), 0);
	assert_int_equal(fi_endpoint(domain, info, &ep, NULL), 0);
	assert_int_equal(fi_ep_bind(ep, &av->fid, 0), 0);
	assert_int_equal(fi_ep_bind(ep, &cq->fid, FI_TRANSMIT | FI_RECV), 0);
	assert_int_equal(fi_enable(ep), 0);
	assert_int_equal(fi_getname(&ep->fid, name, &length), 0);
	for (size_t i = 0; i < MOST; i++) {
		/* Full: the next size is FIRST, and twice as many each time. */
		if (i == 0 || (i >= FIRST && (i & (i - 1)) == 0)) {
			missing = i == 0 ? 2 * FIRST : 4 * i;
			assert_int_equal(fi_av_insert(av, name, 1, NULL, 0, NULL), 0);
			missing = 0;
			failed++;
		}
		assert_int_equal(fi_av_insert(av, name, 1, NULL, 0, NULL), 1);
	}
	assert_int_equal(failed, 3);
	assert_int_equal(fi_close(&ep->fid), 0);
	assert_int_equal(fi_close(&cq->fid), 0);
	assert_int_equal(fi_close(&av->fid), 0);
	assert_int_equal(fi_close(&domain->fid), 0);
	assert_int_equal(fi_close(&fabric->fid), 0);
	fi_freeinfo(info);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_address_vector_survives_lack_of_memory),
	};

	setenv("FI_PROVIDER", "weft", 1);
	setenv("FI_WEFT_LANES", "shm", 1);
	return cmocka_run_group_tests_name("provider_memory", tests, NULL, NULL);
}
