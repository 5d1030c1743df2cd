/*
 * What the two sides of evrdma-perf say to each other.
 *
 * The client's connect carries a greeting, from which the server knows what to get ready. Then each
 * message begins with one byte that says what it is:
 *
 *   client  START
 *   server  READY    with the memory that may be written or read
 *   client  DATA ... each answered with the same for PERF_PING; for PERF_SEND the server grants
 *   server  GRANT    as many more as its buffers are free again
 *   client  DONE
 *   server  REPORT   how many messages of how many bytes came
 *
 * and the client disconnects. Numbers are big endian. A PERF_CONNECT ends with the connect. A
 * server that cannot do what the greeting asks for rejects it, and says why.
 */
#ifndef TOOLS_PERF_WIRE_H
#define TOOLS_PERF_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include <evrdma/work.h>

enum perf_test {
	PERF_PING,
	PERF_SEND,
	PERF_WRITE,
	PERF_READ,
	PERF_CONNECT,
	PERF_GROUP,
	PERF_TESTS
};

struct perf_hello {
	enum perf_test test;
	uint32_t window;
	uint32_t size;
};

#define PERF_HELLO_BYTES 20

void perf_hello_pack(const struct perf_hello *hello, uint8_t *bytes);

/* Returns 0, or -1 for what is no greeting that this version can serve. */
int perf_hello_unpack(struct perf_hello *hello, const void *bytes, size_t len);

/* Why a greeting is rejected. */
enum perf_refusal {
	PERF_REFUSAL_NONE,
	PERF_REFUSAL_GREETING, /* it is of another version, or asks for what this one has not */
	PERF_REFUSAL_MEMORY,   /* too much for this server, with what others have */
	PERF_REFUSAL_FAULT,    /* the server says what it could not do */
	PERF_REFUSALS
};

#define PERF_REFUSAL_BYTES 12

void perf_refusal_pack(enum perf_refusal refusal, uint8_t *bytes);

/* Returns PERF_REFUSAL_NONE for what is no refusal of a server's. */
enum perf_refusal perf_refusal_unpack(const void *bytes, size_t len);

enum perf_type { PERF_DATA, PERF_START, PERF_READY, PERF_GRANT, PERF_DONE, PERF_REPORT };

/* A message that is not DATA. */
struct perf_word {
	enum perf_type type;
	uint64_t messages;	     /* GRANT: how many more; REPORT */
	uint64_t bytes;		     /* REPORT */
	struct evrdma_remote remote; /* READY */
};

#define PERF_WORD_BYTES 32

void perf_word_pack(const struct perf_word *word, uint8_t *bytes);

/* Returns 0, or -1 for what is not a word. */
int perf_word_unpack(struct perf_word *word, const void *bytes, size_t len);

#endif
