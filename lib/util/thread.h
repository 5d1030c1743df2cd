/* Threads of the libraries' own. */
#ifndef EVR_UTIL_THREAD_H
#define EVR_UTIL_THREAD_H

/* A detached thread without signals: those of the program are for its threads. 0 or -errno. */
int evr_thread_start(void *(*run)(void *arg), void *arg);

#endif
