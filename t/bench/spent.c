/*
 * spent FILE COMMAND...: runs it, and writes into FILE what it took, all its threads together:
 * microseconds by the clock, of the processors in its own code, and of them in the kernel for it;
 * how often it slept, how often it was made to wait for a processor; the most memory that it had
 * resident, in kB; and how often it called the kernel, which the kernel itself counts, so that
 * nothing is slowed by it, or - where that cannot be counted (perf_event_open(2), tracefs).
 */
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LIMIT_S = 100 };

static const char event_id[] = "/sys/kernel/tracing/events/raw_syscalls/sys_enter/id";

static double now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static double us(const struct timeval *time)
{
	return (double)time->tv_sec * 1e6 + (double)time->tv_usec;
}

static long call_event(void)
{
	FILE *file = fopen(event_id, "r");
	long id = -1;

	if (!file)
		return -1;
	if (fscanf(file, "%ld", &id) != 1)
		id = -1;
	fclose(file);
	return id;
}

/* Of the child that is forked next, from its exec on, and of all that comes of it. */
static int open_counter(void)
{
	struct perf_event_attr attr;
	long id = call_event();

	if (id < 0)
		return -1;
	memset(&attr, 0, sizeof(attr));
	attr.type = PERF_TYPE_TRACEPOINT;
	attr.size = sizeof(attr);
	attr.config = (unsigned long)id;
	attr.disabled = attr.inherit = attr.enable_on_exec = 1;
	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static void tell_calls(FILE *file, int counter)
{
	unsigned long long calls;

	if (counter >= 0 && read(counter, &calls, sizeof(calls)) == (ssize_t)sizeof(calls))
		fprintf(file, " %llu\n", calls);
	else
		fprintf(file, " -\n");
}

static void run(char **command)
{
	alarm(LIMIT_S);
	execvp(command[0], command);
	perror(command[0]);
	_exit(127);
}

static int tell(const char *name, double took_us, int counter)
{
	FILE *file = fopen(name, "w");
	struct rusage usage;

	if (!file)
		return perror(name), 1;
	getrusage(RUSAGE_CHILDREN, &usage);
	fprintf(file, "%.0f %.0f %.0f %ld %ld %ld", took_us, us(&usage.ru_utime),
		us(&usage.ru_stime), usage.ru_nvcsw, usage.ru_nivcsw, usage.ru_maxrss);
	tell_calls(file, counter);
	return fclose(file) != 0;
}

int main(int argc, char **argv)
{
	double begin = now_us();
	int status, counter;
	pid_t pid;

	if (argc < 3)
		return fprintf(stderr, "usage: spent FILE COMMAND...\n"), 1;
	counter = open_counter();
	pid = fork();
	if (!pid)
		run(argv + 2);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return perror("spent"), 1;
	if (status)
		return fprintf(stderr, "spent: it failed, status %d\n", status), 1;
	return tell(argv[1], now_us() - begin, counter);
}
