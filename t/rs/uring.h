/* Polling by io_uring(7), without its library. */
#ifndef RS_URING_H
#define RS_URING_H

#include <stdbool.h>
#include <stdint.h>

struct uring;

/* Whether this kernel has it, and lets us. */
bool uring_exists(void);
struct uring *uring_new(void);
void uring_free(struct uring *ring);
/* Asks once for events of the descriptor. */
void uring_poll(struct uring *ring, int fd, uint32_t events, uint64_t of);
/* Whether there is an answer. */
bool uring_has(const struct uring *ring);
/* The next answer: the events that there are; waits for it. */
int uring_wait(struct uring *ring, uint64_t *of);

#endif
