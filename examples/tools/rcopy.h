/* rcopy: copies a file to a server over an rsocket. */
#ifndef TOOLS_RCOPY_H
#define TOOLS_RCOPY_H

#include <limits.h>
#include <stdint.h>
#include <sys/types.h>

#include "sock.h"

#define RCOPY "rcopy"

struct rcopy_options {
	const char *source; /* NULL for a server */
	const char *server;
	const char *destination;
	const char *folder;
	long port;
	long patience_s; /* 0: without end */
};

/* --- what is sent ------------------------------------------------------------- */

/* Commands go from the client to the server, and each is answered. */
enum { RCOPY_OPEN = 1, RCOPY_CLOSE = 2, RCOPY_WRITE = 3, RCOPY_ANSWER = 0x80 };

/* In the byte order of the host, as ever; both sides have to have the same one. */
struct rcopy_header {
	uint8_t version; /* 0 */
	uint8_t command;
	uint16_t len_bytes; /* with what follows, but for the data of a file */
	uint32_t data;	    /* OPEN: the mode; an answer: an errno */
	uint64_t id;
};

#define RCOPY_HEADER_BYTES sizeof(struct rcopy_header)
/* A path is padded with zeros to a multiple of this, and has one at its end at least. */
#define RCOPY_PATH_UNIT 8
#define RCOPY_CHUNK_BYTES (1L << 20)

struct rcopy_peer {
	struct sock sock;
	int timeout_ms; /* of silence; negative: none */
	int hung_up;	/* a wait said so; what is left may still be received */
};

/* All of it, or -errno: -ETIMEDOUT after silence, -ECONNRESET when the other side has gone. */
int rcopy_send(struct rcopy_peer *peer, const void *data, size_t len_bytes);
int rcopy_recv(struct rcopy_peer *peer, void *data, size_t len_bytes);

int rcopy_send_header(struct rcopy_peer *peer, int command, size_t more_bytes, uint32_t data);
/* -EPROTO for what is no header of that command. */
int rcopy_recv_header(struct rcopy_peer *peer, struct rcopy_header *header, int command);

/* --- a file that comes in ------------------------------------------------------- */

/*
 * It has a name of its own until it is whole, which nobody else knows. So what is there under the
 * name is the old file or the new one, and never a part.
 */
struct rcopy_file {
	int dir; /* that the file is in */
	int fd;
	char name[NAME_MAX + 1];
	char part[NAME_MAX + 1];
};

/*
 * Opens a path in a folder, which it may not lead out of: not by "..", not by a link. Of an
 * absolute path the folder has to be the beginning. Returns 0 or -errno, -EACCES when it leads out.
 */
int rcopy_file_open(struct rcopy_file *file, const char *folder, const char *path, mode_t mode);
int rcopy_file_write(struct rcopy_file *file, const void *data, size_t len_bytes);
/* Gives it its name. */
int rcopy_file_keep(struct rcopy_file *file);
/* Removes it, unless it was kept. */
void rcopy_file_close(struct rcopy_file *file);
/*
 * Has the signals that end a process remove the file that is coming in, and one that is too large
 * be an error of the write.
 */
void rcopy_file_guard(void);

/* --- the two programs ----------------------------------------------------------- */

/* They return the status. */
int rcopy_serve(const struct rcopy_options *options);
int rcopy_copy(const struct rcopy_options *options);

#endif
