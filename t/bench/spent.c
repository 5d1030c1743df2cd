/*
 * spent FILE COMMAND...: runs it, and writes into FILE what it took, all its threads together:
 * microseconds by the clock, of the processors in its own code, and of them in the kernel for it;
 * how often it slept, how often it was made to wait for a processor; and the most memory that it
 * had resident, in kB.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LIMIT_S = 100 };

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

static void run(char **command)
{
	alarm(LIMIT_S);
	execvp(command[0], command);
	perror(command[0]);
	_exit(127);
}

static int tell(const char *name, double took_us)
{
	FILE *file = fopen(name, "w");
	struct rusage usage;

	if (!file)
		return perror(name), 1;
	getrusage(RUSAGE_CHILDREN, &usage);
	fprintf(file, "%.0f %.0f %.0f %ld %ld %ld\n", took_us, us(&usage.ru_utime),
		us(&usage.ru_stime), usage.ru_nvcsw, usage.ru_nivcsw, usage.ru_maxrss);
	return fclose(file) != 0;
}

int main(int argc, char **argv)
{
	double begin = now_us();
	int status;
	pid_t pid;

	if (argc < 3)
		return fprintf(stderr, "usage: spent FILE COMMAND...\n"), 1;
	pid = fork();
	if (!pid)
		run(argv + 2);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return perror("spent"), 1;
	if (status)
		return fprintf(stderr, "spent: it failed, status %d\n", status), 1;
	return tell(argv[1], now_us() - begin);
}
