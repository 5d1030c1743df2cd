/* The command line of the tools for streams. */
#ifndef TOOLS_STREAM_OPTIONS_H
#define TOOLS_STREAM_OPTIONS_H

#include "address.h"

struct stream_options {
	const char *name;  /* of the tool */
	const char *tests; /* that it has */
	const char *server;
	const char *bind;
	enum address_format format;
	long port;
	long buffer_bytes;
	long inline_bytes; /* -1: as the run is best served */
	long keepalive_s;  /* 0: none */
	long patience_s;   /* 0: without end */
	long size_bytes;
	long transfers;
	long iterations;
	int custom; /* one run of these three */
	int all;    /* every size of the series */
	int plain;
	int async;
	int blocking;
	int fork;
	int resolve;
	int verify;
};

/* What tells one tool from another. */
struct stream_tool {
	const char *name;
	const char *usage;
	const char *tests; /* the letters of -T */
	int has_keepalive; /* there is -k */
};

/* Returns 0, or -1 after a complaint; -h ends the process. */
int stream_read_options(
	struct stream_options *options, const struct stream_tool *tool, int argc, char **argv);

/*
 * Which test a text of -T names, in full or by a letter, of those that are allowed. Returns its
 * letter, or -1 after a complaint.
 */
int stream_read_test(const char *name, const char *text, const char *allowed);

/* Begins the watch over a run between two sides. */
void stream_watch(const struct stream_options *options);

#endif
