/*
 * Ends a process that comes no further: sockets of TCP and RDMA wait without end for a peer that
 * has other options, or is gone without a word.
 */
#ifndef TOOLS_WATCH_H
#define TOOLS_WATCH_H

/*
 * Begins to look once a second whether watch_progress() was called, and ends the process with
 * status 1 and one line, "name: text", when it was not for timeout_s seconds. 0 looks never. A
 * forked child begins anew. Calls that wait are interrupted by the signal of this, SIGALRM.
 */
void watch_start(const char *name, long timeout_s, const char *text);

/* Something came, or went. */
void watch_progress(void);

/* What may last as long as it will begins, and is over. */
void watch_pause(void);
void watch_resume(void);

#endif
