/* SPDX-License-Identifier: BSD-3-Clause */

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/host.h"
#include "port/claim.h"
#include "port/pick.h"

/* ---- candidates ----------------------------------------------------------------------------- */

#define PICK_MAX 512

struct candidate {
	char name[64];
	const char *args; /* of --vdev */
	bool vdev;
	bool near;
	bool matches;
	bool taken;          /* this process takes it, claimed if possible */
	int word, num_words; /* its position among the EAL's words; num_words 0 = not there */
};

#define MAX_CORES 8192

/* ---- distance ------------------------------------------------------------------------------- */

struct cores {
	size_t size;
	cpu_set_t *set; /* NULL = unknown */
};

/* Does a list such as "0-3,8-11" contain one of the process's cores? */
static bool has_core(const char *list, const struct cores *mine)
{
	unsigned long first, last;
	const char *at = list;
	char *end;

	while (isdigit((unsigned char)*at)) {
		first = last = strtoul(at, &end, 10);
		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		for (; first <= last && first < MAX_CORES; first++)
			if (CPU_ISSET_S(first, mine->size, mine->set))
				return true;
		at = *end == ',' ? end + 1 : end;
	}
	return false;
}

/* If the cores or the device's position are unknown, all devices are near. */
static bool is_near(const char *device, const struct cores *mine)
{
	char path[PATH_MAX], list[4096];
	bool near = true;
	FILE *f;

	snprintf(path, sizeof(path), "%s/local_cpulist", device);
	f = mine->set ? fopen(path, "re") : NULL;
	if (!f)
		return true;
	if (fgets(list, sizeof(list), f) && isdigit((unsigned char)list[0]))
		near = has_core(list, mine);
	fclose(f);
	return near;
}

/* ---- PCI ------------------------------------------------------------------------------------ */

static bool is_network(const char *device)
{
	char path[600];
	unsigned int class = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/class", device);
	f = fopen(path, "re");
	if (!f)
		return false;
	if (fscanf(f, "%x", &class) != 1)
		class = 0;
	fclose(f);
	return class >> 16 == 2;
}

static bool is_for_dpdk(const char *device)
{
	static const char *const drivers[] = {"vfio-pci",  "uio_pci_generic", "igb_uio",
					      "mlx5_core", "mlx4_core",       "mana"};
	char path[600], target[PATH_MAX];
	const char *name;
	ssize_t n;
	size_t i;

	snprintf(path, sizeof(path), "%s/driver", device);
	n = readlink(path, target, sizeof(target) - 1);
	if (n <= 0)
		return false;
	target[n] = '\0';
	name = strrchr(target, '/');
	name = name ? name + 1 : target;
	for (i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++)
		if (!strcmp(name, drivers[i]))
			return true;
	return false;
}

struct finder {
	struct candidate *list;
	int num;
	struct cores mine;
	const char *sys;
};

static struct candidate *add_candidate(struct finder *f, const char *name, size_t len)
{
	struct candidate *c = &f->list[f->num];

	if (f->num == PICK_MAX || len >= sizeof(c->name))
		return NULL;
	f->num++;
	*c = (struct candidate){.near = true};
	memcpy(c->name, name, len);
	c->name[len] = '\0';
	return c;
}

static void near_pci(const struct finder *f, struct candidate *c)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/bus/pci/devices/%s", f->sys, c->name);
	c->near = is_near(path, &f->mine);
}

static void find_pci(struct finder *f)
{
	char path[256], device[512];
	struct dirent **entries;
	struct candidate *c;
	int n, i;

	snprintf(path, sizeof(path), "%s/bus/pci/devices", f->sys);
	n = scandir(path, &entries, NULL, alphasort);
	for (i = 0; i < n; i++) {
		if (snprintf(device, sizeof(device), "%s/%s", path, entries[i]->d_name) <
			    (int)sizeof(device) &&
		    entries[i]->d_name[0] != '.' && is_network(device) && is_for_dpdk(device)) {
			c = add_candidate(f, entries[i]->d_name, strlen(entries[i]->d_name));
			if (c)
				near_pci(f, c);
		}
		free(entries[i]);
	}
	if (n >= 0)
		free(entries);
}

/* ---- the EAL's words ------------------------------------------------------------------------ */

/* @return the device that an option names; NULL: none. @param[out] num  words of the option */
static const char *device_of(int left, char *const *word, const char *option, int *num)
{
	size_t len = strlen(option);

	*num = 1;
	if (strncmp(word[0], option, len) != 0)
		return NULL;
	if (word[0][len] == '\0') {
		*num = 2;
		return left > 1 ? word[1] : NULL;
	}
	if (option[1] == '-')
		return word[0][len] == '=' ? word[0] + len + 1 : NULL;
	return word[0] + len;
}

static void add_word(struct finder *f, const char *device, bool vdev, int at, int num)
{
	size_t len = strcspn(device, ",");
	char iface[32], path[PATH_MAX], full[32];
	struct candidate *c;

	snprintf(full, sizeof(full), "0000:%.12s", device);
	if (!vdev && len == 7 && device[2] == ':')
		c = add_candidate(f, full, 12);
	else
		c = add_candidate(f, device, len);
	if (!c)
		return;
	c->vdev = vdev;
	c->args = device[len] ? device + len + 1 : NULL;
	c->word = at;
	c->num_words = num;
	if (!vdev) {
		near_pci(f, c);
	} else if (weft_device_arg(c->args, "iface", iface, sizeof(iface))) {
		snprintf(path, sizeof(path), "%s/class/net/%s/device", f->sys, iface);
		c->near = is_near(path, &f->mine);
	}
}

/* @return true: PCI devices are to be searched, as no argument of the EAL names or forbids them */
static bool find_words(struct finder *f, int count, char *const *words)
{
	static const char *const options[] = {"--vdev", "--allow", "-a"};
	const char *device;
	bool all = true;
	int i, num;
	size_t k;

	for (i = 0; i < count; i += num) {
		num = 1;
		if (!strcmp(words[i], "--no-pci"))
			all = false;
		for (k = 0; k < sizeof(options) / sizeof(options[0]); k++) {
			device = device_of(count - i, words + i, options[k], &num);
			if (!device)
				continue;
			all = all && k == 0;
			add_word(f, device, k == 0, i, num);
			break;
		}
		num = num > count - i ? 1 : device ? num : 1;
	}
	return all;
}

static void find_cores(struct cores *mine)
{
	mine->size = CPU_ALLOC_SIZE(MAX_CORES);
	mine->set = CPU_ALLOC(MAX_CORES);
	if (mine->set && sched_getaffinity(0, mine->size, mine->set) < 0) {
		CPU_FREE(mine->set);
		mine->set = NULL;
	}
}

/* Candidates are in the same order for all processes. @return their number, or -ENOMEM */
static int candidates_find(const char *sys, int count, char *const *words, struct candidate **list)
{
	struct finder f = {.sys = sys};

	f.list = calloc(PICK_MAX, sizeof(*f.list));
	*list = f.list;
	if (!f.list)
		return -ENOMEM;
	find_cores(&f.mine);
	if (find_words(&f, count, words))
		find_pci(&f);
	if (f.mine.set)
		CPU_FREE(f.mine.set);
	return f.num;
}

#define PATTERNS_MAX 16u

/* ---- the launcher --------------------------------------------------------------------------- */

static long first_number(const char *const *names)
{
	const char *text;
	char *end;
	long n;

	for (; *names; names++) {
		text = getenv(*names);
		if (!text || !isdigit((unsigned char)text[0]))
			continue;
		n = strtol(text, &end, 10);
		if (*end == '\0' && n >= 0)
			return n;
	}
	return -1;
}

void weft_local_find(struct weft_local *local)
{
	static const char *const rank[] = {"OMPI_COMM_WORLD_LOCAL_RANK",
					   "MPI_LOCALRANKID",
					   "MV2_COMM_WORLD_LOCAL_RANK",
					   "PALS_LOCAL_RANKID",
					   "FLUX_TASK_LOCAL_ID",
					   "SLURM_LOCALID",
					   NULL};
	static const char *const size[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS",
					   "MV2_COMM_WORLD_LOCAL_SIZE", "PALS_LOCAL_SIZE", NULL};

	local->rank = first_number(rank);
	local->size = first_number(size);
}

/* ---- devices that are held ----------------------------------------------------------------- */

/* Held until the process ends, or its EAL does not start. A child owns no ports of its parent. */
static struct weft_device_claim held[PATTERNS_MAX];
static unsigned int num_held;

void weft_pick_release(void)
{
	while (num_held)
		weft_device_unclaim(&held[--num_held]);
}

static void watch_forks(void)
{
	pthread_atfork(NULL, NULL, weft_pick_release);
}

/* ---- one pattern ---------------------------------------------------------------------------- */

struct picking {
	const struct weft_pick *p;
	struct candidate *list;
	int num;
	char *note, *why;
	size_t note_len, why_len;
};

/* A pattern may omit the domain of a PCI address if the domain is 0. */
static bool pattern_fits(const char *pattern, const struct candidate *c)
{
	return fnmatch(pattern, c->name, 0) == 0 ||
	       (!c->vdev && !strncmp(c->name, "0000:", 5) && fnmatch(pattern, c->name + 5, 0) == 0);
}

static int match_devices(struct picking *g, const char *pattern, int *found, int *num_near)
{
	int i, n = 0;

	*num_near = 0;
	for (i = 0; i < g->num; i++) {
		if (!pattern_fits(pattern, &g->list[i]))
			continue;
		g->list[i].matches = true;
		if (g->list[i].taken)
			continue;
		found[n++] = i;
		*num_near += g->list[i].near;
	}
	return n;
}

/* Near devices come first. Both groups begin at the process's local rank, and wrap around. */
static int put_in_order(struct picking *g, const char *pattern, int *order)
{
	long rank = g->p->local.rank > 0 ? g->p->local.rank : 0, place;
	int found[PICK_MAX], seen[2] = {0, 0}, num[2], i, far;
	int n = match_devices(g, pattern, found, &num[0]);

	num[1] = n - num[0];
	for (i = 0; i < n; i++) {
		far = !g->list[found[i]].near;
		place = (seen[far]++ + num[far] - rank % num[far]) % num[far];
		order[(far ? num[0] : 0) + place] = found[i];
	}
	return n;
}

static int claim_candidate(const struct candidate *c,
			   int (*how)(const char *name, struct weft_claim_owner *owner),
			   struct weft_device_claim *claim)
{
	const struct weft_device d = {
		.bus = c->vdev ? "vdev" : "pci", .name = c->name, .args = c->args};
	char name[WEFT_CLAIM_NAME];
	int rc = weft_device_claim(&d, how, claim);

	if (rc || claim->num)
		return rc;
	claim->fds = calloc(1, sizeof(*claim->fds));
	if (!claim->fds)
		return -ENOMEM;
	weft_claim_args_name(name, c->name, c->args ? c->args : "");
	rc = how(name, &claim->owner);
	if (rc >= 0)
		claim->fds[claim->num++] = rc;
	else
		weft_device_unclaim(claim);
	return rc < 0 ? rc : 0;
}

/* Of several results, the lowest one is reported. */
enum { CLAIMED, UNCLAIMED, BUSY, BROKEN, NOTHING };

static int kind_of(int rc)
{
	switch (rc) {
	case 0:
		return CLAIMED;
	case -EADDRINUSE:
	case -EBUSY:
		return BUSY;
	case -ENODEV:
	case -ENOMEM:
		return BROKEN;
	default:
		/*
		 * Claims do not work here, or the owner is not trusted. After weft_claim_now() the
		 * owner may also be ending. In each case the device may be free.
		 */
		return UNCLAIMED;
	}
}

/* @return 0 or the most important error; it belongs to device @p chosen, as does @p dc */
static int try_all(struct picking *g, const int *order, int n,
		   int (*how)(const char *name, struct weft_claim_owner *owner),
		   struct weft_device_claim *dc, int *chosen, int *busy)
{
	struct weft_device_claim one;
	int i, rc, kind = NOTHING, most = -EBUSY;

	*busy = 0;
	for (i = 0; i < n && kind != CLAIMED; i++) {
		rc = claim_candidate(&g->list[order[i]], how, &one);
		*busy += kind_of(rc) == BUSY;
		if (kind_of(rc) >= kind)
			continue;
		kind = kind_of(rc);
		most = rc;
		*dc = one;
		*chosen = order[i];
	}
	return most;
}

static int none_left(struct picking *g, const char *pattern, int chosen, int n, int broken,
		     const struct weft_device_claim *dc)
{
	const struct weft_local *l = &g->p->local;
	char holder[96], job[96] = "", lost[64] = "";

	if (l->size > n)
		snprintf(job, sizeof(job),
			 "this host has %ld processes of the job, and %d port%s; ", l->size, n,
			 n == 1 ? "" : "s");
	if (broken > 0)
		snprintf(lost, sizeof(lost), ", except %d that can't be opened", broken);
	weft_claim_owner_text(&dc->owner, holder, sizeof(holder));
	snprintf(g->why, g->why_len,
		 "WEFT_PORTS: %sall %d that '%s' matches have a process (%s: %s)%s: make a port "
		 "for each process (VFs, queues of net_af_xdp), start fewer, or let weft-switch "
		 "give each a port of one NIC (doc/switch.md)",
		 job, n, pattern, g->list[chosen].name, holder, lost);
	return -EBUSY;
}

static int nothing_matches(struct picking *g, const char *pattern)
{
	snprintf(
		g->why, g->why_len,
		"WEFT_PORTS: nothing matches '%s': neither a PCI network device that DPDK can have "
		"(bound to vfio-pci or a uio driver, or mlx5's; weft-bind lists them) nor a "
		"--vdev or -a of the EAL's arguments",
		pattern);
	return -ENODEV;
}

static int pick_one(struct picking *g, const char *pattern)
{
	struct weft_device_claim dc = {0};
	int order[PICK_MAX], n = put_in_order(g, pattern, order), chosen = 0, busy, rc;
	size_t used;

	if (n == 0)
		return nothing_matches(g, pattern);
	rc = try_all(g, order, n, weft_claim_now, &dc, &chosen, &busy);
	if (rc)
		rc = try_all(g, order, n, weft_claim, &dc, &chosen, &busy);
	if (kind_of(rc) == BUSY)
		return none_left(g, pattern, chosen, n, n - busy, &dc);
	if (kind_of(rc) == BROKEN) {
		snprintf(g->why, g->why_len, "WEFT_PORTS: %s: %s: %s", g->list[chosen].name,
			 dc.what, strerror(-rc));
		return rc;
	}
	if (rc == 0)
		held[num_held++] = dc;
	g->list[chosen].taken = true;
	used = strlen(g->note);
	snprintf(g->note + used, g->note_len - used, "%s%s",
		 used ? ", " : "WEFT_PORTS: ", g->list[chosen].name);
	return 0;
}

/* ---- the EAL's words ------------------------------------------------------------------------ */

/* Was a matching PCI device not taken, and does no word keep the EAL from probing all devices? */
static bool would_probe(const struct picking *g, char *const *words, int n)
{
	bool others = false;
	int i;

	for (i = 0; i < g->num; i++)
		others |= !g->list[i].vdev && g->list[i].matches && !g->list[i].taken;
	for (i = 0; i < n && others; i++)
		others = strncmp(words[i], "-a", 2) && strncmp(words[i], "--allow", 7);
	return others;
}

static int make_words(const struct picking *g, int count, char *const *words, char ***out)
{
	static char no_pci[] = "--no-pci";
	size_t room = (size_t)(count + 2 * g->num + 1), at, bytes = 0;
	bool *drop;
	char *text;
	int i, k, n = 0;

	for (i = 0; i < g->num; i++)
		bytes += strlen(g->list[i].name) + 1;
	*out = calloc(1, room * sizeof(char *) + bytes + 3 + (size_t)count);
	if (!*out)
		return -ENOMEM;
	/* One block: the pointers, "-a" and the names, and the flags of words to drop. */
	text = (char *)(*out + room);
	memcpy(text, "-a", 3);
	drop = (bool *)(text + 3 + bytes);
	for (i = 0; i < g->num; i++)
		for (k = 0; k < g->list[i].num_words; k++)
			drop[g->list[i].word + k] = g->list[i].matches && !g->list[i].taken;
	for (i = 0; i < count; i++)
		if (!drop[i])
			(*out)[n++] = words[i];
	for (i = 0, at = 3; i < g->num; i++) {
		if (!g->list[i].taken || g->list[i].num_words)
			continue;
		memcpy(text + at, g->list[i].name, strlen(g->list[i].name) + 1);
		(*out)[n++] = text;
		(*out)[n++] = text + at;
		at += strlen(g->list[i].name) + 1;
	}
	if (would_probe(g, *out, n))
		(*out)[n++] = no_pci;
	return n;
}

static int pick_all(struct picking *g, char *patterns)
{
	char *save = NULL, *one;
	int rc = 0;

	for (one = strtok_r(patterns, "; \t", &save); one && rc == 0;
	     one = strtok_r(NULL, "; \t", &save)) {
		if (num_held == PATTERNS_MAX) {
			snprintf(g->why, g->why_len, "WEFT_PORTS has more than %u patterns",
				 PATTERNS_MAX);
			return -EINVAL;
		}
		rc = pick_one(g, one);
	}
	return rc;
}

int weft_pick(const struct weft_pick *p, int count, char *const *words, char ***out, char *note,
	      size_t note_len, char *why, size_t why_len)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct picking g = {
		.p = p, .note = note, .note_len = note_len, .why = why, .why_len = why_len};
	char *patterns = strdup(p->ports);
	int rc;

	*out = NULL;
	snprintf(note, note_len, "%s", "");
	pthread_once(&once, watch_forks);
	g.num = candidates_find(p->sys, count, words, &g.list);
	rc = !patterns || g.num < 0 ? -ENOMEM : pick_all(&g, patterns);
	if (rc == -ENOMEM)
		snprintf(why, why_len, "no memory to choose ports");
	if (rc == 0)
		rc = make_words(&g, count, words, out);
	else
		weft_pick_release();
	free(patterns);
	free(g.list);
	return rc;
}

/* ---- memif among the words ------------------------------------------------------------------- */

#define MEMIF_PATH "/run/memif.sock"

struct server {
	char path[256];
	bool abstract;
	unsigned int id;
};

static bool is_server(const char *device, struct server *s)
{
	char word[16];

	if (strncmp(device, "net_memif", 9) ||
	    !weft_device_arg(device, "role", word, sizeof(word)) ||
	    (strcmp(word, "server") && strcmp(word, "master")))
		return false;
	s->abstract = !weft_device_arg(device, "socket-abstract", word, sizeof(word)) ||
		      strcmp(word, "no");
	if (!weft_device_arg(device, "socket", s->path, sizeof(s->path)))
		snprintf(s->path, sizeof(s->path), "%s", MEMIF_PATH);
	s->id = weft_device_arg(device, "id", word, sizeof(word))
			? (unsigned int)strtoul(word, NULL, 10)
			: 0;
	return true;
}

static int is_taken(const char *path, const char *holder, char *why, size_t why_len)
{
	snprintf(why, why_len,
		 "the memif server's socket %s is taken: %s listens there; end it, or give another "
		 "socket=",
		 path, holder);
	return -EADDRINUSE;
}

static int make_free(const struct server *s, char *why, size_t why_len)
{
	struct weft_claim_owner owner;
	char name[WEFT_CLAIM_NAME], holder[96];
	const char *path = s->path;
	struct stat st;

	weft_claim_memif_name(name, path, s->abstract, true, s->id);
	if (weft_claimed(name, &owner)) {
		weft_claim_owner_text(&owner, holder, sizeof(holder));
		return is_taken(path, holder, why, why_len);
	}
	if (s->abstract || lstat(path, &st))
		return 0;
	if (!S_ISSOCK(st.st_mode)) {
		snprintf(why, why_len,
			 "the memif server's socket %s can't be made: there is a file that is no "
			 "socket; give another socket=",
			 path);
		return -EADDRINUSE;
	}
	if (weft_socket_is_dead(path) && (!unlink(path) || errno == ENOENT))
		return 0;
	return is_taken(path, "another process", why, why_len);
}

/* @return the device arguments in word @p i: "--vdev=ARGS", or ARGS after "--vdev"; NULL: none */
static const char *vdev_of(int i, char *const *words)
{
	if (!strncmp(words[i], "--vdev=", 7))
		return words[i] + 7;
	return i > 0 && !strcmp(words[i - 1], "--vdev") ? words[i] : NULL;
}

static char *append_text(char *to, const char *text)
{
	size_t n = strlen(text);

	memcpy(to, text, n);
	return to + n;
}

char **weft_memif_private_words(int count, char *const *words)
{
	static const char private[] = ",socket-abstract=no";
	size_t bytes = ((size_t)count + 1) * sizeof(char *);
	const char *device;
	char **out, *text, word[16];
	int i;

	for (i = 0; i < count; i++)
		bytes += strlen(words[i]) + sizeof(private);
	out = malloc(bytes);
	if (!out)
		return NULL;
	text = (char *)(out + count + 1);
	for (i = 0; i < count; i++) {
		device = vdev_of(i, words);
		out[i] = text;
		text = append_text(text, words[i]);
		if (device && !strncmp(device, "net_memif", 9) &&
		    !weft_device_arg(device, "socket-abstract", word, sizeof(word)))
			text = append_text(text, private);
		*text++ = '\0';
	}
	out[count] = NULL;
	return out;
}

int weft_memif_dead_remove(int count, char *const *words, char *why, size_t why_len)
{
	const char *device;
	struct server s;
	int i, rc = 0;

	for (i = 0; i < count && rc == 0; i++) {
		device = vdev_of(i, words);
		if (device && is_server(device, &s))
			rc = make_free(&s, why, why_len);
	}
	return rc;
}
