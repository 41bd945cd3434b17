/* SPDX-License-Identifier: BSD-3-Clause */

#include "core/lane_list.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/config.h"
#include "core/config_text.h"

/* Without blanks around [p, end). @return false if it does not fit */
static bool copy_trimmed(char *dst, size_t size, const char *p, const char *end)
{
	while (p < end && isspace((unsigned char)*p))
		p++;
	while (end > p && isspace((unsigned char)end[-1]))
		end--;
	if ((size_t)(end - p) >= size)
		return false;
	memcpy(dst, p, (size_t)(end - p));
	dst[end - p] = '\0';
	return true;
}

static void driver_names(const struct weft_lane_driver *const *drivers, char *buf, size_t size)
{
	size_t n = 0;

	buf[0] = '\0';
	for (; *drivers && n < size; drivers++)
		n += (size_t)snprintf(buf + n, size - n, "%s%s", n > 0 ? ", " : "",
				      (*drivers)->name);
}

static const struct weft_lane_driver *find_driver(const struct weft_lane_driver *const *drivers,
						  const char *name)
{
	/* weft-info and the documents use the transport's full name, roce_rc. */
	if (strcmp(name, "roce_rc") == 0)
		name = "roce";
	for (; *drivers; drivers++)
		if (strcmp((*drivers)->name, name) == 0)
			return *drivers;
	return NULL;
}

static bool option_known(const char *known, const char *name, size_t len)
{
	size_t n;

	for (;;) {
		known += strspn(known, ", ");
		if (*known == '\0')
			return false;
		n = strcspn(known, ", =");
		if (n == len && strncmp(known, name, len) == 0)
			return true;
		known += strcspn(known, ",");
	}
}

/* ------------------------------------------------------------------ numbers */

static const struct {
	const char *name, *expected;
	size_t offset;
	bool rate;
	double min, max;
} numbers[] = {
	{"bw", "a rate such as 25Gbps or 3GBs, from 1kBs to 10TBs",
	 offsetof(struct weft_lane_numbers, bandwidth), true, 1e3, 1e13},
	{"lat", "a time such as 12us, from 1ns to 10s", offsetof(struct weft_lane_numbers, latency),
	 false, 1e-9, 10},
	{"overhead", "a time such as 100ns, up to 1s", offsetof(struct weft_lane_numbers, overhead),
	 false, 0, 1},
	{"reg", "a time such as 16us, up to 10s", offsetof(struct weft_lane_numbers, reg_cost),
	 false, 0, 10},
};

#define NUM_NUMBERS (sizeof(numbers) / sizeof(numbers[0]))

static const char configured[] = "configured (WEFT_LANES)";

void weft_lane_numbers_apply(const struct weft_lane_numbers *n, struct weft_lane_attr *attr)
{
	if (n->given & 1u << 0) {
		attr->bandwidth = n->bandwidth;
		attr->bandwidth_known = true;
		attr->features |= WEFT_LANE_F_BW_SET;
		attr->bandwidth_from = configured;
	}
	if (n->given & 1u << 1) {
		attr->latency = n->latency;
		attr->features |= WEFT_LANE_F_LAT_SET;
		attr->latency_from = configured;
	}
	if (n->given & 1u << 2) {
		attr->send_overhead = attr->recv_overhead = n->overhead;
		attr->overhead_from = configured;
	}
	if (n->given & 1u << 3)
		attr->reg_cost = n->reg_cost;
}

/* @return 1 = taken; 0 = not in numbers[]; -EINVAL */
static int take_number(struct weft_lanes_item *item, const char *p, size_t len, char *why,
		       size_t why_len)
{
	char text[64];
	double value;
	size_t n;

	for (size_t i = 0; i < NUM_NUMBERS; i++) {
		n = strlen(numbers[i].name);
		if (len <= n || strncmp(p, numbers[i].name, n) != 0 || p[n] != '=')
			continue;
		snprintf(text, sizeof(text), "%.*s", (int)(len - n - 1), p + n + 1);
		if (!(numbers[i].rate ? weft_rate_parse(text, &value)
				      : weft_time_parse(text, &value)) ||
		    value < numbers[i].min || value > numbers[i].max) {
			snprintf(why, why_len, "lane %s:%s: %s=%s: expected %s", item->driver->name,
				 item->all ? "*" : item->resource, numbers[i].name, text,
				 numbers[i].expected);
			return -EINVAL;
		}
		*(double *)((char *)&item->numbers + numbers[i].offset) = value;
		item->numbers.given |= 1u << i;
		return 1;
	}
	return 0;
}

/* Options that the driver lists itself stay. */
static int take_numbers(struct weft_lanes_item *item, char *why, size_t why_len)
{
	const char *known = item->driver->options ? item->driver->options : "";
	char rest[sizeof(item->options)] = "";
	const char *p = item->options;
	size_t n, used = 0;
	int rc;

	for (; *p != '\0'; p += n) {
		p += strspn(p, ", ");
		n = strcspn(p, ",");
		if (n == 0)
			continue;
		rc = option_known(known, p, strcspn(p, "=, "))
			     ? 0
			     : take_number(item, p, n, why, why_len);
		if (rc < 0)
			return rc;
		if (rc == 0)
			used += (size_t)snprintf(rest + used, sizeof(rest) - used, "%s%.*s",
						 used > 0 ? "," : "", (int)n, p);
	}
	memcpy(item->options, rest, sizeof(rest));
	return 0;
}

#define FOR_ALL "bw, lat, overhead, reg"

static int check_options(const struct weft_lanes_item *item, char *why, size_t why_len)
{
	const char *known = item->driver->options ? item->driver->options : "";
	const char *p = item->options, *res = item->all ? "*" : item->resource;
	const char *drv = item->driver->name;
	char name[64], near[64];
	size_t n, len;

	for (; *p != '\0'; p += n) {
		p += strspn(p, ", ");
		n = strcspn(p, ",");
		len = strcspn(p, "=, ");
		if (n == 0 || option_known(known, p, len))
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)len, p);
		if (!memchr(p, '=', n) && memchr(p, ':', n))
			snprintf(why, why_len,
				 "lane %s:%s: '%s' is no option; lanes are separated by ';', as in "
				 "'%s:%s;%s'",
				 drv, res, name, drv, res, name);
		else if (weft_nearest_word(name, known, ", ", near, sizeof(near)))
			snprintf(why, why_len,
				 "lane %s:%s: unknown option '%s'; is '%s' meant? (known: %s%s%s)",
				 drv, res, name, near, known, known[0] ? ", " : "", FOR_ALL);
		else
			snprintf(why, why_len, "lane %s:%s: unknown option '%s' (known: %s%s%s)",
				 drv, res, name, known, known[0] ? ", " : "", FOR_ALL);
		return -EINVAL;
	}
	return 0;
}

static int no_driver(const char *p, const char *end, const char *name,
		     const struct weft_lane_driver *const *drivers, char *why, size_t why_len)
{
	char names[128], near[32];

	driver_names(drivers, names, sizeof(names));
	if (weft_nearest_word(name, names, ", ", near, sizeof(near)))
		snprintf(why, why_len, "lane '%.*s': there is no driver '%s'; is '%s' meant?",
			 (int)(end - p), p, name, near);
	else
		snprintf(why, why_len, "lane '%.*s': there is no driver '%s'; this build has %s",
			 (int)(end - p), p, name, names);
	return -EINVAL;
}

static int too_many(char *why, size_t why_len)
{
	snprintf(why, why_len, "more than %d lanes", WEFT_LANES_MAX_ITEMS);
	return -EINVAL;
}

static int parse_item(const char *p, const char *end, const struct weft_lane_driver *const *drivers,
		      struct weft_lanes_item *item, char *why, size_t why_len)
{
	char name[32];
	const char *comma = memchr(p, ',', (size_t)(end - p));
	const char *head_end = comma ? comma : end;
	const char *colon = memchr(p, ':', (size_t)(head_end - p));

	memset(item, 0, sizeof(*item));
	if (!copy_trimmed(name, sizeof(name), p, colon ? colon : head_end))
		name[0] = '\0';
	item->driver = find_driver(drivers, name);
	if (!item->driver)
		return no_driver(p, end, name, drivers, why, why_len);
	if (colon && !copy_trimmed(item->resource, sizeof(item->resource), colon + 1, head_end)) {
		snprintf(why, why_len, "lane '%.*s': the resource's name is too long",
			 (int)(end - p), p);
		return -EINVAL;
	}
	if (comma && !copy_trimmed(item->options, sizeof(item->options), comma + 1, end)) {
		snprintf(why, why_len, "lane '%.*s': the options are too long", (int)(end - p), p);
		return -EINVAL;
	}
	if (colon && item->resource[0] == '\0') {
		snprintf(why, why_len,
			 "lane '%.*s': a resource must follow the colon, or '*' for all",
			 (int)(end - p), p);
		return -EINVAL;
	}
	item->all = colon == NULL || strcmp(item->resource, "*") == 0;
	if (take_numbers(item, why, why_len) < 0)
		return -EINVAL;
	return check_options(item, why, why_len);
}

/* Append an item for each driver that is not in @p without (bit i: drivers[i]). */
static int add_all(const struct weft_lane_driver *const *drivers, uint32_t without,
		   struct weft_lanes_item *items, int n, char *why, size_t why_len)
{
	for (unsigned int i = 0; drivers[i]; i++) {
		if (without >> i & 1)
			continue;
		if (n == WEFT_LANES_MAX_ITEMS)
			return too_many(why, why_len);
		items[n++] = (struct weft_lanes_item){
			.driver = drivers[i],
			.all = true,
			.fallback = drivers[i]->fallback,
		};
	}
	return n;
}

static int parse_without(const char *p, const char *end,
			 const struct weft_lane_driver *const *drivers, uint32_t *without,
			 char *why, size_t why_len)
{
	const struct weft_lane_driver *driver;
	char name[32];

	if (!copy_trimmed(name, sizeof(name), p + 1, end))
		name[0] = '\0';
	driver = find_driver(drivers, name);
	if (!driver)
		return no_driver(p, end, name, drivers, why, why_len);
	for (unsigned int i = 0; i < 32 && drivers[i]; i++)
		if (drivers[i] == driver)
			*without |= 1u << i;
	return 0;
}

static bool is_word(const char *p, const char *end, const char *word)
{
	return strlen(word) == (size_t)(end - p) && strncmp(p, word, strlen(word)) == 0;
}

int weft_lanes_parse(const char *text, const struct weft_lane_driver *const *drivers,
		     struct weft_lanes_item *items, char *why, size_t why_len)
{
	const char *p = text, *end, *next;
	uint32_t without = 0;
	bool all = false;
	int n = 0, rc;

	for (; *p != '\0'; p = next) {
		end = p + strcspn(p, ";");
		next = *end == ';' ? end + 1 : end;
		while (p < end && isspace((unsigned char)*p))
			p++;
		while (end > p && isspace((unsigned char)end[-1]))
			end--;
		if (p == end)
			continue;
		if (is_word(p, end, "all") || is_word(p, end, "*")) {
			all = true;
			continue;
		}
		if (*p == '-') {
			rc = parse_without(p, end, drivers, &without, why, why_len);
			if (rc < 0)
				return rc;
			continue;
		}
		if (n == WEFT_LANES_MAX_ITEMS)
			return too_many(why, why_len);
		rc = parse_item(p, end, drivers, &items[n], why, why_len);
		if (rc < 0)
			return rc;
		n++;
	}
	if (all || n == 0)
		return add_all(drivers, without, items, n, why, why_len);
	if (without == 0)
		return n;
	snprintf(
		why, why_len,
		"'-NAME' takes a driver out of '*', but the list has no '*': set '%s;*', or remove "
		"'-NAME', because only the named lanes are used",
		text);
	return -EINVAL;
}
