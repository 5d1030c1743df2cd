/*
 * peak COMMAND...: runs it, and prints how much memory it had resident at most, in kB. What it
 * prints itself is thrown away.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIMIT_S = 100 };

static void run(char **command)
{
	int fd = open("/dev/null", O_WRONLY);

	dup2(fd, STDOUT_FILENO);
	alarm(LIMIT_S);
	execvp(command[0], command);
	perror(command[0]);
	_exit(127);
}

int main(int argc, char **argv)
{
	struct rusage usage;
	int status;
	pid_t pid;

	if (argc < 2)
		return fprintf(stderr, "usage: peak COMMAND...\n"), 1;
	pid = fork();
	if (!pid)
		run(argv + 1);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return perror("peak"), 1;
	if (status)
		return fprintf(stderr, "peak: it failed, status %d\n", status), 1;
	getrusage(RUSAGE_CHILDREN, &usage);
	printf("%ld\n", usage.ru_maxrss);
	return 0;
}
