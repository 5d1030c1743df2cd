/*
 * The contract of errors on a device: asks each row of the table in a process of its own, since a
 * library may well crash on it. Prints for each "function TAB input TAB answer TAB expected", and
 * ends with 0: errors.sh judges. Arguments: the address of the device, rxe or siw.
 */
#include "errors/errors.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_S = 20 };

/* Nothing is flushed twice: the child leaves with _exit(). */
static void say(int fd, const char *text)
{
	if (write(fd, text, strlen(text)) < 0)
		_exit(1);
}

/* Our own library has to be in order afterwards as well; another may not survive it. */
static void ask_in_child(const struct errors_case *c, int fd)
{
	struct errors_fixture fixture;

	alarm(PATIENCE_S);
	if (!errors_set(&fixture, c->scenario)) {
		say(fd, "no fixture: ");
		say(fd, fixture.trouble);
		_exit(0);
	}
	say(fd, errors_name(errors_ask(c, &fixture)));
	if (!errors_clear(&fixture)) {
		say(fd, ", then ");
		say(fd, fixture.trouble);
	}
	_exit(0);
}

static void read_answer(int fd, char *text, size_t size)
{
	size_t len = 0;
	ssize_t n;

	while (len < size - 1 && (n = read(fd, text + len, size - 1 - len)) > 0)
		len += (size_t)n;
	text[len] = '\0';
}

/* What ended the process, if it was not itself. */
static const char *fate(int status)
{
	if (!WIFSIGNALED(status))
		return "";
	return WTERMSIG(status) == SIGALRM ? "hang" : "crash";
}

static int try_row(const struct errors_case *c)
{
	char text[256];
	int fds[2], status;
	pid_t pid;

	if (pipe(fds))
		return -1;
	pid = fork();
	if (pid < 0)
		return -1;
	if (!pid) {
		close(fds[0]);
		ask_in_child(c, fds[1]);
	}
	close(fds[1]);
	read_answer(fds[0], text, sizeof(text));
	close(fds[0]);
	if (waitpid(pid, &status, 0) != pid)
		return -1;
	printf("%s\t%s\t%s%s%s\t%s\n", c->function, c->input, text,
		*text && *fate(status) ? ", then " : "", fate(status), errors_name(c->answer));
	return fflush(stdout);
}

int main(int argc, char **argv)
{
	unsigned where;
	size_t i;

	if (argc != 3) {
		fprintf(stderr, "usage: errors ADDRESS rxe|siw\n");
		return 2;
	}
	errors_ip = argv[1];
	where = strcmp(argv[2], "siw") ? ROCE : IWARP;
	for (i = 0; i < errors_table_len; i++) {
		if (!(errors_table[i].where & where))
			continue;
		if (try_row(&errors_table[i])) {
			perror("errors");
			return 1;
		}
	}
	return 0;
}
