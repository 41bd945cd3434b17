/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The provider under libraries of other versions. This program is the library's fi_version(), so
 * the shared object sees the version that a test sets. devtools/check-libfabric.sh runs it under
 * libraries that are of other versions in fact.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_prov.h>

static uint32_t library;
static struct fi_provider *(*load)(void);

uint32_t fi_version(void)
{
	return library;
}

static struct fi_provider *loaded_by(uint32_t version)
{
	library = version;
	return load();
}

/* As the library does: the provider is not requested for versions that it does not report. */
static int request(const struct fi_provider *p, uint32_t version, const struct fi_info *hints)
{
	struct fi_info *info = NULL;
	int rc;

	if (p->fi_version < version)
		return -FI_ENOSYS;
	rc = p->getinfo(version, NULL, NULL, 0, hints, &info);
	if (rc == 0)
		fi_freeinfo(info);
	return rc;
}

static void reports_the_library(void **state)
{
	static const uint32_t versions[] = {FI_VERSION(1, 17), FI_VERSION(1, 18), FI_VERSION(1, 22),
					    FI_VERSION(2, 1), FI_VERSION(2, 6)};
	struct fi_provider *p;

	for (size_t i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		p = loaded_by(versions[i]);
		assert_int_equal(p->fi_version, versions[i]);
		/* Open MPI requests 1.0, which every library serves. */
		assert_int_equal(request(p, FI_VERSION(1, 0), NULL), 0);
		assert_int_equal(request(p, versions[i], NULL), 0);
		assert_int_equal(request(p, versions[i] + 1, NULL), -FI_ENOSYS);
	}
}

/* Nothing is promised for interfaces that do not exist yet. */
static void newest(void **state)
{
	struct fi_provider *p = loaded_by(FI_VERSION(99, 0));

	assert_true(p->fi_version >= FI_VERSION(2, 6) && p->fi_version < FI_VERSION(99, 0));
	assert_int_equal(request(p, FI_VERSION(2, 6), NULL), 0);
}

/* fi_domain_attr as of 1.20, whatever the headers have. */
struct later {
	struct fi_domain_attr attr;
	char rest[64];
};

static void set_later(struct later *l, size_t auth_keys, uint32_t group)
{
	char *end = (char *)&l->attr + offsetof(struct fi_domain_attr, tclass) + sizeof(uint64_t);

	memcpy(end, &auth_keys, sizeof(auth_keys));
	memcpy(end + sizeof(auth_keys), &group, sizeof(group));
}

/* Members that the headers of the build may not have are requests as any other. */
static void later_members(void **state)
{
	struct fi_provider *p = loaded_by(FI_VERSION(2, 1));
	struct later *l = calloc(1, sizeof(*l));
	struct fi_info hints = {.domain_attr = &l->attr};

	assert_int_equal(request(p, FI_VERSION(2, 1), &hints), 0);
	set_later(l, 1, 0);
	assert_int_equal(request(p, FI_VERSION(2, 1), &hints), -FI_ENODATA);
	set_later(l, 0, 1);
	assert_int_equal(request(p, FI_VERSION(2, 1), &hints), -FI_ENODATA);
	free(l);
}

/* A library of 1.17 has no such members: what lies behind the structure is not read. */
static void no_later_members(void **state)
{
	struct fi_provider *p = loaded_by(FI_VERSION(1, 17));
	struct later *l = calloc(1, sizeof(*l));
	struct fi_info hints = {.domain_attr = &l->attr};

	set_later(l, 1, 1);
	assert_int_equal(request(p, FI_VERSION(1, 17), &hints), 0);
	free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reports_the_library),
		cmocka_unit_test(newest),
		cmocka_unit_test(later_members),
		cmocka_unit_test(no_later_members),
	};
	const char *folder = getenv("FI_PROVIDER_PATH");
	char path[4096];
	void *object;

	snprintf(path, sizeof(path), "%s/libweft-fi.so", folder ? folder : ".");
	object = dlopen(path, RTLD_NOW);
	if (!object) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	load = (struct fi_provider * (*)(void)) dlsym(object, "fi_prov_ini");
	if (!load)
		return 1;
	return cmocka_run_group_tests_name("provider_version", tests, NULL, NULL);
}
