/*
 * Each thread finds its floating-point registers as it left them: after system calls, faults,
 * signals and ticks, while others use theirs, in the child of a fork, and as a tracer reads and
 * sets them, who keeps his own. A kernel that keeps them where they are for as long as it can, as
 * that of uml.patch does, has to know all these.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __x86_64__

enum { THREADS = 4, ROUNDS = 1500, FORK_EVERY = 50, PAGE = 4096, TICK_US = 1000, SPIN = 20000 };

static atomic_bool failed;

static void handle(int unused)
{
	const double other = -1;

	__asm__ volatile("movsd %0, %%xmm7" : : "m"(other) : "xmm7");
}

/* What the register holds after a fault at the byte and the call. */
static double after(double own, char *byte, long *number, const long args[4])
{
	register long fourth __asm__("r10") = args[3];
	double then;

	__asm__ volatile("movsd %[own], %%xmm7\n\t"
			 "movb $1, (%[byte])\n\t"
			 "syscall\n\t"
			 "movsd %%xmm7, %[then]"
			 : "+a"(*number), [then] "=m"(then)
			 : [own] "m"(own), [byte] "r"(byte), "D"(args[0]), "S"(args[1]),
			 "d"(args[2]), "r"(fourth)
			 : "rcx", "r11", "xmm7", "memory");
	return then;
}

/* And after so long without one. */
static double after_a_while(double own)
{
	long left = SPIN;
	double then;

	__asm__ volatile("movsd %[own], %%xmm7\n"
			 "1:\tdec %[left]\n\t"
			 "jnz 1b\n\t"
			 "movsd %%xmm7, %[then]"
			 : [left] "+r"(left), [then] "=m"(then)
			 : [own] "m"(own)
			 : "xmm7");
	return then;
}

static void check(const char *what, double own, double then)
{
	if (own == then)
		return;
	atomic_store(&failed, true);
	printf("%s: %g, not %g\n", what, then, own);
}

static void check_call(const char *what, double own, char *byte, long number, long a, long b)
{
	const long args[4] = { a, b };

	check(what, own, after(own, byte, &number, args));
}

static void check_fork(double own, char *byte)
{
	long pid = SYS_fork;
	double then = after(own, byte, &pid, (long[4]){ 0 });
	int status;

	if (!pid)
		_exit(then != own);
	check("the parent", own, then);
	if (pid < 0 || waitpid((pid_t)pid, &status, 0) != pid || status)
		check("the child", own, -1);
}

enum { BEFORE = 7, SET = 9, TRACER = 11 };

static void be_traced(char *byte)
{
	const long args[4] = { getpid(), SIGSTOP };
	long number = SYS_kill;

	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	_exit(after(BEFORE, byte, &number, args) != SET);
}

static double *seventh(struct user_fpregs_struct *regs)
{
	return (double *)&regs->xmm_space[7 * 4];
}

static void trace(pid_t pid, char *byte)
{
	struct user_fpregs_struct regs;
	long number = SYS_ptrace;
	const long args[4] = { PTRACE_SETFPREGS, pid, 0, (long)&regs };
	double then;

	if (waitpid(pid, NULL, 0) != pid || ptrace(PTRACE_GETFPREGS, pid, NULL, &regs))
		abort();
	check("a child that is traced", BEFORE, *seventh(&regs));
	*seventh(&regs) = SET;
	then = after(TRACER, byte, &number, args);
	check("its tracer", TRACER, then);
	if (number)
		abort();
}

static void check_traced(void)
{
	char byte;
	pid_t pid = fork();
	int status;

	if (!pid)
		be_traced(&byte);
	trace(pid, &byte);
	if (ptrace(PTRACE_CONT, pid, NULL, NULL) || waitpid(pid, &status, 0) != pid || status)
		check("a child whose registers were set", SET, -1);
}

static void *run(void *arg)
{
	const double own = *(double *)arg;
	char *pages = mmap(NULL, (size_t)ROUNDS * PAGE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int i;

	if (pages == MAP_FAILED)
		abort();
	for (i = 0; i < ROUNDS && !atomic_load(&failed); i++) {
		char *byte = pages + (size_t)i * PAGE;

		check_call("yielding", own, byte, SYS_sched_yield, 0, 0);
		check_call("a signal", own, byte, SYS_tkill, syscall(SYS_gettid), SIGUSR1);
		check("a while", own, after_a_while(own));
		if (i % FORK_EVERY == 0)
			check_fork(own, byte);
	}
	return NULL;
}

int main(void)
{
	const struct itimerval tick = { { 0, TICK_US }, { 0, TICK_US } };
	double own[THREADS];
	pthread_t threads[THREADS];
	int i;

	signal(SIGUSR1, handle);
	signal(SIGALRM, handle);
	setitimer(ITIMER_REAL, &tick, NULL);
	for (i = 0; i < THREADS; i++) {
		own[i] = i + 1;
		if (pthread_create(&threads[i], NULL, run, &own[i]))
			abort();
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	setitimer(ITIMER_REAL, &(struct itimerval){ 0 }, NULL);
	check_traced();
	return atomic_load(&failed);
}

#else

int main(void)
{
	return 0; /* there is no such kernel */
}

#endif
