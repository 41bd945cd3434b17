/* SPDX-License-Identifier: BSD-3-Clause */

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <rte_mbuf_pool_ops.h>
#include <rte_mempool.h>

#include "base/host.h"
#include "port/eal.h"
#include "port/memif/memif.h"
#include "port/pick.h"

/* ---- log lines ------------------------------------------------------------------------------ */

/*
 * DPDK's log lines while the EAL starts. Even a process without ports gets a line for each NIC that
 * a PMD probes and cannot use. Such lines are held back, and printed if the start fails.
 */

/* Threads of the EAL may hold the stream when it is replaced, so it is never closed. */
static struct {
	FILE *stream;
	bool hold;
	size_t used;
	char text[16384];
} held;

static ssize_t on_write(void *cookie, const char *text, size_t len)
{
	size_t room = sizeof(held.text) - held.used;

	(void)cookie;
	if (!held.hold)
		return write(STDERR_FILENO, text, len);
	if (room > len)
		room = len;
	memcpy(held.text + held.used, text, room);
	held.used += room;
	return (ssize_t)len;
}

/* The EAL's log lines are of use where a NIC is bound to vfio or uio. */
static bool log_nic_bound(const char *sys)
{
	static const char *const drivers[] = {"vfio-pci", "uio_pci_generic", "igb_uio",
					      "uio_hv_generic"};
	char pattern[256];
	bool found = false;
	glob_t g;
	size_t i;

	for (i = 0; i < sizeof(drivers) / sizeof(drivers[0]) && !found; i++) {
		/* A device is a link whose name contains a ':' (PCI) or a '-' (VMBus). */
		snprintf(pattern, sizeof(pattern), "%s/bus/*/drivers/%s/*[0-9a-f][-:]*", sys,
			 drivers[i]);
		if (glob(pattern, 0, NULL, &g) == 0) {
			found = true;
			globfree(&g);
		}
	}
	return found;
}

/* Without memory for the stream the lines are printed as usual. */
static void log_hold(void)
{
	static const cookie_io_functions_t functions = {.write = on_write};

	if (!held.stream) {
		held.stream = fopencookie(NULL, "w", functions);
		if (!held.stream)
			return;
		setvbuf(held.stream, NULL, _IONBF, 0);
	}
	held.used = 0;
	held.hold = true;
	rte_openlog_stream(held.stream);
}

/* @param show  print the lines that were held back, to standard error */
static void log_release(bool show)
{
	if (!held.hold)
		return;
	rte_openlog_stream(NULL);
	fflush(held.stream);
	held.hold = false;
	if (show)
		fwrite(held.text, 1, held.used, stderr);
}

/* ---- sockets of processes that have ended --------------------------------------------------- */

#define TELEMETRY "dpdk_telemetry.v" /* followed by 1 or 2, and :N */

void weft_eal_dead_remove(const char *base)
{
	char folder[256];

	if (snprintf(folder, sizeof(folder), "%s/dpdk/weft", base) < (int)sizeof(folder))
		weft_sockets_sweep(folder, TELEMETRY, 0);
}

/* ---- the folder of the sockets -------------------------------------------------------------- */

/* Can the EAL create BASE/dpdk, and a folder for its prefix in it, as rte_eal_init() does? */
static bool is_usable(const char *base)
{
	char path[512];

	if (snprintf(path, sizeof(path), "%s/dpdk", base) >= (int)sizeof(path))
		return false;
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return false;
	return access(path, W_OK | X_OK) == 0;
}

/* Any user can create BASE/dpdk. Users that can write to it could replace the files in it. */
static bool is_ours(const char *tmp)
{
	char path[512];

	return snprintf(path, sizeof(path), "%s/dpdk", tmp) < (int)sizeof(path) &&
	       weft_private_folder(path);
}

enum weft_eal_folder weft_eal_folder_find(uid_t uid, const char *runtime, const char *tmp,
					  char *own, size_t size)
{
	if (uid == 0) /* the EAL tries no other folder */
		return is_usable(runtime) ? WEFT_EAL_FOLDER_ITS : WEFT_EAL_FOLDER_NONE;
	if (runtime ? is_usable(runtime) : is_ours(tmp))
		return WEFT_EAL_FOLDER_ITS;
	if (!weft_user_folder(uid, tmp, own, size))
		return WEFT_EAL_FOLDER_NONE;
	return is_usable(own) ? WEFT_EAL_FOLDER_OWN : WEFT_EAL_FOLDER_NONE;
}

/* @param[out] base  for BASE/dpdk: a static text, @p own, or a text of the environment */
static enum weft_eal_folder folder_now(char *own, size_t size, const char **base)
{
	static const char tmp[] = "/tmp";
	uid_t uid = getuid();
	const char *runtime = uid == 0 ? "/var/run" : secure_getenv(WEFT_EAL_FOLDER_VARIABLE);
	enum weft_eal_folder which;

	/* With set-user-id, the effective user does not own a folder with the real user's name. */
	if (uid != geteuid()) {
		*base = own;
		return weft_user_folder(geteuid(), tmp, own, size) && is_usable(own)
			       ? WEFT_EAL_FOLDER_OWN
			       : WEFT_EAL_FOLDER_NONE;
	}
	which = weft_eal_folder_find(uid, runtime, tmp, own, size);
	*base = runtime ? runtime : tmp;
	if (which == WEFT_EAL_FOLDER_OWN)
		*base = own;
	return which;
}

/* ---- the start ------------------------------------------------------------------------------ */

/* Bytes of free hugepages, below which the pools of two lanes may not fit. */
#define HUGE_BYTES_MIN (96ull << 20)

/* Address space with --no-huge; memory is used only when it is touched. */
#define NO_HUGE_MEGABYTES "512"

#define MAX_CORES 8192

/* Upper limit of the words that the choose_...() functions put in front of the user's. */
#define EXTRA_WORDS 10

static bool failed; /* an EAL that failed to start can't be started again */

bool weft_eal_is_up(void)
{
	/* Zero until rte_eal_init() has detected the processors; DPDK has no better indication. */
	return !failed && rte_lcore_count() > 0;
}

/* ---- words ---------------------------------------------------------------------------------- */

struct splitter {
	const char *in;
	char *out;
	char **words;
	int count;
	bool open; /* inside a word, which may be empty: '' */
};

static void begin_word(struct splitter *s)
{
	if (!s->open)
		s->words[s->count++] = s->out;
	s->open = true;
}

static void end_word(struct splitter *s)
{
	if (s->open)
		*s->out++ = '\0';
	s->open = false;
}

static int parse_quoted(struct splitter *s)
{
	char quote = *s->in++;

	for (; *s->in != quote; s->in++) {
		if (*s->in == '\\' && quote == '"' && (s->in[1] == '"' || s->in[1] == '\\'))
			s->in++;
		if (!*s->in)
			return -EINVAL;
		*s->out++ = *s->in;
	}
	s->in++;
	return 0;
}

static int split_words(struct splitter *s)
{
	while (*s->in) {
		if (strchr(" \t\r\n", *s->in)) {
			end_word(s);
			s->in++;
			continue;
		}
		begin_word(s);
		if (*s->in == '\'' || *s->in == '"') {
			if (parse_quoted(s))
				return -EINVAL;
			continue;
		}
		if (*s->in == '\\' && !*++s->in)
			return -EINVAL;
		*s->out++ = *s->in++;
	}
	end_word(s);
	return s->count;
}

int weft_eal_words(const char *text, char ***words)
{
	size_t len = strlen(text), slots = len / 2 + 2;
	struct splitter s = {.in = text};
	int rc;

	*words = NULL;
	/* One block: the pointers, and behind them the text, which never grows. */
	s.words = calloc(1, slots * sizeof(char *) + len + 1);
	if (!s.words)
		return -ENOMEM;
	s.out = (char *)(s.words + slots);
	rc = split_words(&s);
	if (rc < 0)
		free(s.words);
	else
		*words = s.words;
	return rc;
}

int weft_eal_split_args(int *argc, char ***argv, char ***eal_words)
{
	char **all = *argv;
	int i;

	*eal_words = NULL;
	for (i = 1; i < *argc; i++) {
		if (strcmp(all[i], "--"))
			continue;
		*eal_words = all + 1;
		all[i] = all[0];
		*argv = all + i;
		*argc -= i;
		return i - 1;
	}
	return -1;
}

/* ---- additional arguments ------------------------------------------------------------------- */

static bool has_long(int count, char *const *words, const char *name)
{
	size_t len = strlen(name);
	int i;

	for (i = 0; i < count; i++)
		if (!strncmp(words[i], "--", 2) && !strncmp(words[i] + 2, name, len) &&
		    (words[i][2 + len] == '\0' || words[i][2 + len] == '='))
			return true;
	return false;
}

static bool has_short(int count, char *const *words, char letter)
{
	int i;

	for (i = 0; i < count; i++)
		if (words[i][0] == '-' && words[i][1] == letter)
			return true;
	return false;
}

static uint64_t read_number(const char *dir, const char *file)
{
	char path[256];
	unsigned long long v = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fscanf(f, "%llu", &v) != 1)
		v = 0;
	fclose(f);
	return v;
}

/* @return free bytes of hugepages, of the page size that has most */
static uint64_t free_huge_bytes(void)
{
	unsigned long long kb;
	uint64_t bytes, best = 0;
	const char *size;
	glob_t g;
	size_t i;

	if (glob("/sys/kernel/mm/hugepages/hugepages-*kB", 0, NULL, &g))
		return 0;
	for (i = 0; i < g.gl_pathc; i++) {
		size = strrchr(g.gl_pathv[i], '-');
		if (!size || sscanf(size, "-%llukB", &kb) != 1)
			continue;
		bytes = kb * 1024 * read_number(g.gl_pathv[i], "free_hugepages");
		if (bytes > best)
			best = bytes;
	}
	globfree(&g);
	return best;
}

/* Is there a writable hugetlbfs? The EAL requires one even if it creates no file there. */
static bool hugetlbfs_is_there(void)
{
	char line[512], dir[256], type[64];
	bool found = false;
	FILE *f = fopen("/proc/mounts", "re");

	if (!f)
		return false;
	while (!found && fgets(line, sizeof(line), f))
		found = sscanf(line, "%*s %255s %63s", dir, type) == 2 &&
			!strcmp(type, "hugetlbfs") && !access(dir, R_OK | W_OK | X_OK);
	fclose(f);
	return found;
}

static bool memory_is_chosen(int count, char *const *words)
{
	static const char *const names[] = {
		"no-huge",
		"in-memory",
		"huge-dir",
		"huge-unlink",
		"socket-mem",
		"legacy-mem",
		"single-file-segments",
		"proc-type",
		"no-shconf",
	};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (has_long(count, words, names[i]))
			return true;
	return false;
}

struct command {
	char *words[EXTRA_WORDS];
	int count;
	const char *memory;
	const char *folder; /* of the EAL's sockets; NULL: the EAL's default */
};

static void add_word(struct command *c, const char *word)
{
	/* rte_eal_init() takes writable pointers and does not change the text. */
	c->words[c->count++] = (char *)(uintptr_t)word;
}

/*
 * Without files a killed process leaves no hugepages behind, and takes no lock. But a secondary
 * process (dpdk-dumpcap) attaches through files.
 */
static void choose_memory(struct command *c, bool dumpcap, int count, char *const *words)
{
	bool no_huge = has_long(count, words, "no-huge");

	if (no_huge) {
		c->memory = "no hugepages, as requested";
	} else if (memory_is_chosen(count, words)) {
		c->memory = "memory as requested";
		return;
	} else if (free_huge_bytes() >= HUGE_BYTES_MIN && hugetlbfs_is_there()) {
		c->memory = dumpcap ? "hugepages and shared files" : "hugepages";
		if (!dumpcap)
			add_word(c, "--in-memory");
		return;
	} else {
		c->memory =
			hugetlbfs_is_there()
				? "no hugepages: fewer than 96 MiB of them are free"
				: "no hugepages: no hugetlbfs is mounted that this user can write";
		add_word(c, "--no-huge");
	}
	if (!has_long(count, words, "proc-type"))
		add_word(c, "--no-shconf");
	if (!has_short(count, words, 'm'))
		add_word(c, "-m" NO_HUGE_MEGABYTES);
}

static void choose_rest(struct command *c, int count, char *const *words)
{
	if (!has_long(count, words, "file-prefix") && !has_long(count, words, "proc-type"))
		add_word(c, "--file-prefix=weft");
	if (!has_long(count, words, "log-level"))
		add_word(c, "--log-level=error");
}

/* ---- start ---------------------------------------------------------------------------------- */

/*
 * The EAL prints its whole help text to stdout when it rejects an argument. That may be the
 * program's output, and hides the error line. @return the saved stdout, or -1
 */
static int hide_stdout(int count, char *const *words)
{
	int null, saved;

	if (has_long(count, words, "help") || has_long(count, words, "log-level") ||
	    has_short(count, words, 'h'))
		return -1; /* then the user requested the output */
	fflush(stdout);
	null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	saved = null < 0 ? -1 : fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	if (saved >= 0)
		dup2(null, STDOUT_FILENO);
	if (null >= 0)
		close(null);
	return saved;
}

static void show_stdout(int saved)
{
	if (saved < 0)
		return;
	fflush(stdout);
	dup2(saved, STDOUT_FILENO);
	close(saved);
}

static int explain_error(int rc, char *why, size_t why_len)
{
	const char *look = rc == -EINVAL   ? "the EAL arguments"
			   : rc == -EACCES ? "your rights (ports and hugepages usually need root)"
					   : "the EAL arguments and free memory";

	snprintf(why, why_len,
		 "DPDK's EAL did not start (%s): see its messages above, and check %s",
		 rte_strerror(-rc), look);
	return rc;
}

/*
 * The EAL pins the thread that starts it to its main lcore, by default the first core of the
 * process. Threads inherit that, so all ranks of a host would share a core.
 */
static int init_on_any_core(int argc, char **argv)
{
	/* For machines with more cores than cpu_set_t can hold. */
	size_t size = CPU_ALLOC_SIZE(MAX_CORES);
	cpu_set_t *cores = CPU_ALLOC(MAX_CORES);
	bool known = cores && sched_getaffinity(0, size, cores) == 0;
	int rc = rte_eal_init(argc, argv);

	if (known)
		sched_setaffinity(0, size, cores);
	CPU_FREE(cores);
	return rc;
}

/* The words of the EAL where leak checkers find them: the EAL's own pointers to them are hidden. */
static char **kept_argv __attribute__((used));

/*
 * @p folder replaces the variable while the EAL reads it. In a program with more rights than its
 *   user (AT_SECURE) the variable is hidden from the EAL.
 */
static int init_in_folder(const char *folder, int argc, char **argv)
{
	const char *was = getenv(WEFT_EAL_FOLDER_VARIABLE);
	bool hidden = !folder && was && !secure_getenv(WEFT_EAL_FOLDER_VARIABLE);
	char *before;
	int rc;

	if (!folder && !hidden)
		return init_on_any_core(argc, argv);
	before = was ? strdup(was) : NULL;
	if (folder)
		setenv(WEFT_EAL_FOLDER_VARIABLE, folder, 1);
	else
		unsetenv(WEFT_EAL_FOLDER_VARIABLE);
	rc = init_on_any_core(argc, argv);
	if (before)
		setenv(WEFT_EAL_FOLDER_VARIABLE, before, 1);
	else
		unsetenv(WEFT_EAL_FOLDER_VARIABLE);
	free(before);
	return rc;
}

static bool wants_log(int count, char *const *words)
{
	static const char *const names[] = {"allow", "vdev", "log-level", "syslog", "help"};
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (has_long(count, words, names[i]))
			return true;
	return has_short(count, words, 'a') || has_short(count, words, 'd') ||
	       log_nic_bound("/sys");
}

static int eal_run(const struct command *c, int count, char *const *words, char *why,
		   size_t why_len)
{
	size_t room = (size_t)(1 + c->count + count + 1);
	char **argv;
	int i, n = 0, saved, rc;

	/* The EAL keeps pointers into argv (device arguments), so this is never freed. */
	argv = calloc(2 * room, sizeof(*argv));
	if (!argv)
		return explain_error(-ENOMEM, why, why_len);
	kept_argv = argv + room;
	argv[n++] = strdup("weft");
	for (i = 0; i < c->count; i++)
		argv[n++] = strdup(c->words[i]);
	for (i = 0; i < count; i++)
		argv[n++] = strdup(words[i]);
	for (i = 0; i < n; i++)
		if (!argv[i])
			return explain_error(-ENOMEM, why, why_len);
	memcpy(kept_argv, argv, (size_t)n * sizeof(*argv));
	saved = hide_stdout(count, words);
	rte_errno = 0;
	if (!wants_log(count, words))
		log_hold();
	rc = init_in_folder(c->folder, n, argv);
	log_release(rc < 0);
	show_stdout(saved);
	if (rc >= 0 || rte_errno == EALREADY)
		return 0;
	failed = true;
	return explain_error(rte_errno ? -rte_errno : -EFAULT, why, why_len);
}

/* With --proc-type the default folder stays: a secondary process would not find another one. */
static void choose_folder(struct command *c, char *own, size_t size, int count, char *const *words)
{
	enum weft_eal_folder which;
	const char *base;

	if (has_long(count, words, "no-telemetry") || has_long(count, words, "proc-type"))
		return;
	which = folder_now(own, size, &base);
	if (which == WEFT_EAL_FOLDER_NONE) {
		add_word(c, "--no-telemetry");
		return;
	}
	if (which == WEFT_EAL_FOLDER_OWN)
		c->folder = own;
	weft_eal_dead_remove(base);
}

/* Without this driver, which Debian has in a package of its own, pools fail as if for memory. */
static int pools_found(char *why, size_t why_len)
{
	const char *driver = rte_mbuf_best_mempool_ops();
	uint32_t i;

	for (i = 0; i < rte_mempool_ops_table.num_ops; i++)
		if (strcmp(rte_mempool_ops_table.ops[i].name, driver) == 0)
			return 0;
	snprintf(why, why_len,
		 "DPDK has no driver \"%s\" for pools of buffers: install it (Debian's package of "
		 "ring_mp_mc is librte-mempool-ring), or load it with -d",
		 driver);
	return -ENOENT;
}

static int eal_start(int count, char *const *words, bool dumpcap, char *note, size_t note_len,
		     char *why, size_t why_len)
{
	size_t used = strlen(note);
	struct command c = {0};
	char folder[64];
	int rc;

	rc = weft_memif_dead_remove(count, words, why, why_len);
	if (rc)
		return rc;
	choose_memory(&c, dumpcap, count, words);
	choose_rest(&c, count, words);
	choose_folder(&c, folder, sizeof(folder), count, words);
	rc = eal_run(&c, count, words, why, why_len);
	if (rc == 0)
		snprintf(note + used, note_len - used, "%sEAL started with %s", used ? "; " : "",
			 c.memory);
	return rc == 0 ? pools_found(why, why_len) : rc;
}

int weft_eal_start_words(int count, char *const *words, const struct weft_eal_conf *conf,
			 char *note, size_t note_len, char *why, size_t why_len)
{
	struct weft_pick pick = {.ports = conf->ports, .sys = "/sys"};
	char **ours = NULL, **private;
	int rc;

	snprintf(note, note_len, "%s", "");
	if (failed)
		return explain_error(-EFAULT, why, why_len);
	if (weft_eal_is_up())
		return pools_found(why, why_len);
	private = weft_memif_private_words(count, words);
	if (!private)
		return explain_error(-ENOMEM, why, why_len);
	if (conf->ports && conf->ports[0] != '\0') {
		weft_local_find(&pick.local);
		count = weft_pick(&pick, count, private, &ours, note, note_len, why, why_len);
	}
	rc = count < 0 ? count
		       : eal_start(count, ours ? ours : private, conf->dumpcap, note, note_len, why,
				   why_len);
	/* Release the devices for other processes, since this one goes on without ports. */
	if (rc < 0)
		weft_pick_release();
	free(ours);
	free(private);
	return rc;
}

int weft_eal_start(const char *args, const struct weft_eal_conf *conf, char *note, size_t note_len,
		   char *why, size_t why_len)
{
	char **words;
	int count, rc;

	snprintf(note, note_len, "%s", "");
	if (weft_eal_is_up())
		return pools_found(why, why_len);
	count = weft_eal_words(args ? args : "", &words);
	if (count == -ENOMEM)
		return explain_error(count, why, why_len);
	if (count < 0) {
		snprintf(why, why_len,
			 "WEFT_EAL_ARGS has an open quote or ends with a backslash: %s", args);
		return count;
	}
	rc = weft_eal_start_words(count, words, conf, note, note_len, why, why_len);
	free(words);
	return rc;
}
